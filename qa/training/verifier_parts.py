"""Splitting an entry into the part that answers a question and the entry without it.

A list or table that has everything except what is asked looks like an answer, but is
not. The verifier learns that the same entry answers with the line and does not without
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kb.text.layout import Part, parts_of
from kb.text.terms import terms
from kb.text.words import Span

from .knowledge_sets import whole_words

_MIN_PARTS: Final = 3  # of two parts, the one left is seldom taken for an answer
_ENDS: Final = " .,;:"
_MARKS: Final = " \t-*\u2022|0123456789.)("  # markers before and after an item or a row


@dataclass(frozen=True, slots=True)
class TakenApart:
    """An entry's parts as read on their own, and its text without those that answer.

    Attributes:
        answering: The parts that answer; at least one.
        others: The other parts.
        rest: The text without the answering parts; empty if there are too few parts to
            leave anything like an answer.
    """

    answering: tuple[str, ...]
    others: tuple[str, ...]
    rest: str


def take_apart(text: str, words: str) -> TakenApart | None:
    """Split a text into the parts that overlap these words and the others.

    Returns None if no part does, or all do: only one cell of a row would be the answer,
    and it is unknown which.
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
    """Sort parts by how many of the question's words they contain, most first."""
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
        if beside.strip(_MARKS + "\n"):  # a sentence among others on its line
            start, end = part.span.start, part.span.end
        before, after = text[:start].rstrip(" "), text[end:].lstrip(" ")
        # Removing a cell keeps its bars, so that the other cells keep their headings.
        is_within = before and before[-1] != "\n" and after and after[0] != "\n"
        text = f"{before}{' ' if is_within else ''}{after}"
    return "\n".join(line for line in text.splitlines() if line.strip()).strip()
