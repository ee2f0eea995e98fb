"""CSV and TSV files, and how a row of any table is read."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import IO, TYPE_CHECKING

from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import (
    KEY_LIMIT,
    MAX_WORDINGS,
    WORDING_LIMIT,
    clean_line,
    clean_said,
    original,
)

from .blocks import Block, Kind
from .columns import SAMPLE, header_of
from .documents import as_document
from .formats import BadRow, Fact, FileItem, ImportFileError
from .header import OWN_KEY, TITLE, Row, rows_above
from .markup import blocks_of, words_of
from .plain_text import open_text, text_blocks

if TYPE_CHECKING:
    from _csv import Reader

_PLACEHOLDER = re.compile(
    r"\{\{.{1,80}?\}\}|\{%.{1,80}?%\}|\[(?:first |last )?name\]", re.I
)
_GREETING = re.compile(
    rf"\A(?:hello|hi|hey|dear|good \w+|hallo|guten tag|sehr geehrte\w*|liebe\w*)"
    rf"[^\n.?!]{{0,40}}(?:{_PLACEHOLDER.pattern})[ \t]*[,.!:]?\s*",
    re.I,
)
_CLOSING = re.compile(
    r"\n\s*(?:(?:kind|best|warm|many)? ?(?:regards|wishes|thanks)|yours \w+|"
    r"(?:mit )?(?:freundlichen|besten|viele|liebe) gr\u00fc\u00dfen?),?"
    r"(?:\n[^\n]{0,60}){0,4}\s*\Z",
    re.I,
)


def fact_of(row: Row) -> Fact | BadRow:
    """Return the fact of a row, or why the row is bad.

    Without an answer, the text beside a question is its answer.
    """
    cells = row.cells
    try:
        asked, text, answer = (
            words_of(cells.get(name, "")) for name in ("question", "text", "answer")
        )
        question = _LINE_END.sub(" ", asked)
        if answer.strip() and not question.strip():
            return BadRow(row.place, "It has an answer and no question.")
        said = _without_salutation(answer) if answer.strip() else text
        if question.strip() and not said.strip():
            return BadRow(row.place, "It has a question and no answer.")
        return Fact(
            text=clean_said("text", said),
            place=row.place,
            question=clean_said("question", question),
            id=clean_line(_key(cells), field="id", limit=KEY_LIMIT, required=False),
            headings=row.headings,
            wordings=_wordings(cells.get("also_asked", "")),
            about=" > ".join(row.headings) if question else row.about,
        )
    except InvalidKnowledgeError as error:  # among them HTML that cannot be read
        return BadRow(row.place, str(error))


def _without_salutation(reply: str) -> str:
    """Return a prepared reply without its greeting and its closing.

    Only if it has a placeholder: otherwise these words are the answer's own.
    """
    if not _PLACEHOLDER.search(reply):
        return reply
    said = _CLOSING.sub("", _GREETING.sub("", reply.strip()))
    return said if said.strip() else reply


def _article(row: Row) -> Iterator[Block]:
    """Yield the headings that an article is under, and its blocks."""
    above = filter(None, (*row.headings, " ".join(row.cells.get(TITLE, "").split())))
    depth = 0
    for depth, heading in enumerate(above, start=1):
        yield Block(Kind.HEADING, (heading,), row.place, depth)
    text = row.cells.get("text", "")
    blocks = blocks_of(text)
    for block in text_blocks(io.StringIO(text)) if blocks is None else blocks:
        yield replace(block, place=row.place, level=depth + block.level)


def _key(row: Mapping[str, str]) -> str:
    if OWN_KEY in row:
        return row[OWN_KEY]
    return row.get("id") or row.get("key") or ""


def _wordings(cell: str) -> tuple[str, ...]:
    lines = cell.rstrip().splitlines()
    parts = lines if len(lines) > 1 else cell.split("|")
    said = dict.fromkeys(
        clean_line(each, field="also_asked", limit=WORDING_LIMIT)
        for each in parts
        if each.strip()
    )
    if len(said) > MAX_WORDINGS:
        raise InvalidKnowledgeError(
            "also_asked",
            f"also_asked has {len(said)} questions and may have {MAX_WORDINGS}; keep "
            "those that differ most.",
        )
    return tuple(said)


_LINE_END = re.compile(r"[ \t\r]*\n[ \t\r]*")
_DIALECT_SAMPLE = 16_384
_SAMPLED = 65_536  # characters of the first rows
# Appended after the last line, to detect a cell that is never closed and includes it.
_END_OF_FILE = "\x1eend of file\x1e"


def read_csv(stream: IO[bytes], language: str) -> Iterator[FileItem]:
    with open_text(stream, language, newline="") as text:
        first = text.readline(_DIALECT_SAMPLE)
        text.seek(0)
        delimiter = ";" if first.count(";") > first.count(",") else ","
        yield from _rows(text, delimiter, language)


def read_tsv(stream: IO[bytes], language: str) -> Iterator[FileItem]:
    with open_text(stream, language, newline="") as text:
        yield from _rows(text, "\t", language)


def _rows(text: IO[str], delimiter: str, language: str) -> Iterator[FileItem]:
    first = _first_rows(text, delimiter)
    lines = rows_above(first)
    above, title = len(lines), " ".join(filter(None, lines))
    reader = csv.reader(chain(text, [_END_OF_FILE]), delimiter=delimiter)
    names = [_header(reader) for _ in range(above + 1)][-1]
    header = header_of(names, first[above + 1 :], takes_tables=True, title=title)
    yield from header.notes
    yield from items_of(header.named(_cells(reader, len(header.columns))), language)


def items_of(
    rows: Iterable[Row | FileItem],
    language: str,
    read: Callable[[Row], FileItem] = fact_of,
) -> Iterator[FileItem]:
    """Yield what each row is read as, by default its fact or why it is bad.

    All articles form one document, each below its title.
    """
    blocks: list[Block] = []
    for each in rows:
        if not isinstance(each, Row):
            yield each
        elif not each.is_article:
            yield read(each)
        else:
            try:
                blocks += _article(each)
            except ImportFileError as error:
                yield BadRow(each.place, str(error))
    if blocks:
        yield replace(as_document(blocks, language=language), title="")


def _cells(reader: "Reader", count: int) -> Iterator[tuple[str, list[str]] | BadRow]:
    before = reader.line_num
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield BadRow(f"line {before + 1}", f"It cannot be read: {error}.")
            before = reader.line_num
            continue
        if cells is None or cells == [_END_OF_FILE]:
            return
        place, before = f"line {before + 1}", reader.line_num
        if _is_unclosed(cells):
            yield BadRow(
                place,
                "It opens a quote that is never closed, so all lines below are part of "
                "one cell; close the quote.",
            )
            return
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > count:
            yield BadRow(
                place,
                f"It has {len(cells)} cells, the header {count}; a cell that "
                "holds a separator needs quotes.",
            )
            continue
        yield place, [*map(original, cells)]


def _first_rows(text: IO[str], delimiter: str) -> list[list[str]]:
    """Return the first rows, as far as they can be read, and rewind the text."""
    sample = io.StringIO(text.read(_SAMPLED), newline="")
    text.seek(0)
    found: list[list[str]] = []
    with suppress(csv.Error):
        found.extend(islice(csv.reader(sample, delimiter=delimiter), SAMPLE))
    return found


def _is_unclosed(cells: list[str]) -> bool:
    is_over = not cells or cells == [_END_OF_FILE]
    return not is_over and cells[-1].endswith(_END_OF_FILE)


def _header(reader: Iterator[list[str]]) -> list[str]:
    try:
        cells = next(reader, [])
    except csv.Error as error:
        raise ImportFileError(f"The header cannot be read: {error}.") from error
    if _is_unclosed(cells):
        raise ImportFileError("The header opens a quote that is never closed.")
    return [name for name in cells if name != _END_OF_FILE]
