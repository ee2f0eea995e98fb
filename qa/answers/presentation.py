"""An answer as its page shows it, with every word and number ready for the templates.

The page is always built from the stored row, on every path (live, by a plain form, from
a link years later), so that the paths cannot differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.people import person_name
from kb.entries.models import SERVED_STATES, Entry
from kb.text.terms import language_of
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.policy import Policy
from qa.pipeline.values import Calibration
from qa.policies.wording import ReasonWords, Words, words_around

from . import wording
from .layout import Block, Piece, followed_by, laid_out
from .view import AnswerView, ShownConfidence, ShownPiece, view
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
class Card:
    """One piece of evidence as measured at the time, and what changed since."""

    shown: ShownPiece
    pieces: tuple[Piece, ...]  # the quoted words are marked
    verified_by: str
    confidence_words: str
    distance_words: str
    ratio: str  # distance / confidence
    limit: str  # of the ratio; "" without a policy
    is_within_limit: bool
    changes: tuple[str, ...]
    has_page: bool  # that any reader of the entry may open


@dataclass(frozen=True, slots=True)
class ShadedToken:
    """A part of the answer; its level is 0 (least certain) to 4."""

    text: str
    level: int
    confidence: str
    words: str


@dataclass(frozen=True, slots=True)
class Shading:
    """An answer's tokens with the probe's confidence after each, and at the end."""

    tokens: tuple[ShadedToken, ...]
    confidence: str
    words: str
    legend: tuple[tuple[int, str, str], ...]  # level, words, range


@dataclass(frozen=True, slots=True)
class AnswerPage:
    answer: Answer
    view: AnswerView
    language: str  # of the shown text; a refusal's own wording may be in another
    pieces: tuple[Piece, ...]
    blocks: tuple[Block, ...]  # `pieces` as paragraphs, lists and tables
    is_verbatim: bool
    is_entry: bool
    cited: tuple[Card, ...]
    unused: tuple[Card, ...]
    near_misses: tuple[Card, ...]
    waterfall: tuple[Step, ...]
    shading: Shading | None
    recorded: tuple[SignalLine, ...]  # measured, without a threshold
    times: tuple[StageTimeLine, ...]
    total_time: str
    reason: ReasonWords | None
    not_compared: str
    rests_on_unreviewed: bool
    is_stale: bool
    thresholds_from: str
    announcement: str


_THRESHOLDS_FROM = {
    Calibration.STALE: "its thresholds were set for other models",
    Calibration.HAND_SET: "its thresholds were not calibrated on labelled answers",
    Calibration.SELF_CALIBRATED: "its thresholds were chosen by the knowledge base's own questions",
    Calibration.CURRENT: "its thresholds were calibrated on labelled answers",
}


def thresholds_from(answer: Answer) -> str:
    """Describe where the deciding thresholds came from; "" if nothing was decided."""
    state = answer.calibration
    return _THRESHOLDS_FROM[Calibration(state)] if state else ""


def words_of(answer: Answer) -> Words:
    """Return the wordings that its page shows around the text."""
    is_refused = answer.outcome == Answer.Outcome.REFUSED
    return words_around(language=answer.shown_language, is_refused=is_refused)


def present(answer: Answer, *, at: datetime) -> AnswerPage:
    """Return what the page of `answer` shows.

    Args:
        answer: Decided or not, `seen_by` the reader; its `pieces` by rank, with entry,
            document, section, revision and author loaded, `latest_number` annotated.
        at: Changes of its entries up to this moment are shown.
    """
    policy = answer.policy.as_value() if answer.policy else None
    shown, words = view(answer), words_of(answer)
    answered = answer.outcome == Answer.Outcome.ANSWERED
    unused = [piece for piece in shown.evidence if not piece.row.is_cited and answered]
    labels = words.labels
    cards = _cards(shown.citations, policy, at, labels)
    reason = words.reasons[Reason(answer.shown_reason)] if answer.shown_reason else None
    is_verbatim = answered and answer.gate == Gate.VERBATIM
    is_entry = answered and answer.gate == Gate.ENTRY
    numbers = {piece.row.rank: piece.number for piece in shown.citations}
    cited = (
        _joined_pieces(shown.text, shown.citations)
        if is_entry
        else _answer_pieces(
            shown.text,
            numbers,
            reads_marks=answered and not (is_verbatim or answer.is_unsourced),
        )
    )
    pieces = _emphasised(cited, shown.short_answer)
    after = _sources_after(pieces, numbers)
    return AnswerPage(
        answer=answer,
        view=shown,
        language=answer.language
        if answered
        else language_of(shown.text) or answer.shown_language,
        pieces=(*pieces, Piece(" "), *after) if after else pieces,
        blocks=followed_by(laid_out(pieces), after),
        is_verbatim=is_verbatim,
        is_entry=is_entry,
        cited=cards,
        unused=_cards(unused, policy, at, labels),
        near_misses=_cards(shown.near_misses, policy, at, labels),
        waterfall=waterfall(answer),
        shading=_shading(shown.confidence),
        recorded=recorded_signals(answer),
        times=stage_times(answer.milliseconds),
        total_time=total_time(answer.milliseconds),
        reason=reason,
        not_compared=labels["not_compared_why"].format(count=shown.not_compared)
        if shown.not_compared
        else "",
        rests_on_unreviewed=any(card.shown.row.is_machine_written for card in cards),
        is_stale=answer.calibration == Calibration.STALE,
        thresholds_from=thresholds_from(answer),
        announcement=_announcement(
            answer, words, reason, len(cards), len(shown.meanings)
        ),
    )


def _announcement(
    answer: Answer,
    words: Words,
    reason: ReasonWords | None,
    citations: int,
    meanings: int,
) -> str:
    match answer.outcome:
        case Answer.Outcome.ANSWERED if answer.is_unsourced:
            return f"Answered without a source. {answer.shown_text}"
        case Answer.Outcome.ANSWERED:
            sources = "1 source" if citations == 1 else f"{citations} sources"
            return f"Answered, with {sources}. {answer.shown_text}"
        case Answer.Outcome.REFUSED:
            why = f"{reason.title}. " if reason else ""
            asks = words.labels["asks_back_of"].format(count=meanings)
            said = f"{words.labels['not_answered']}. {why}{answer.shown_text}"
            return f"{said} {asks}" if meanings else said
        case Answer.Outcome.FAILED:
            return "The question is saved, but could not be decided."
        case _:
            return "Working on it."


def _answer_pieces(
    text: str, numbers: Mapping[int, int], *, reads_marks: bool
) -> tuple[Piece, ...]:
    """Split a text at its citation marks.

    Args:
        numbers: Each card's number by the number that its piece had in the prompt.
        reads_marks: Whether a mark in the text is a citation; text written by a person
            keeps its brackets.
    """
    pieces: list[Piece] = []
    end = 0
    for mark in _MARK.finditer(text) if reads_marks else ():
        marked = [int(number) for number in mark[1].split(",")]
        if all(number in numbers for number in marked):
            pieces.append(Piece(text[end : mark.start()]))
            pieces += [_citation(numbers[number]) for number in marked]
            end = mark.end()
    pieces.append(Piece(text[end:]))
    return tuple(piece for piece in pieces if piece.text)


def _joined_pieces(text: str, cited: Sequence[ShownPiece]) -> tuple[Piece, ...]:
    """Split joined entries at the citation mark after each; other marks are theirs."""
    pieces: list[Piece] = []
    for each in cited:
        before, mark, after = text.partition(f"{each.text} [{each.row.rank}]")
        if before.strip() or not mark:
            break  # a single entry has no mark, nor has a withheld text
        pieces += (Piece(f"{before}{each.text} "), _citation(each.number))
        text = after
    pieces.append(Piece(text))
    return tuple(piece for piece in pieces if piece.text)


def _sources_after(
    pieces: Sequence[Piece], numbers: Mapping[int, int]
) -> tuple[Piece, ...]:
    """Return the citations to show after a text that contains none."""
    if any(piece.citation is not None for piece in pieces):
        return ()
    return tuple(_citation(number) for number in numbers.values())


def _emphasised(pieces: Sequence[Piece], short: str) -> tuple[Piece, ...]:
    """Mark the first occurrence of the short answer, unless it contains a citation."""
    found = next(
        (n for n, p in enumerate(pieces) if p.citation is None and short in p.text),
        None,
    )
    if not short or found is None or short == pieces[found].text.strip():
        return tuple(pieces)  # a short answer that is the whole text is not marked
    before, words, after = pieces[found].text.partition(short)
    parts = (Piece(before), Piece(words, is_short=True), Piece(after))
    marked = tuple(part for part in parts if part.text)
    return (*pieces[:found], *marked, *pieces[found + 1 :])


def _citation(number: int) -> Piece:
    return Piece(f"[{number}]", number)


def _cards(
    pieces: Iterable[ShownPiece],
    policy: Policy | None,
    at: datetime,
    labels: Mapping[str, str],
) -> tuple[Card, ...]:
    return tuple(_card(piece, policy, at, labels) for piece in pieces)


def _card(
    piece: ShownPiece, policy: Policy | None, at: datetime, labels: Mapping[str, str]
) -> Card:
    row = piece.row
    verifier = row.entry.verified_by if row.entry and row.is_verified else None
    limit = _limit(policy, is_verified=row.is_verified) if policy else None
    apart = wording.numbers_apart(row.ratio, row.ratio if limit is None else limit)
    return Card(
        shown=piece,
        pieces=_quoted(piece.text, piece.quote),
        verified_by=person_name(verifier),
        confidence_words=wording.confidence_in_words(row.confidence),
        distance_words=wording.distance_in_words(row.distance, policy)
        if policy
        else "",
        ratio=apart[0],
        limit="" if limit is None else apart[1],
        is_within_limit=limit is not None and row.ratio < limit,
        changes=tuple(labels[change] for change in _changes(row, at)),
        has_page=row.entry is not None and row.entry.state in SERVED_STATES,
    )


def _limit(policy: Policy, *, is_verified: bool) -> float:
    return policy.alpha if is_verified else min(policy.alpha, policy.alpha_unverified)


def _quoted(text: str, quote: str) -> tuple[Piece, ...]:
    """Split a text at its quoted words; a quote of the whole text is not marked."""
    is_part = quote not in ("", text)
    before, found, after = text.partition(quote) if is_part else (text, "", "")
    pieces = (Piece(before), Piece(found, is_short=True), Piece(after))
    return tuple(piece for piece in pieces if piece.text)


def _changes(row: AnswerEvidence, at: datetime) -> tuple[str, ...]:
    entry, revision = row.entry, row.revision
    if entry is None or revision is None:
        return ()
    changes = []
    if entry.state == Entry.State.RETIRED:
        changes.append("retired_since")
    elif getattr(row, "latest_number", revision.number) > revision.number:
        changes.append("edited_since")
    if entry.has_expired(at):
        changes.append("expired_since")
    if entry.upkeep.is_overdue(at):
        changes.append("review_overdue")
    return tuple(changes)


# Equal steps of [0, 1], the lowest first. The stylesheet has a style for each.
_LEVELS = ("very low", "low", "medium", "high", "very high")


def _shading(found: ShownConfidence | None) -> Shading | None:
    """Return the tokens shaded by confidence, or None if there are no confidences."""
    if found is None or found.answer is None or not found.tokens:
        return None
    count = len(_LEVELS)
    return Shading(
        tokens=tuple(
            ShadedToken(
                token.text,
                _level(token.confidence),
                wording.number_in_words(token.confidence),
                _LEVELS[_level(token.confidence)],
            )
            for token in found.tokens
        ),
        confidence=wording.number_in_words(found.answer),
        words=_LEVELS[_level(found.answer)],
        legend=tuple(
            (level, words, f"{level / count:.1f} to {(level + 1) / count:.1f}")
            for level, words in enumerate(_LEVELS)
        ),
    )


def _level(confidence: float) -> int:
    return min(int(confidence * len(_LEVELS)), len(_LEVELS) - 1)
