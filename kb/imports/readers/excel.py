"""Excel: each visible sheet is a table, whose first row of several cells names the columns."""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import chain, islice
from typing import IO, Any
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile, ZipFile, ZipInfo

from openpyxl.reader.excel import ExcelReader
from openpyxl.utils.escape import unescape
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.xml.constants import ARC_STYLE

from .columns import MAX_COLUMNS, SAMPLE, header_of
from .formats import BadRow, FileItem, ImportFileError, Limits, check_archive
from .header import Row, rows_above
from .rows import items_of

_UNNAMED = re.compile(
    r"(?:(?:sheet|tabelle|blatt|table) ?\d*|faqs?|q ?& ?a|questions?(?: (?:and|&) answers?)?|"
    r"answers?|fragen|data|export)",
    re.IGNORECASE,
)
_BROKEN = (InvalidFileException, ParseError, BadZipFile, KeyError, ValueError,
           AttributeError, TypeError, IndexError, NotImplementedError, OSError, EOFError)  # fmt: skip

# What stands around the digits: words in quotes, escaped signs, a currency in brackets, and
# room for a sign or up to the cell's edge, which shows nothing.
_PARTS = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|'
    r"\[[^\]]*\]|[_*]."
)
_POWER = re.compile(r"E[+-]")
_DIGITS = re.compile(r"(?P<whole>[#0?][#0?,]*)(?:\.(?P<decimals>[0#?]+))?")
# Words of a format ("days") are mostly in the column's heading too.
_UNIT = re.compile(r"[%$\u00a2-\u00a5\u20a0-\u20cf]|\b(?:[A-Z]{3}|kr|Fr)\b")


def read_excel(stream: IO[bytes], limits: Limits, language: str) -> Iterator[FileItem]:
    """Read row by row; of a formula, the result that was saved with it.

    A sheet that is no table is reported and the others are read.
    """
    check_archive(stream, limits, "xl/workbook.xml", "Excel workbook")
    try:
        yield from items_of(_sheets(stream), language)
    # The library lets every layer of a damaged file speak for itself.
    except _BROKEN as error:
        if isinstance(error, ImportFileError):
            raise
        raise ImportFileError(f"The workbook cannot be read: {error}.") from error


class _Archive(ZipFile):
    """The workbook's parts, with the empty fills of cells that the library refuses."""

    def read(self, name: str | ZipInfo, pwd: bytes | None = None) -> bytes:
        found = super().read(name, pwd)
        if name != ARC_STYLE:
            return found
        return re.sub(
            rb"<(\w+:)?fill\s*/>", rb"<\1fill><\1patternFill/></\1fill>", found
        )


def _sheets(stream: IO[bytes]) -> Iterator[Row | FileItem]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that hold no text of cells
        reader = ExcelReader(stream, read_only=True, data_only=True, keep_links=False)
        reader.archive = _Archive(stream)
        reader.read()
    refused: list[BadRow] = []
    is_read = False
    sheets = [each for each in reader.wb.worksheets if each.sheet_state == "visible"]
    for sheet in sheets:
        sheet.reset_dimensions()  # what a program wrote of them may be wrong
        rows = _filled(sheet)
        first = [*islice(rows, SAMPLE)]
        if not first:
            continue
        said = [[*map(_said, cells)] for _, cells in first]
        above, title = rows_above(said)
        names = said[above]
        while names and not names[-1]:
            names.pop()
        try:
            header = header_of(
                names[: MAX_COLUMNS + 1],
                said[above + 1 :],
                takes_tables=True,
                title=title,
                sheet=_name_of(sheet) if len(sheets) > 1 else "",
            )
        except ImportFileError as error:
            place = f"{sheet.title}, row {first[above][0]}"
            refused.append(BadRow(place, str(error)))
            continue
        is_read = True
        yield from header.notes
        below = chain(first[above + 1 :], rows)
        yield from header.named(_cells(sheet.title, below, len(header.columns)))
    if not is_read:
        raise ImportFileError(
            refused[0].reason if refused else "The workbook has no rows."
        )
    yield from refused


def _name_of(sheet: Any) -> str:  # noqa: ANN401  # the library's
    """Return what a sheet is called; nothing where nobody gave it a name."""
    return "" if _UNNAMED.fullmatch(sheet.title) else sheet.title.strip()


def _filled(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:  # noqa: ANN401  # the library's
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        if any(map(_said, cells)):
            yield number, cells


def _cells(
    sheet: str, rows: Iterable[tuple[int, Sequence[Any]]], count: int
) -> Iterator[tuple[str, list[str]] | BadRow]:
    for number, cells in rows:
        place = f"{sheet}, row {number}"
        read = cells[:count]
        if any(cell.data_type == "e" for cell in read):
            yield BadRow(place, "A formula in it has an error; correct it in Excel.")
        else:
            yield place, [*map(_said, read)]


def _said(cell: Any) -> str:  # noqa: ANN401  # the library's, or what stands for an empty one
    """Return a value as Excel shows it; what it would round away stays."""
    value: object = cell.value
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case int() | float():
            return shown(value, cell.number_format or "")
        case datetime():
            is_day = value.time() == time()
            return str(value.date()) if is_day else value.isoformat(" ", "minutes")
        case date() | time():
            return value.isoformat()
    return str(unescape(str(value))).strip()


def shown(value: float, number_format: str) -> str:
    """Return a number as a cell of this format shows it, with all digits that it has."""
    positive = number_format.split(";")[0]
    if "%" in _PARTS.sub("", positive):
        return f"{value * 100:.10g}%"
    text = _PARTS.sub(lambda part: "".join(filter(None, part.groups())), positive)
    digits = _DIGITS.search(text)
    if digits is None or _POWER.search(text):
        return f"{value:.15g}"
    before, after = text[: digits.start()].strip(), text[digits.end() :].strip()
    places = len(re.sub(r"[#?]", "", digits["decimals"] or ""))
    if round(value, places) != value:  # it would be rounded
        number = f"{value:.15g}"
    else:
        separator = "," if "," in digits["whole"] else ""
        number = f"{abs(value):{separator}.{places}f}"
        number = f"-{number}" if value < 0 else number
    if not _UNIT.search(f"{before} {after}"):
        return number
    sign, number = ("-", number[1:]) if number.startswith("-") else ("", number)
    gap = " " if before[-1:].isalpha() else ""
    return f"{sign}{before}{gap}{number} {after}".strip()
