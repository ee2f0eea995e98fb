"""How sure the language model's activations are along an answer, to be shown as shading."""

from dataclasses import dataclass

from qa.models import Answer
from qa.services.confidence import confidence_of

from . import wording

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
