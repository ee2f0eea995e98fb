"""An answer as far as its reader may see it.

REST, pages, admin and the command line only format this value; what is withheld from a
reader is decided only here and by the queries in `models`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kb.documents.models import Document, Section
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.pipeline.gates import COMPETING, CONFIDENCES, NOT_COMPARED, Gate, Reason
from qa.pipeline.replay import flat

Role = AnswerEvidence.Role
# A reference to a piece in a model's reasoning: "number 2", "Nummer 2", "[2]".
_NAMED = re.compile(
    r"(\b(?:number|nummer|piece|passage|evidence|source|beleg) |\[)(\d{1,2})\b",
    re.IGNORECASE,
)

# Reasons of refusals that a question can overcome by saying which entry it means.
_ASKS_BACK = frozenset(
    {
        Reason.NOT_ANSWERED,
        Reason.MODEL_DECLINED,
        Reason.MALFORMED_OUTPUT,
        Reason.UNSUPPORTED,
        Reason.LOW_CONFIDENCE,
        Reason.NO_PROBE,
    }
)


@dataclass(frozen=True, slots=True)
class ShownPiece:
    """A piece of evidence; without words, document and section if it is withheld."""

    number: int
    row: AnswerEvidence
    quote: str = ""
    text: str = ""
    question: str = ""
    document: Document | None = None
    section: Section | None = None


@dataclass(frozen=True, slots=True)
class ShownSegment:
    text: str
    is_sourced: bool
    triggers: str
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two entries that contradict each other; without words if withheld."""

    entry: int
    quote: str
    document: str
    verified: bool
    withheld: bool


@dataclass(frozen=True, slots=True)
class Disagreement:
    conflict: int
    sides: tuple[Side, ...]

    @property
    def is_of_one_verified(self) -> bool:
        """Whether exactly one side is verified and therefore prevails."""
        return sum(side.verified for side in self.sides) == 1


