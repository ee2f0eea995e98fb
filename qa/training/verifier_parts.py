"""What of an entry answers a question: its row, item or sentence, and the entry without it.

A list or a table that has everything but what is asked looks like an answer, and is none.
What a verifier learns from is that the same entry answers with the line and not without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kb.text.layout import Part, parts_of
from kb.text.terms import terms
from kb.text.words import Span

from .knowledge_sets import whole_words

_MIN_PARTS: Final = 3  # of two, what is left is seldom taken for an answer
_ENDS: Final = " .,;:"
_MARKS: Final = " \t-*\u2022|0123456789.)("  # of an item or a row, before and after it


@dataclass(frozen=True, slots=True)
class TakenApart:
    """An entry's parts as they are read alone, and its text without those that answer.

    Attributes:
        answering: At least one.
        rest: Empty where so few parts are there that nothing is left to be taken for an
            answer.
    """

    answering: tuple[str, ...]
    others: tuple[str, ...]
    rest: str


def take_apart(text: str, words: str) -> TakenApart | None:
    """Take a text apart by the parts that hold these words, or lie in them.

    None where no part does, or all do: of a row's cells one alone would answer, and which
    one is not known.
    """
    parts = parts_of(text)
    places = _places(text, words)
    held = [any(_meet(part.span, place) for place in places) for part in parts]
    if not any(held) or all(held):
        return None
    answering = [part for part, holds in zip(parts, held, strict=True) if holds]
    others = [part for part, holds in zip(parts, held, strict=True) if not holds]
    said = [part.span.within(text).rstrip(_ENDS) for part in answering]
    return TakenApart(
        tuple(part.read for part in answering),
        # An item below one that answers is read with it.
        tuple(p.read for p in others if not any(each in p.read for each in said)),
        _without(text, answering) if len(parts) >= _MIN_PARTS and others else "",
    )


def most_alike(question: str, parts: Sequence[str]) -> list[str]:
    """Return parts in the order of how many of the question's words they have."""
    wanted = set(terms(question).words)
    return sorted(parts, key=lambda each: -len(wanted & set(terms(each).words)))


def _places(text: str, words: str) -> list[Span]:
    if not words:
        return []
    return [Span(*found.span()) for found in whole_words(words).finditer(text)]


def _meet(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _without(text: str, parts: Sequence[Part]) -> str:
    for part in sorted(parts, key=lambda each: -each.span.start):
        start = text.rfind("\n", 0, part.span.start) + 1
        end = text.find("\n", part.span.end)
        end = len(text) if end < 0 else end + 1
        beside = text[start : part.span.start] + text[part.span.end : end]
        if beside.strip(_MARKS + "\n"):  # a sentence among others of its line
            start, end = part.span.start, part.span.end
        before, after = text[:start].rstrip(" "), text[end:].lstrip(" ")
        # Of a cell its bars stay, so that the others keep their headings.
        is_within = before and before[-1] != "\n" and after and after[0] != "\n"
        text = f"{before}{' ' if is_within else ''}{after}"
    return "\n".join(line for line in text.splitlines() if line.strip()).strip()
