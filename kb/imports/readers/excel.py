"""Excel: each visible sheet is a table, or several stacked ones, with headings."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import chain, islice
from typing import IO, Any
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile, ZipFile, ZipInfo

from openpyxl.reader.excel import ExcelReader
from openpyxl.utils.cell import get_column_letter, range_boundaries
from openpyxl.utils.escape import unescape
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.xml.constants import ARC_STYLE

from .blocks import Cell
from .columns import MAX_COLUMNS, SAMPLE, header_of
from .formats import BadRow, FileItem, ImportFileError, Limits, check_archive
from .header import Row, says_more
from .notes import noted, with_notes
from .rows import items_of
from .stacked import Line, Table, only_table, tables_of

_MAX_STACKED = 2_000
"""Maximum rows of a sheet that is searched for several tables, all read beforehand."""

_UNNAMED = re.compile(
    r"(?:(?:sheet|tabelle|blatt|table) ?\d*|faqs?|q ?& ?a|questions?(?: (?:and|&) answers?)?|"
    r"answers?|fragen|data|export)",
    re.IGNORECASE,
)
_BROKEN = (InvalidFileException, ParseError, BadZipFile, KeyError, ValueError,
           AttributeError, TypeError, IndexError, NotImplementedError, OSError, EOFError)  # fmt: skip

_MERGED = re.compile(
    rb"<(?:\w+:)?mergeCell\s[^>]*?ref=[\"']([A-Z]+[0-9]+:[A-Z]+[0-9]+)[\"']"
)

# Parts of a number format around the digits: quoted words, escaped characters, a
# currency in brackets, and padding, which shows nothing.
_PARTS = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|'
    r"\[[^\]]*\]|[_*]."
)
_POWER = re.compile(r"E[+-]")
_DIGITS = re.compile(r"(?P<whole>[#0?][#0?,]*)(?:\.(?P<decimals>[0#?]+))?")
# Other words of a format ("days") are mostly in the column's heading too.
_UNIT = re.compile(r"[%$\u00a2-\u00a5\u20a0-\u20cf]|\b(?:[A-Z]{3}|kr|Fr)\b")


def read_excel(stream: IO[bytes], limits: Limits, language: str) -> Iterator[FileItem]:
    """Read the sheets row by row, with the saved results of formulas.

    A sheet that is not a table is reported, and the others are read.
    """
    check_archive(stream, limits, "xl/workbook.xml", "Excel workbook")
    try:
        yield from items_of(_sheets(stream), language)
    # The library passes on the errors of every layer that reads a damaged file.
    except _BROKEN as error:
        if isinstance(error, ImportFileError):
            raise
        raise ImportFileError(f"The workbook cannot be read: {error}.") from error


class _Archive(ZipFile):
    """The workbook's archive, repairing empty cell fills, which the library refuses."""

    def read(self, name: str | ZipInfo, pwd: bytes | None = None) -> bytes:
        found = super().read(name, pwd)
        if name != ARC_STYLE:
            return found
        return re.sub(
            rb"<(\w+:)?fill\s*/>", rb"<\1fill><\1patternFill/></\1fill>", found
        )


def _sheets(stream: IO[bytes]) -> Iterator[Row | FileItem]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts without text of cells
        reader = ExcelReader(stream, read_only=True, data_only=True, keep_links=False)
        reader.archive = _Archive(stream)
        reader.read()
    refused: list[BadRow] = []
    is_read = False
    sheets = [each for each in reader.wb.worksheets if each.sheet_state == "visible"]
    for sheet in sheets:
        for each in _rows(sheet, _name_of(sheet) if len(sheets) > 1 else ""):
            if isinstance(each, _Refused):
                refused.append(BadRow(each.place, each.reason))
            else:
                is_read = True
                yield each
    if not is_read:
        raise ImportFileError(
            refused[0].reason if refused else "The workbook has no rows."
        )
    yield from refused


@dataclass(frozen=True, slots=True)
class _Refused:
    """A table that could not be read, with the reason."""

    place: str
    reason: str


