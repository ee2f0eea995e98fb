"""An answer's row as what its page shows: plain values, every word and number ready.

The page is always made from the stored row, on every path (live, by a plain form, from
a link years later), so that they cannot differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kb.entries.models import Entry
from qa.answers.models import Answer, AnswerEvidence
from qa.answers.readable import (
    Disagreement,
    ShownSegment,
    disagreements_of,
    segments_of,
    short_answer_of,
)
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.policy import Policy
from qa.pipeline.values import Calibration

from . import wording
from .readable import LEGEND, Level, Shading, shading_of
from .waterfall import (
    SignalLine,
    StageTimeLine,
    Step,
    recorded_signals,
    stage_times,
    total_time,
    waterfall,
)

# A passage number as a model writes it: [1], [1, 3].
_MARK = re.compile(r"\[(\d{1,2}(?:\s*,\s*\d{1,2})*)\]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; `citation` is the number of the card it points to.

    `is_short` marks the words of an answer that answer the question.
    """

    text: str
    citation: int | None = None
    is_short: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """One piece of evidence as it was measured then, and what became of it since."""

    number: int
    entry_id: int | None
    is_withheld: bool  # then it has no words
    question: str
    pieces: tuple[Piece, ...]  # those with a citation are the quoted words
    document: str
    source: str
    section: str
    is_verified: bool
    is_machine_written: bool  # by a language model, and nobody had reviewed it
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
class AnswerPage:
    """Everything that is shown of one answer."""

    answer: Answer
    pieces: tuple[Piece, ...]
    reasoning: str
    is_verbatim: bool
    is_unsourced: bool  # from the language model's own knowledge
    segments: tuple[ShownSegment, ...]  # of an answer that was watched
    cited: tuple[Card, ...]
    unused: tuple[Card, ...]
    near_misses: tuple[Card, ...]
    disagreements: tuple[Disagreement, ...]
    waterfall: tuple[Step, ...]
    shading: Shading | None
    legend: tuple[Level, ...]
    recorded: tuple[SignalLine, ...]  # measured and not held against anything
    times: tuple[StageTimeLine, ...]
    total_time: str
    reason: wording.ReasonWords | None
    rests_on_unreviewed: bool
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
            loaded, `latest_number` annotated, and both `seen_by` who looks.
        at: The moment against which an entry's later fate is told.
    """
    policy = answer.policy.as_value() if answer.policy else None
    answered = answer.outcome == Answer.Outcome.ANSWERED
    role = AnswerEvidence.Role
    cited = [row for row in evidence if row.role == role.CITED and answered]
    unused = [row for row in evidence if row.role == role.UNUSED and answered]
    near = [row for row in evidence if row.role == role.NEAR_MISS]
    cards = _cards(cited, 1, policy, at)
    reason = (
        wording.REASONS[Reason(answer.shown_reason)] if answer.shown_reason else None
    )
    is_verbatim = answered and answer.gate == Gate.VERBATIM
    is_unsourced = answer.is_unsourced
    return AnswerPage(
        answer=answer,
        pieces=_emphasised(
            _answer_pieces(
                answer.shown_text,
                {row.rank: number for number, row in enumerate(cited, start=1)},
                reads_marks=answered and not is_verbatim and not is_unsourced,
            ),
            short_answer_of(answer),
        ),
        reasoning="" if any(row.is_withheld for row in evidence) else answer.reasoning,
        is_verbatim=is_verbatim,
        is_unsourced=is_unsourced,
        segments=segments_of(answer, evidence),
        cited=cards,
        unused=_cards(unused, len(cards) + 1, policy, at),
        near_misses=_cards(near, 1, policy, at),
        disagreements=disagreements_of(answer, evidence),
        waterfall=waterfall(answer),
        shading=shading_of(answer),
        legend=LEGEND,
        recorded=recorded_signals(answer),
        times=stage_times(answer.milliseconds),
        total_time=total_time(answer.milliseconds),
        reason=reason,
        rests_on_unreviewed=any(card.is_machine_written for card in cards),
        is_stale=answer.calibration == Calibration.STALE,
        is_hand_set=answer.calibration == Calibration.HAND_SET,
        announcement=_announcement(answer, reason, len(cards)),
    )


def _announcement(
    answer: Answer, reason: wording.ReasonWords | None, citations: int
) -> str:
    match answer.outcome:
        case Answer.Outcome.ANSWERED if answer.is_unsourced:
            return f"Answered without a source. {answer.shown_text}"
        case Answer.Outcome.ANSWERED:
            sources = "1 source" if citations == 1 else f"{citations} sources"
            return f"Answered, with {sources}. {answer.shown_text}"
        case Answer.Outcome.REFUSED:
            why = f"{reason.title}. " if reason else ""
            return f"Not answered. {why}{answer.shown_text}"
        case Answer.Outcome.FAILED:
            return "The question is kept, but could not be decided."
        case _:
            return "Working on it."


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


def _emphasised(pieces: Sequence[Piece], short: str) -> tuple[Piece, ...]:
    """Mark the words that answer, where they first stand; a mark inside hides them."""
    found = next(
        (n for n, p in enumerate(pieces) if p.citation is None and short in p.text),
        None,
    )
    if not short or found is None or short == pieces[found].text.strip():
        return tuple(pieces)  # all of a text stands out by itself
    before, words, after = pieces[found].text.partition(short)
    parts = (Piece(before), Piece(words, is_short=True), Piece(after))
    marked = tuple(part for part in parts if part.text)
    return (*pieces[:found], *marked, *pieces[found + 1 :])


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
    is_verified = revision is not None and revision.state == Entry.State.VERIFIED
    verifier = entry.verified_by if entry and is_verified else None
    limit = _limit(policy, is_verified=is_verified) if policy else None
    document = None if row.is_withheld or entry is None else entry.document
    section = None if row.is_withheld or entry is None else entry.section
    said = None if row.is_withheld else revision
    return Card(
        number=number,
        entry_id=row.entry_id,
        is_withheld=row.is_withheld,
        question=said.question if said else "",
        pieces=_quoted(said.text, row.quote, number) if said else (),
        document=document.title if document else "",
        source=document.source if document else "",
        section=section.heading if section else "",
        is_verified=is_verified,
        is_machine_written=revision is not None
        and revision.state == Entry.State.PROPOSED,
        verified_by=(verifier.get_full_name() or verifier.get_username())
        if verifier
        else "",
        verified_at=entry.verified_at if entry and is_verified else None,
        valid_until=revision.valid_until if revision else None,
        confidence=f"{row.confidence:.2f}",
        confidence_words=wording.confidence_in_words(row.confidence),
        distance=f"{row.distance:.2f}",
        distance_words=wording.distance_in_words(row.distance, policy)
        if policy
        else "",
        ratio=f"{ratio:.2f}",
        limit="" if limit is None else f"{limit:.2f}",
        is_within_limit=limit is not None and ratio < limit,
        changes=_changes(row, at),
    )


def _limit(policy: Policy, *, is_verified: bool) -> float:
    return policy.alpha if is_verified else min(policy.alpha, policy.alpha_unverified)


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
    if entry is None or revision is None:
        return ()
    changes = []
    if entry.state == Entry.State.RETIRED:
        changes.append("Retired since")
    elif getattr(row, "latest_number", revision.number) > revision.number:
        changes.append("Edited since")
    if entry.valid_until is not None and entry.valid_until <= at:
        changes.append("Expired since")
    if entry.upkeep.is_overdue(at):
        changes.append("Review overdue")
    return tuple(changes)
