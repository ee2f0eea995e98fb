"""Distances and indents of a PDF's lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from .pdf_parts import Line, Part

INDENT = 3.0  # points; a line that begins further right is indented
_COLUMN = 60.0  # points; further right is another column
_PITCH = 1.2  # between lines of a paragraph, in font sizes


def pitch_of(lines: Sequence[Line]) -> float:
    """Return the usual distance of lines within a paragraph, in font sizes."""
    found = [
        (b.top - a.top) / b.size
        for a, b in pairwise(lines)
        if b.size and a.size == b.size and a.shares_width(b)
        if b.text[0].isalpha() and not b.text[0].isupper()
    ]
    return median([each for each in found if 0.8 < each < 3] or [_PITCH])


def distance_of(above: Part | None, line: Line) -> float | None:
    if not isinstance(above, Line) or not (line.size and above.size):
        return None
    distance = (line.top - above.top) / max(line.size, above.size)
    return distance if distance > 0 and above.shares_width(line) else None


def with_rows_joined(page: Sequence[Part]) -> list[Part]:
    """Join lines that were written side by side on a page."""
    parts: list[Part] = []
    for part in page:
        last = parts[-1] if parts else None
        if (
            isinstance(last, Line)
            and isinstance(part, Line)
            and part.x0 >= last.x1
            and last.size == part.size
            and last.is_beside(part)
        ):
            parts[-1] = replace(
                last,
                text=f"{last.text} {part.text}",
                x1=part.x1,
                bold=last.bold and part.bold,
            )
        else:
            parts.append(part)
    return parts


def depths(lefts: Iterable[float]) -> Iterator[int]:
    """Yield the nesting depth of each list item, by where it begins."""
    outer: list[float] = []
    for left in lefts:
        if outer and left > outer[-1] + _COLUMN:
            outer = [left]  # the list goes on in the next column
        while outer and left < outer[-1] - INDENT:
            outer.pop()
        if not outer or left > outer[-1] + INDENT:
            outer.append(left)
        yield len(outer) - 1


def rounded(size: float) -> float:
    return round(size * 2) / 2