@dataclass(frozen=True, slots=True)
class TokenConfidence:
    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ShownConfidence:
    """What the active probes predicted; numbers in [0, 1]. See `ConfidenceSerializer`."""

    answer: float | None
    early: float | None
    joint: float | None
    tokens: tuple[TokenConfidence, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """Everything of one answer that its reader may see; see `AnswerSerializer`."""

    answer: Answer
    text: str
    short_answer: str
    reasoning: str
    citations: tuple[ShownPiece, ...]
    evidence: tuple[ShownPiece, ...]
    near_misses: tuple[ShownPiece, ...]
    meanings: tuple[ShownPiece, ...]  # near misses that the asker may mean
    segments: tuple[ShownSegment, ...]
    disagreements: tuple[Disagreement, ...]
    not_compared: int
    confidence: ShownConfidence | None


def view(answer: Answer) -> AnswerView:
    """Return the view of the reader for whom `pieces` and `is_withheld` were read."""
    is_answered = answer.outcome == Answer.Outcome.ANSWERED
    is_readable = is_answered and not answer.is_withheld
    read = [Role.CITED, Role.UNUSED, *([Role.NEAR_MISS] if answer.generation else [])]
    evidence = [row for row in answer.pieces if row.role in read]
    evidence.sort(key=lambda row: row.role != Role.CITED)  # stable: still by rank
    cited = [row for row in evidence if row.role == Role.CITED and is_answered]
    numbered = _numbered(evidence)
    near = _numbered(r for r in answer.pieces if r.role == Role.NEAR_MISS)
    return AnswerView(
        answer=answer,
        text=answer.shown_text,
        short_answer=_short_answer(answer, cited) if is_readable else "",
        reasoning=_renumbered(answer.shown_reasoning, numbered),
        citations=_numbered(cited),
        evidence=numbered,
        near_misses=near,
        meanings=_meanings(answer, near),
        segments=_segments(answer)
        if is_answered and not answer.is_draft_withheld
        else (),
        disagreements=tuple(_disagreements(answer)),
        not_compared=not_compared(answer),
        confidence=_confidence(
            answer, token_confidences(answer) if is_readable else ()
        ),
    )


def _meanings(answer: Answer, near: Sequence[ShownPiece]) -> tuple[ShownPiece, ...]:
    """Return the verified entries between which a refused question is ambiguous."""
    count = competing(answer.shown_reason, answer.signals)
    able = [each for each in near if each.row.is_verified and not each.row.is_withheld]
    return tuple(able[:count]) if count and len(able) > 1 else ()


def competing(shown_reason: str, signals: Sequence[Mapping[str, Any]]) -> int:
    """Return between how many entries a refused question is ambiguous; 0 for none."""
    if shown_reason not in _ASKS_BACK:
        return 0
    return int(flat(signals).get(COMPETING) or 0)


def _renumbered(reasoning: str, pieces: Iterable[ShownPiece]) -> str:
    """Replace each piece's number in the prompt by the number shown on the page."""
    shown = {str(piece.row.rank): str(piece.number) for piece in pieces}
    return _NAMED.sub(lambda found: found[1] + shown.get(found[2], found[2]), reasoning)


def _short_answer(answer: Answer, cited: Sequence[AnswerEvidence]) -> str:
    """Return the short answer: the model's, or the quote from an entry shown whole."""
    if answer.gate not in (Gate.VERBATIM, Gate.ENTRY):
        marked: str = answer.generation.get("short_answer", "")
        return marked.strip()
    return next((row.quote for row in cited if row.quote != answer.text), "")


def token_confidences(answer: Answer) -> tuple[TokenConfidence, ...]:
    """Return the draft's tokens with the confidence after each, without withholding."""
    tokens = answer.generation.get("tokens", ())
    along = answer.confidence.get("along", ())
    return (
        tuple(map(TokenConfidence, tokens, along)) if len(along) == len(tokens) else ()
    )


def not_compared(answer: Answer) -> int:
    """Return how many entries were not compared: contradictions may be missed."""
    return int(flat(answer.signals).get(NOT_COMPARED) or 0)


def shown_pieces(answer: Answer) -> tuple[ShownPiece, ...]:
    return _numbered(answer.pieces)


def _numbered(rows: Iterable[AnswerEvidence]) -> tuple[ShownPiece, ...]:
    return tuple(_piece(row, number) for number, row in enumerate(rows, start=1))


def _piece(row: AnswerEvidence, number: int) -> ShownPiece:
    if row.is_withheld:
        return ShownPiece(number, row)
    revision = row.revision
    document, section = _place(row)
    return ShownPiece(
        number,
        row,
        quote=row.quote,
        text=revision.text if revision else "",
        question=revision.question if revision else "",
        document=document,
        section=section,
    )


def _place(row: AnswerEvidence) -> tuple[Document | None, Section | None]:
    """Return the document and section; as of a past moment, those of then, unsaved."""
    if then := row.then:
        title, heading = then.document_title, then.section
        return (
            Document(title=title) if title else None,
            Section(heading=heading) if heading else None,
        )
    return (row.entry.document, row.entry.section) if row.entry else (None, None)


def _segments(answer: Answer) -> tuple[ShownSegment, ...]:
    return tuple(
        ShownSegment(
            each["text"],
            each["is_sourced"],
            ", ".join(each["triggers"]),
            tuple(each["queries"]),
        )
        for each in answer.boundary.get("segments", [])
    )


def _disagreements(answer: Answer) -> Iterable[Disagreement]:
    if not answer.contradictions:
        return
    pieces = {piece.row.entry_id: piece for piece in shown_pieces(answer)}
    for row in answer.contradictions:
        sides = []
        for entry_id, quote in zip(row["entries"], row["quotes"], strict=True):
            piece = pieces.get(entry_id)  # None: erased since, with its mention
            is_hidden = piece is None or piece.row.is_withheld
            document = piece.document if piece else None
            sides.append(
                Side(
                    entry=entry_id,
                    quote="" if is_hidden else quote,
                    document=document.title if document else "",
                    verified=piece is not None and piece.row.is_verified,
                    withheld=is_hidden,
                )
            )
        yield Disagreement(row["conflict_id"], tuple(sides))


def _confidence(
    answer: Answer, tokens: tuple[TokenConfidence, ...]
) -> ShownConfidence | None:
    measured = flat(answer.signals)
    found = {name: measured.get(name) for name in CONFIDENCES}
    if all(value is None for value in found.values()):
        return None
    return ShownConfidence(
        answer=found["answer_confidence"],
        early=found["early_confidence"],
        joint=found["joint_confidence"],
        tokens=tokens,
    )
