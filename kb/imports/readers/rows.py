"""Files of rows: CSV, TSV, JSON and JSON Lines.

An object of JSON is a fact, or a whole document with a `title`, its `text` in the `format`
"text" (the default), "markdown" or "html", and a `source`, by default its title.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import IO, TYPE_CHECKING

from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import (
    KEY_LIMIT,
    MAX_WORDINGS,
    SOURCE_LIMIT,
    TITLE_LIMIT,
    WORDING_LIMIT,
    clean_line,
    clean_said,
    original,
)

from .columns import (
    COLUMNS,
    MAX_COLUMNS,
    OWN_KEY,
    SAMPLE,
    Header,
    header_of,
    rows_above,
    unread,
)
from .formats import (
    BadRow,
    Fact,
    FileItem,
    ImportFileError,
)
from .html import read_html
from .markdown import read_markdown
from .plain_text import open_text, read_text

if TYPE_CHECKING:
    from _csv import Reader


def _parsed(row: Mapping[str, str], place: str, *, about: str = "") -> Fact | BadRow:
    """Return the fact of a row, or what is wrong with the row.

    Where there is no answer, the text beside a question is its answer.
    """
    question, text = row.get("question", ""), row.get("text", "")
    answer = row.get("answer", "")
    if answer.strip() and not question.strip():
        return BadRow(place, "It has an answer and no question.")
    said = answer if answer.strip() else text
    if question.strip() and not said.strip():
        return BadRow(place, "It has a question and no answer.")
    try:
        return Fact(
            text=clean_said("text", said),
            place=place,
            question=clean_said("question", question),
            id=clean_line(
                _key(row),
                field="id",
                limit=KEY_LIMIT,
                required=False,
            ),
            wordings=_wordings(row.get("also_asked", "")),
            about=about,
        )
    except InvalidKnowledgeError as error:
        return BadRow(place, str(error))


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


_DIALECT_SAMPLE = 16_384
_SAMPLED = 65_536  # characters of the first rows
# Follows the last line, so that a cell which swallows it is known to have no end.
_END_OF_FILE = "\x1eend of file\x1e"


def read_csv(stream: IO[bytes]) -> Iterator[FileItem]:
    with open_text(stream, newline="") as text:
        first = text.readline(_DIALECT_SAMPLE)
        text.seek(0)
        delimiter = ";" if first.count(";") > first.count(",") else ","
        yield from _rows(text, delimiter)


def read_tsv(stream: IO[bytes]) -> Iterator[FileItem]:
    with open_text(stream, newline="") as text:
        yield from _rows(text, "\t")


def _rows(text: IO[str], delimiter: str) -> Iterator[FileItem]:
    first = _first_rows(text, delimiter)
    above, title = rows_above(first)
    reader = csv.reader(chain(text, [_END_OF_FILE]), delimiter=delimiter)
    names = [_header(reader) for _ in range(above + 1)][-1]
    header = header_of(names, first[above + 1 :], takes_tables=True, title=title)
    yield from header.notes
    yield from items_of(header, _cells(reader, len(header.columns)))


def items_of(
    header: Header, rows: Iterable[tuple[str, Sequence[str]] | BadRow]
) -> Iterator[FileItem]:
    """Yield the fact of each row, or what is wrong with it.

    Args:
        rows: Each with its place.
    """
    for each in header.named(rows):
        if isinstance(each, BadRow):
            yield each
        else:
            yield _parsed(each.cells, each.place, about=each.about)


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
    """Return the first rows, as far as they can be read; the text is at its start."""
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


MAX_LINE = 4 * 1024 * 1024  # characters

_READERS = {"text": read_text, "markdown": read_markdown, "html": read_html}
_TEXTS = (*COLUMNS, "title", "source", "format")


def read_json(stream: IO[bytes], language: str) -> Iterator[FileItem]:
    """Read a list of objects, or an object that holds one such list ("faqs").

    Its names are understood as those of a table's columns, unless it holds documents.
    """
    with open_text(stream) as text:
        content = text.read()
    try:
        rows = _list_in(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise ImportFileError(f"The file is no JSON: {error}.") from error
    objects = [each for each in rows if isinstance(each, dict)]
    names = dict.fromkeys(
        chain.from_iterable(islice(each, MAX_COLUMNS) for each in objects)
    )
    read_as = {name: str(name).strip().lower() for name in names}
    said = {*read_as.values()}
    if "title" in said and "question" not in said:
        notes = list(unread(islice(read_as.values(), MAX_COLUMNS), _TEXTS))
    else:
        first = [
            [
                value if isinstance(value := each.get(name), str) else ""
                for name in names
            ]
            for each in objects[:SAMPLE]
        ]
        header = header_of(names, first, needed="Its objects must name")
        read_as, notes = dict(zip(names, header.columns, strict=True)), [*header.notes]
    for number, row in enumerate(rows, start=1):
        place = f"item {number}"
        if isinstance(row, dict):
            named = {str(read_as.get(name, name)): each for name, each in row.items()}
            yield _item(named, place, language)
        else:
            yield BadRow(place, "It is no JSON object; write {...} for each.")
    yield from notes


def _list_in(parsed: object) -> list[object]:
    held = parsed.values() if isinstance(parsed, dict) else [parsed]
    lists = [each for each in held if isinstance(each, list)]
    if len(lists) != 1:
        raise ImportFileError(
            "The file must hold one list of objects: "
            '[{"question": "...", "answer": "..."}, ...].'
        )
    return lists[0]


def read_json_lines(stream: IO[bytes], language: str) -> Iterator[FileItem]:
    names: dict[str, None] = {}
    with open_text(stream, newline="\n") as text:
        number = 0
        while line := text.readline(MAX_LINE + 1):
            number += 1
            place = f"line {number}"
            if len(line) > MAX_LINE and not line.endswith("\n"):
                while (rest := text.readline(MAX_LINE)) and rest[-1] != "\n":
                    pass
                yield BadRow(
                    place, f"It has more than {MAX_LINE:,} characters; split it."
                )
            elif line.strip():
                parsed = _object(line, place)
                if isinstance(parsed, BadRow):
                    yield parsed
                    continue
                if len(names) < MAX_COLUMNS:
                    names |= dict.fromkeys(islice(parsed, MAX_COLUMNS))
                yield _item(parsed, place, language)
    yield from unread(names, _TEXTS)


def _object(line: str, place: str) -> dict[str, object] | BadRow:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadRow(place, f"It is no JSON: {error}.")
    if not isinstance(parsed, dict):
        return BadRow(place, "It is no JSON object; write {...} on each line.")
    return parsed


def _item(parsed: Mapping[str, object], place: str, language: str) -> FileItem:
    row: dict[str, str] = {}
    for name in _TEXTS:
        value = parsed.get(name)
        if isinstance(value, int) and name in ("id", "key", OWN_KEY):
            value = str(value)
        if name == "also_asked" and isinstance(value, list):
            wrong = [each for each in value if not isinstance(each, str)]
            # Never one line: a bar in a question of a list parts nothing.
            value = wrong[0] if wrong else "\n".join(["", *value])
        if value is not None and not isinstance(value, str):
            return BadRow(place, f"{name} is {json.dumps(value)[:60]}, and no text.")
        if name in parsed or name != OWN_KEY:
            row[name] = value or ""
    is_document = row["title"] and (row["text"] or not row["question"])
    return _document(row, place, language) if is_document else _parsed(row, place)


def _document(row: dict[str, str], place: str, language: str) -> FileItem:
    if not row["text"].strip():
        return BadRow(
            place,
            "Its text is empty; name it text, or the parts of a fact question and answer.",
        )
    try:
        title = clean_line(row["title"], field="title", limit=TITLE_LIMIT)
        source = clean_line(row["source"] or title, field="source", limit=SOURCE_LIMIT)
    except InvalidKnowledgeError as error:
        return BadRow(place, str(error))
    reader = _READERS.get(row["format"] or "text")
    if reader is None:
        return BadRow(
            place, f"format {row['format']!r} is none of {', '.join(_READERS)}."
        )
    try:
        content = io.BytesIO(row["text"].encode())
    except UnicodeEncodeError:
        return BadRow(place, "Its text holds half a surrogate pair; take it out.")
    try:
        read = reader(content, language)
    except ImportFileError as error:
        return BadRow(place, str(error))
    return replace(read, title=title, source=source, place=place)
