"""Cells of CSV and TSV files that a spreadsheet shows and never runs.

A spreadsheet takes a cell that begins with = + - @, a tab or a line end for a formula
(OWASP, "CSV Injection"). An apostrophe before it makes it text. One is also put before
the apostrophes of a text that looks like a cell made so, which makes the rule reversible:
every export writes its cells with `inert`, every import reads them with `original`, and
`original(inert(text)) == text` for every text.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

# Blanks before the sign do not hold every spreadsheet off; the wide forms of the signs
# are folded into the plain ones by some.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")


class _Line:
    """What the csv module writes into: keeps the line that was written last."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text


def csv_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield each row as a line of CSV, its cells written by `inert`."""
    line = _Line()
    writer = csv.writer(line, lineterminator="\r\n")
    for row in rows:
        writer.writerow([inert(cell) for cell in row])
        yield line.text


def inert(text: str) -> str:
    """Return the cell to write for `text`: with an apostrophe before a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def original(cell: str) -> str:
    """Return the text that `inert` made the cell of; another cell comes back as it is."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
