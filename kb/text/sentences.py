"""A sentence read for comparison: quantities, denials, poles of axes, content."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from . import vocabulary
from .quantities import Quantity, find_quantities
from .words import Span, Word, read_words

_FRONT_WORDS: Final = 9
_EMPTY: Final = vocabulary.STOP_WORDS.union(
    vocabulary.DISTRIBUTIVES,
    vocabulary.LEADS,
    *(p | n for p, n in vocabulary.AXES.values()),
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The parts of a sentence that are compared.

    Attributes:
        words: All words, in order.
        content: Positions of the content words: no quantities, stop words, denials or
            words of an axis.
        denials: Positions of negations and denying words; an odd number denies.
        poles: By axis, 1 or -1 after any negation, and the position of the word.
        front: Positions of a leading phrase that says when or for whom it holds.
    """

    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]
    content: tuple[int, ...]
    denials: tuple[int, ...]
    poles: dict[str, tuple[int, int]]
    front: tuple[int, ...]

    @property
    def is_denied(self) -> bool:
        return len(self.denials) % 2 == 1

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(self.words[at].stem for at in self.content)

    @property
    def span(self) -> Span:
        return Span(self.words[0].span.start, self.words[-1].span.end)


@lru_cache(maxsize=256)  # one entry is compared with all of its neighbours
def read_sentence(
    text: str, language: str, span: Span | None = None
) -> Sentence | None:
    words = read_words(text, language, span)
    if not words:
        return None
    quantities = find_quantities(words)
    taken = {at for quantity in quantities for at in quantity.words}
    denials = tuple(
        at for at, word in enumerate(words) if _denies(words, at) and word.said
    )
    content = tuple(
        at
        for at, word in enumerate(words)
        if at not in taken and at not in denials and _is_content(words, at)
    )
    return Sentence(
        tuple(words),
        tuple(quantities),
        content,
        denials,
        _poles(words, denials),
        _front(words),
    )


def _denies(words: Sequence[Word], at: int) -> bool:
    said = words[at].said
    if said in {"no", "nein"}:  # alone, it is an answer that denies nothing
        return at > 0 or len(words) > 1
    return (
        said in vocabulary.NEGATIONS
        or said in vocabulary.DENYING
        or said.endswith("-free")
    )


def _is_content(words: Sequence[Word], at: int) -> bool:
    word = words[at]
    if (
        at
        and words[at - 1].said in vocabulary.DESIGNATED
        and (word.is_number or len(word.said) == 1)
    ):
        return True
    if word.is_name and len(word.said) == 1 and word.said != "i":
        return True  # "hall A"
    if word.said in _EMPTY:
        return False
    return not word.is_number and (len(word.said) > 1 or word.is_name)


def _poles(words: Sequence[Word], denials: Sequence[int]) -> dict[str, tuple[int, int]]:
    """Return which pole of each axis the sentence takes.

    A negation reverses a word up to four words after it, or directly before it
    ("need not").
    """
    turning = [at for at in denials if words[at].said in vocabulary.NEGATIONS]
    found: dict[str, tuple[int, int]] = {}
    for axis, (positive, negative) in vocabulary.AXES.items():
        for at, word in enumerate(words):
            side = (word.said in positive) - (word.said in negative)
            if side and axis not in found:
                turned = sum(-1 <= at - n <= 4 and at != n for n in turning) % 2
                found[axis] = (-side if turned else side, at)
    return found


def _front(words: Sequence[Word]) -> tuple[int, ...]:
    """Return a phrase before the subject: up to a comma, or else its first words."""
    if words[0].said not in vocabulary.FRONTING:
        return ()
    for at in range(1, min(_FRONT_WORDS, len(words))):
        gap = words[at].span.start - words[at - 1].span.end
        if gap > 1:  # a comma
            return tuple(range(at))
        if words[at].said in {"the", "a", "an", "you", "we", "no"} and at > 1:
            return tuple(range(at))
    return tuple(range(min(3, len(words))))
