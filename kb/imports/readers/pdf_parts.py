"""The parts of a PDF's page: lines and tables; whether a table has headings."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class Line:
    """Words side by side, without a gap as between columns; lengths in points."""

    text: str
    x0: float
    x1: float
    top: float
    bottom: float
    size: float  # of its first letter; 0 if it is not upright
    bold: bool  # all of it

    @property
    def height(self) -> float:
        return max(self.bottom - self.top, 1.0)

    def is_beside(self, other: "Line") -> bool:
        shared = min(self.bottom, other.bottom) - max(self.top, other.top)
        return shared > 0.5 * min(self.height, other.height)

    def shares_width(self, other: "Line") -> bool:
        """Return whether one is above the other, at any distance."""
        return min(self.x1, other.x1) > max(self.x0, other.x0)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells with their line breaks; the first has headings if `is_headed`."""

    rows: tuple[tuple[str, ...], ...]
    columns: tuple[float, ...]  # where they begin, in points
    top: float
    bottom: float
    caption: str = ""
    is_headed: bool = True


Part = Line | Table


def has_headings(rows: Sequence[Sequence[Sequence[Line]]], *, default: bool) -> bool:
    """Return whether a table's first row names its columns, by bold type and digits."""
    bold = [all(line.bold for cell in row for line in cell) for row in rows]
    if bold[0]:
        return not all(bold)
    is_named = default
    for head, *below in zip(*rows, strict=True):
        if sum(map(_has_digit, below)) > 0.7 * len(below):
            if _is_number(head):
                return False
            is_named |= not _has_digit(head)
    return is_named


def _has_digit(cell: Iterable[Line]) -> bool:
    return any(map(str.isdigit, _said(cell)))


def _is_number(cell: Iterable[Line]) -> bool:
    said = _said(cell)
    digits = sum(map(str.isdigit, said))
    return digits > sum(map(str.isalpha, said)) and not _YEAR.fullmatch(said)


def _said(cell: Iterable[Line]) -> str:
    return "".join(line.text for line in cell)
