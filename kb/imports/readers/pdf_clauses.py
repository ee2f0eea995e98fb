"""Numbered clauses of a PDF ("4.2 We pay ..."): their beginnings and headings."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from .pdf_parts import Line, Part
from .plain_text import ITEM

_CLAUSE = re.compile(
    r"(\d{1,2}(?:\.\d{1,2}){1,5})\.?\s+[\"'(\[\u00ab\u2018\u201c\u201e]?[^\W\d_a-z]"
)
_WORDS_OF_SENTENCE = 5  # of a line that may begin a sentence, its number included
_COLUMN = 60.0  # points by which the lines of one column may begin apart

Number = tuple[int, ...]
Style = tuple[float, bool, int]  # of a heading; sorted from the outermost


def number_of(text: str) -> Number:
    """Return (4, 2) for "4.2 We pay", and () for a line that begins no clause."""
    found = _CLAUSE.match(text)
    return tuple(map(int, found[1].split("."))) if found else ()


def succeeds(number: Number, last: Number) -> bool:
    """Return whether a number is the next one: 4.3 or 4.2.1 after 4.2."""
    return number == (*last, 1) or any(
        number == (*last[:at], each + 1) for at, each in enumerate(last)
    )


class OpenHeadings:
    """The headings that the current text is under, outermost first."""

    def __init__(self) -> None:
        self._open: list[tuple[Style, Number]] = []

    def begin(self, style: Style, number: Number) -> None:
        self._open = [each for each in self._open if each[0] < style]
        self._open.append((style, number))

    def end_before(self, clause: Number) -> Style | None:
        """Close headings of earlier clauses: 4.2 is below 4, but not below 4.1.

        Return the style of the outermost one.
        """
        last = len(clause) - 1
        for at, (style, number) in enumerate(self._open):
            is_beside = len(number) > last and number[:last] == clause[:last]
            if is_beside and number[last] < clause[last]:
                del self._open[at:]
                return style
        return None


def runs_on(line: Line, following: Line, page: Iterable[Part]) -> bool:
    """Return whether the sentence in a clause's line continues in the line below.

    It does if that line begins in lower case, or if its first word did not fit into the
    column any more: a heading is broken on purpose. Before a list item, a line of
    several words is a sentence that introduces the list.
    """
    if (
        abs(following.size - line.size) > 0.5
        or following.bold != line.bold
        or number_of(following.text)
    ):
        return False
    has_sentence = len(line.text.split()) >= _WORDS_OF_SENTENCE
    if ITEM.match(following.text):
        return has_sentence
    word = following.text.split()[0]
    if word.islower():
        return True
    edge = max(
        each.x1
        for each in page
        if isinstance(each, Line)
        and abs(each.size - line.size) < 0.5
        and abs(each.x0 - line.x0) < _COLUMN
    )
    letter = (following.x1 - following.x0) / len(following.text)
    is_full = line.x1 + (len(word) + 1) * letter > edge
    return is_full and has_sentence


def following_lines(pages: Sequence[Sequence[Part]]) -> dict[int, Part]:
    """Return the part that follows each part on the pages, by the part's `id`."""
    parts = [part for page in pages for part in page]
    return {id(part): behind for part, behind in pairwise(parts)}
