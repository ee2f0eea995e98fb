"""An answer's row as what its page shows: plain values, every word and number ready.

The page is always made from the stored row, on every path (live, by a plain form, from
a link years later), so that they cannot differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kb.models import Entry
from qa.models import Answer, AnswerEvidence
from qa.pipeline.types import Calibration, Gate, Policy, Reason

from . import wording

# A passage number as a model writes it: [1], [1, 3].
_MARK = re.compile(r"\[(\d{1,2}(?:\s*,\s*\d{1,2})*)\]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; `citation` is the number of the card it points to."""

    text: str
    citation: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One piece of evidence as it was measured then, and what became of it since."""

    number: int
    entry_id: int
    question: str
    pieces: tuple[Piece, ...]  # those with a citation are the quoted words
    document: str
    source: str
    section: str
    is_verified: bool
    verified_by: str
    verified_at: datetime | None
    valid_until: datetime | None
    confidence: str
    confidence_words: str
    distance: str
    distance_words: str
    ratio: str
    limit: str
    is_within_limit: bool
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart 100 units wide."""

    start: float
    width: float
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class SignalLine:
    """One measured number in words."""

    label: str
    value: str
    rule: str
    passed: bool | None
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the waterfall: passed, answered, refused, none (went on) or skipped."""

    name: str
    question: str
    state: str
    verdict: str
    signals: tuple[SignalLine, ...]
    time: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class StageTimeLine:
    """How long a stage took, as a bar that starts where the one before ended."""

    name: str
    time: str
    bar: Bar


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """Everything that is shown of one answer."""

    answer: Answer
    pieces: tuple[Piece, ...]
    is_verbatim: bool
    cited: tuple[Card, ...]
    unused: tuple[Card, ...]
    near_misses: tuple[Card, ...]
    waterfall: tuple[Step, ...]
    recorded: tuple[SignalLine, ...]  # measured and not held against anything
    times: tuple[StageTimeLine, ...]
    total_time: str
    reason: wording.ReasonWords | None
    is_stale: bool
    is_hand_set: bool
    announcement: str


def present(
    answer: Answer, evidence: Sequence[AnswerEvidence], *, at: datetime
) -> AnswerPage:
    """Return what the page of `answer` shows.

    Args:
        answer: Decided or not.
        evidence: Its rows by rank, with entry, document, section, revision and author
            loaded and `latest_number` annotated.
        at: The moment against which an entry's later fate is told.
    """
    policy = answer.policy.as_value() if answer.policy else None
    answered = answer.outcome == Answer.Outcome.ANSWERED
    cited = [
        row for row in evidence if answered and row.role == AnswerEvidence.Role.CITED
    ]
    others = [row for row in evidence if row not in cited]
    cards = _cards(cited, 1, policy, at)
    rest = _cards(
        (row for row in others if answered or _is_near(row, policy)),
        len(cards) + 1,
        policy,
        at,
    )
    reason = (
        wording.REASONS[Reason(answer.shown_reason)] if answer.shown_reason else None
    )
    is_verbatim = answered and answer.gate == Gate.VERBATIM
    return AnswerPage(
        answer=answer,
        pieces=_answer_pieces(
            answer.text,
            {row.rank: number for number, row in enumerate(cited, start=1)},
            reads_marks=answered and not is_verbatim,
        ),
        is_verbatim=is_verbatim,
        cited=cards,
        unused=rest if answered else (),
        near_misses=() if answered else rest,
        waterfall=_waterfall(answer),
        recorded=tuple(
            _signal_line(signal)
            for signal in answer.signals
            if signal["passed"] is None
            and signal["name"] != _VISIBLE
            and signal["value"] is not None
        ),
        times=_times(answer.milliseconds),
        total_time=wording.time_in_words(sum(answer.milliseconds.values())),
        reason=reason,
        is_stale=answer.calibration == Calibration.STALE,
        is_hand_set=answer.calibration == Calibration.HAND_SET,
        announcement=_announcement(answer, reason, len(cards)),
    )


def _announcement(
    answer: Answer, reason: wording.ReasonWords | None, citations: int
) -> str:
    match answer.outcome:
        case Answer.Outcome.ANSWERED:
            sources = "1 source" if citations == 1 else f"{citations} sources"
            return f"Answered, with {sources}. {answer.text}"
        case Answer.Outcome.REFUSED:
            why = f"{reason.title}. " if reason else ""
            return f"Not answered. {why}{answer.text}"
        case Answer.Outcome.FAILED:
            return "The question is kept, but could not be decided."
        case _:
            return "Working on it."


def _is_near(row: AnswerEvidence, policy: Policy | None) -> bool:
    """Tell whether an entry that did not answer is near enough to be worth reading."""
    return policy is None or row.distance <= policy.horizon


def _answer_pieces(
    text: str, numbers: Mapping[int, int], *, reads_marks: bool
) -> tuple[Piece, ...]:
    """Split a text at its citation marks; without any, the marks follow the text.

    Args:
        numbers: Number of the card by the number that the piece had in the prompt.
        reads_marks: Whether a mark in the text is a citation; what a person wrote word
            for word keeps its brackets.
    """
    pieces: list[Piece] = []
    end = 0
    for mark in _MARK.finditer(text) if reads_marks else ():
        marked = [int(number) for number in mark[1].split(",")]
        if all(number in numbers for number in marked):
            pieces.append(Piece(text[end : mark.start()]))
            pieces += [_citation(numbers[number]) for number in marked]
            end = mark.end()
    has_marks = bool(pieces)
    pieces.append(Piece(text[end:]))
    if not has_marks and numbers:
        pieces.append(Piece(" "))
        pieces += [_citation(number) for number in numbers.values()]
    return tuple(piece for piece in pieces if piece.text)


def _citation(number: int) -> Piece:
    return Piece(f"[{number}]", number)


def _cards(
    rows: Iterable[AnswerEvidence], first: int, policy: Policy | None, at: datetime
) -> tuple[Card, ...]:
    return tuple(
        _card(row, number, policy, at) for number, row in enumerate(rows, start=first)
    )


def _card(
    row: AnswerEvidence, number: int, policy: Policy | None, at: datetime
) -> Card:
    entry, revision = row.entry, row.revision
    ratio = row.distance / row.confidence
    is_verified = revision.state == Entry.State.VERIFIED
    verifier = entry.verified_by if is_verified else None
    return Card(
        number=number,
        entry_id=entry.pk,
        question=revision.question,
        pieces=_quoted(revision.text, row.quote, number),
        document=entry.document.title if entry.document else "",
        source=entry.document.source if entry.document else "",
        section=entry.section.heading if entry.section else "",
        is_verified=is_verified,
        verified_by=(verifier.get_full_name() or verifier.get_username())
        if verifier
        else "",
        verified_at=entry.verified_at if is_verified else None,
        valid_until=revision.valid_until,
        confidence=f"{row.confidence:.2f}",
        confidence_words=wording.confidence_in_words(row.confidence),
        distance=f"{row.distance:.2f}",
        distance_words=wording.distance_in_words(row.distance, policy)
        if policy
        else "",
        ratio=f"{ratio:.2f}",
        limit=f"{policy.alpha:.2f}" if policy else "",
        is_within_limit=policy is not None and ratio < policy.alpha,
        changes=_changes(row, at),
    )


def _quoted(text: str, quote: str, number: int) -> tuple[Piece, ...]:
    """Split a text at the words that were quoted from it."""
    before, found, after = _around(text, quote)
    pieces = (Piece(before), Piece(found, number), Piece(after))
    return tuple(piece for piece in pieces if piece.text)


def _around(text: str, quote: str) -> tuple[str, str, str]:
    """Return what stands before, in and after the quote; all of a text marks nothing."""
    if not quote or quote == text:
        return text, "", ""
    return text.partition(quote)


def _changes(row: AnswerEvidence, at: datetime) -> tuple[str, ...]:
    """Say what happened to the entry after it was used."""
    entry, revision = row.entry, row.revision
    changes = []
    if entry.state == Entry.State.RETIRED:
        changes.append("Retired since")
    elif getattr(row, "latest_number", revision.number) > revision.number:
        changes.append("Edited since")
    if entry.valid_until is not None and entry.valid_until <= at:
        changes.append("Expired since")
    return tuple(changes)


# The stages whose time a gate takes: what it waits for and its own judgement.
_STAGES_OF_GATE = {
    Gate.VERBATIM: ("verbatim",),
    Gate.HARD_REFUSAL: ("hard_refusal",),
    Gate.SOFT_REFUSAL: ("load", "generate", "support", "soft_refusal"),
    Gate.ABSTENTION: ("abstention",),
}
_SEARCH_STAGES = ("question", "retrieve")
# The one signal that belongs to the search; it refuses nothing.
_VISIBLE = "visible_entries"


def _waterfall(answer: Answer) -> tuple[Step, ...]:
    """Return the search and the gates after it, each where the one before ended."""
    total = sum(answer.milliseconds.values()) or 1.0
    spent = _spent(answer, _SEARCH_STAGES)
    searched = [s for s in answer.signals if s["name"] == _VISIBLE]
    steps = [
        Step(
            name="Search",
            question="What is known about it?",
            state="passed" if spent else "skipped",
            verdict="" if spent else "Not reached",
            signals=tuple(_signal_line(signal) for signal in searched),
            time=wording.time_in_words(spent) if spent else "",
            bar=_share(0.0, spent, total) if spent else None,
        )
    ]
    start = spent
    for gate in Gate:
        signals = [s for s in answer.signals if s["gate"] == gate]
        if gate is Gate.ABSTENTION and not signals:
            continue  # no probe was asked
        spent = _spent(answer, _STAGES_OF_GATE[gate])
        state, verdict = _gate_state(gate, answer, bool(signals))
        enforced = [
            s
            for s in signals
            if s["passed"] is not None
            # Without any question to compare there is nothing to tell.
            and not (gate is Gate.VERBATIM and s["value"] is None)
        ]
        reached = state != "skipped" and spent > 0
        steps.append(
            Step(
                name=wording.GATES[gate].name,
                question=wording.GATES[gate].question,
                state=state,
                verdict=verdict,
                signals=tuple(_signal_line(signal) for signal in enforced),
                time=wording.time_in_words(spent) if reached else "",
                bar=_share(start, spent, total) if reached else None,
            )
        )
        start += spent
    return tuple(steps)


def _spent(answer: Answer, stages: tuple[str, ...]) -> float:
    return float(sum(answer.milliseconds.get(stage, 0.0) for stage in stages))


def _gate_state(gate: Gate, answer: Answer, measured: bool) -> tuple[str, str]:
    decided_here = answer.gate == gate
    if decided_here and answer.outcome == Answer.Outcome.REFUSED:
        return "refused", "No: refused here"
    if decided_here and answer.outcome == Answer.Outcome.ANSWERED:
        return "answered", "Yes: answered here"
    if not measured:
        return "skipped", "Not reached"
    if gate is Gate.VERBATIM:
        return "none", "No: went on"
    return "passed", "Yes: passed"


def _signal_line(signal: dict[str, object]) -> SignalLine:
    value, threshold, passed = signal["value"], signal["threshold"], signal["passed"]
    name = str(signal["name"])
    words = wording.SIGNALS.get(name) or wording.SignalWords(name.replace("_", " "))
    number = float(value) if isinstance(value, int | float) else None
    limit = float(threshold) if isinstance(threshold, int | float) else None
    is_enforced = isinstance(passed, bool)
    shows_limit = is_enforced and limit is not None and bool(words.rule)
    return SignalLine(
        label=words.label,
        value=wording.number_in_words(number, words.kind),
        rule=f"{words.rule} {wording.number_in_words(limit, words.kind)}"
        if shows_limit
        else "",
        passed=passed if isinstance(passed, bool) else None,
        bar=_signal_bar(number, limit)
        if shows_limit and words.kind is wording.Kind.NUMBER
        else None,
    )


def _signal_bar(value: float | None, limit: float | None) -> Bar | None:
    if value is None or limit is None:
        return None
    scale = max(1.0, 1.5 * limit, value)
    return Bar(0.0, round(100 * value / scale, 2), round(100 * limit / scale, 2))


def _times(milliseconds: dict[str, float]) -> tuple[StageTimeLine, ...]:
    total = sum(milliseconds.values()) or 1.0
    lines: list[StageTimeLine] = []
    start = 0.0
    # JSON keeps no order of its own; the pipeline's order is that of the words.
    for stage in sorted(milliseconds, key=_stage_order):
        spent = milliseconds[stage]
        name = wording.STAGES[stage][1] if stage in wording.STAGES else stage
        lines.append(
            StageTimeLine(
                name, wording.time_in_words(spent), _share(start, spent, total)
            )
        )
        start += spent
    return tuple(lines)


def _stage_order(stage: str) -> int:
    order = list(wording.STAGES)
    return order.index(stage) if stage in order else len(order)


def _share(start: float, spent: float, total: float) -> Bar:
    return Bar(round(100 * start / total, 2), max(0.75, round(100 * spent / total, 2)))
