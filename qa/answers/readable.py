"""The sentences of an answer that was watched while it was written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb.entries.models import Entry
from qa.answers.models import Answer, AnswerEvidence
from qa.pipeline.gates import CONFIDENCES
from qa.pipeline.replay import flat

from . import wording


@dataclass(frozen=True, slots=True)
class ShownSegment:
    """One sentence: what it rests on, and what was looked for because of it."""

    text: str
    is_sourced: bool
    triggers: str
    queries: Sequence[str]


def segments_of(
    answer: Answer, evidence: Sequence[AnswerEvidence]
) -> tuple[ShownSegment, ...]:
    """Return the sentences that may be read; none of an answer that was not watched.

    Nothing of a refused answer, and nothing that may repeat an entry which the viewer
    may not see.

    Args:
        evidence: The answer's rows, `seen_by` who looks.
    """
    if answer.outcome != Answer.Outcome.ANSWERED or any(
        piece.is_withheld for piece in evidence
    ):
        return ()
    return tuple(
        ShownSegment(
            text=each["text"],
            is_sourced=each["is_sourced"],
            triggers=", ".join(each["triggers"]),
            queries=each["queries"],
        )
        for each in answer.boundary.get("segments", [])
    )


# What of an answer's contradicting sources may be shown to who looks.


@dataclass(frozen=True, slots=True)
class Side:
    """One of two entries that contradict each other; without words where withheld."""

    entry: int
    quote: str
    document: str
    verified: bool
    withheld: bool


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two entries that contradict each other on what an answer rests on."""

    conflict: int
    sides: tuple[Side, ...]


def disagreements_of(
    answer: Answer, evidence: Sequence[AnswerEvidence]
) -> tuple[Disagreement, ...]:
    """Return the contradictions among an answer's evidence, as they were quoted then.

    Args:
        evidence: Its rows with entry, document and revision, `seen_by` who looks.
    """
    pieces = {piece.entry_id: piece for piece in evidence}
    found = []
    for row in answer.contradictions:
        sides = []
        for entry_id, quote in zip(row["entries"], row["quotes"], strict=True):
            piece = pieces.get(entry_id)  # erased since, with its mention
            hidden = piece is None or piece.is_withheld
            entry = piece.entry if piece and not hidden else None
            document = entry.document if entry else None
            revision = piece.revision if piece else None
            sides.append(
                Side(
                    entry=entry_id,
                    quote="" if hidden else quote,
                    document=document.title if document else "",
                    verified=revision is not None
                    and revision.state == Entry.State.VERIFIED,
                    withheld=hidden,
                )
            )
        found.append(Disagreement(row["conflict_id"], tuple(sides)))
    return tuple(found)


# How sure an answer is, as far as the one who looks may read it.


@dataclass(frozen=True, slots=True)
class TokenConfidence:
    """A part of an answer as the model wrote it, and how sure a probe was behind it."""

    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ShownConfidence:
    """What the probes in force said of an answer; every number in [0, 1].

    Attributes:
        answer: By the answer's activations, at its end.
        early: By question and evidence, before the first token.
        joint: By all signals together.
        tokens: The short answer (or else the answer) token by token; empty where there
            is none to read.
    """

    answer: float | None
    early: float | None
    joint: float | None
    tokens: tuple[TokenConfidence, ...]


def confidence_of(answer: Answer) -> ShownConfidence | None:
    """Return what the probes said; None where none said anything.

    The words of a draft that was not shown, or that rests on what the viewer of
    `seen_by` may not see, are left out.
    """
    measured = flat(answer.signals)
    found = {name: measured.get(name) for name in CONFIDENCES}
    if all(value is None for value in found.values()):
        return None
    return ShownConfidence(
        answer=found["answer_confidence"],
        early=found["early_confidence"],
        joint=found["joint_confidence"],
        tokens=token_confidences(answer) if _is_readable(answer) else (),
    )


def token_confidences(answer: Answer) -> tuple[TokenConfidence, ...]:
    """Return the draft's tokens with the confidence after each, whoever looks."""
    tokens, along = (
        answer.generation.get("tokens", ()),
        answer.confidence.get("along", ()),
    )
    if len(along) != len(tokens):
        return ()
    return tuple(map(TokenConfidence, tokens, along))


def short_answer_of(answer: Answer) -> str:
    """Return the words of a shown answer that answer; "" where they are not told."""
    generation: Mapping[str, str] = answer.generation if _is_readable(answer) else {}
    return generation.get("short_answer", "").strip()


def _is_readable(answer: Answer) -> bool:
    return answer.outcome == Answer.Outcome.ANSWERED and not answer.is_withheld


# How sure the language model's activations are along an answer, to be shown as
# shading.


# Equal steps of [0, 1], the least first. The stylesheet has one look for each.
_WORDS = ("very low", "low", "middling", "high", "very high")


@dataclass(frozen=True, slots=True)
class ShadedToken:
    """A part of the answer; its level is 0 (least sure) to 4."""

    text: str
    level: int
    confidence: str
    words: str


@dataclass(frozen=True, slots=True)
class Level:
    """A line of the legend."""

    level: int
    words: str
    limits: str


@dataclass(frozen=True, slots=True)
class Shading:
    """An answer's tokens with how sure the probe was after each, and at the end."""

    tokens: tuple[ShadedToken, ...]
    confidence: str
    words: str


LEGEND = tuple(
    Level(
        level,
        words,
        f"{level / len(_WORDS):.1f} to {(level + 1) / len(_WORDS):.1f}",
    )
    for level, words in enumerate(_WORDS)
)


def shading_of(answer: Answer) -> Shading | None:
    """Return the shading of an answer; None where nothing can be shaded."""
    found = confidence_of(answer)
    if found is None or found.answer is None or not found.tokens:
        return None
    return Shading(
        tokens=tuple(
            ShadedToken(
                text=token.text,
                level=_level(token.confidence),
                confidence=wording.number_in_words(token.confidence),
                words=_WORDS[_level(token.confidence)],
            )
            for token in found.tokens
        ),
        confidence=wording.number_in_words(found.answer),
        words=_WORDS[_level(found.answer)],
    )


def _level(confidence: float) -> int:
    return min(int(confidence * len(_WORDS)), len(_WORDS) - 1)
