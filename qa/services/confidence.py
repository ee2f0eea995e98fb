"""How sure an answer is, as far as the one who looks may read it."""

from collections.abc import Mapping
from dataclasses import dataclass

from qa.models import Answer
from qa.pipeline.replay import flat
from qa.pipeline.scores import CONFIDENCES


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