def _rows(sheet: Any, called: str) -> Iterator[Row | FileItem | _Refused]:
    """Yield the rows of each table on a sheet; a long sheet is one table."""
    sheet.reset_dimensions()  # the dimensions stored in the file may be wrong
    rows = _filled(sheet)
    first = dict(islice(rows, _MAX_STACKED))
    if not first:
        return
    rest = [*islice(rows, 1)]
    merged = {} if rest else _merged(sheet, first)
    lines = [
        Line(number, [*map(_said, cells)], merged.get(number, {}))
        for number, cells in first.items()
    ]
    tables: Sequence[tuple[Table, Mapping[str, str]]]
    if rest:
        tables = [(only_table(lines)[0], {})]
    else:
        found = tables_of(lines, lambda line: _is_bold(first[line.number]))
        tables = [*with_notes(found)]
    # In a named sheet, whose name leads its rows, longer lines above become entries.
    above = tables[0][0].above
    apart = [each for each in above if called and says_more(each.filled[0])]
    title = " ".join(each.filled[0] for each in above if each not in apart)
    for table, notes in tables:
        place = f"{sheet.title}, row {table.number}"
        try:
            header = header_of(
                table.headings[: MAX_COLUMNS + 1],
                [line.spread for line in table.rows[:SAMPLE]],
                takes_tables=True,
                title=title,
                sheet=called,
                heads=table.heads,
            )
        except ImportFileError as error:
            yield _Refused(place, _why(table, error, is_one=len(tables) == 1))
            continue
        header = replace(header, name=table.name)
        yield from header.notes
        if header.headings:
            yield from (noted(_alone(sheet.title, line), notes) for line in apart)
            apart = []
        below = ((line, first[line.number]) for line in table.rows)
        behind = (
            (Line(number, [*map(_said, cells)]), cells)
            for number, cells in chain(rest, rows)
        )
        named = _cells(
            sheet.title,
            chain(below, behind),
            len(header.columns),
            is_one=len(tables) == 1,
        )
        for row in header.named(named):
            yield noted(row, notes) if isinstance(row, Row) else row
        for line in table.foot:
            yield _alone(sheet.title, line)


def _alone(sheet: str, line: Line) -> Row:
    return Row(f"{sheet}, row {line.number}", {"text": line.filled[0]})


def _why(table: Table, error: ImportFileError, *, is_one: bool) -> str:
    """Return why a table is refused, naming its first column without a heading."""
    empty = [at for at, name in enumerate(table.headings) if at and not name.strip()]
    reason = str(error)
    if empty:
        reason = (
            f"Column {get_column_letter(empty[0] + 1)} has no heading; give it one, or "
            f"remove it. {reason}"
        )
    lost = (
        "" if is_one else f" It has rows below it that are not read: {len(table.rows)}."
    )
    return f"{reason}{lost}"


def _name_of(sheet: Any) -> str:
    """Return a sheet's name, or "" if it is a program's default."""
    return "" if _UNNAMED.fullmatch(sheet.title) else sheet.title.strip()


def _filled(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        if any(map(_said, cells)):
            yield number, cells


def _merged(
    sheet: Any, rows: Mapping[int, Sequence[Any]]
) -> dict[int, dict[int, Cell]]:
    """Return, by row and column, the merged area that a cell is in, and its text.

    The library reads merged cells only if it holds the whole sheet in memory.
    """
    found: dict[int, dict[int, Cell]] = {}
    last = max(rows)
    # Areas that Excel wrote do not overlap, so they cannot have more cells than this.
    left_over = len(rows) * MAX_COLUMNS
    part = sheet.parent._archive.read(sheet._worksheet_path)
    for match in islice(_MERGED.finditer(part), _MAX_STACKED):
        area = match[1].decode("ascii")
        left, top, right, bottom = range_boundaries(area)
        if top in rows and right <= MAX_COLUMNS and left <= len(rows[top]):
            cell = area, _said(rows[top][left - 1])
            numbers = range(top, min(bottom, last) + 1)
            left_over -= len(numbers) * (right - left + 1)
            if left_over < 0:
                break
            for number in numbers:
                found.setdefault(number, {}).update(
                    dict.fromkeys(range(left - 1, right), cell)
                )
    return found


def _is_bold(cells: Sequence[Any]) -> bool:
    return all(cell.font.b for cell in cells if _said(cell))


def _cells(
    sheet: str, rows: Iterable[tuple[Line, Sequence[Any]]], count: int, *, is_one: bool
) -> Iterator[tuple[str, list[str]] | BadRow]:
    """Yield the cells below headings; others are ignored if the sheet is one table."""
    for line, cells in rows:
        place = f"{sheet}, row {line.number}"
        read = cells[:count]
        if any(cell.data_type == "e" for cell in read):
            yield BadRow(place, "A formula in it has an error; correct it in Excel.")
        elif not is_one and any(map(_said, cells[count:])):
            yield BadRow(
                place,
                f"It has cells beyond the {count} columns of its table. If it names the "
                'columns of another, put a title ("Table 2") above it.',
            )
        else:
            yield place, line.spread[:count]


def _said(cell: Any) -> str:
    """Return a value as Excel shows it, but unrounded."""
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
    """Return a number as a cell of this format shows it, but unrounded."""
    positive = number_format.split(";")[0]
    if "%" in _PARTS.sub("", positive):
        return f"{value * 100:.10g}%"
    text = _PARTS.sub(lambda part: "".join(filter(None, part.groups())), positive)
    digits = _DIGITS.search(text)
    if digits is None or _POWER.search(text):
        return f"{value:.15g}"
    before, after = text[: digits.start()].strip(), text[digits.end() :].strip()
    places = len(re.sub(r"[#?]", "", digits["decimals"] or ""))
    if round(value, places) != value:  # the format would round it
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
