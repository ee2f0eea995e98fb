"""JSON and JSON Lines: lists of objects, each read like a row of a table.

An object is a question with its answer, a fact, or a whole document with a `title`, its
`text` in the `format` "text" (the default), "markdown" or "html", and a `source`, by
default its title. Under other names (`body`, `content`), such objects are articles of
one document.
"""

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import IO

from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import SOURCE_LIMIT, TITLE_LIMIT, clean_line

from .columns import COLUMNS, MAX_COLUMNS, SAMPLE, header_of, unread
from .formats import BadRow, FileItem, ImportFileError, Withdrawn
from .header import OWN_KEY, TITLE, Header, Row, spoken
from .html import read_html
from .intents import intents_in
from .markdown import read_markdown
from .markup import is_markup
from .plain_text import open_text, read_text
from .rows import fact_of, items_of

MAX_LINE = 4 * 1024 * 1024  # characters

_READERS = {"text": read_text, "markdown": read_markdown, "html": read_html}
_SAID = ("question", "answer", "text", "also_asked", TITLE)
_TEXTS = (*COLUMNS, TITLE, "source", "format")
# Keys that hold the text of an object used where a text is expected.
_VALUES = (
    "text",
    "rendered",
    "html",
    "body",
    "content",
    "value",
    "name",
    TITLE,
    "label",
)
_NAMES = ("name", TITLE, "category", "section", "topic", "label", "heading")

_Object = tuple[tuple[str, ...], object]
"""The sections an item of a list is in, outermost first, and the item."""


def read_json(stream: IO[bytes], language: str) -> Iterator[FileItem]:
    """Read the objects of a list, or of the lists that categories hold.

    Their names are understood like those of table columns, unless they are documents.
    """
    with open_text(stream, language) as text:
        content = text.read()
    try:
        parsed = json.loads(content)
        found = [*intents_in(parsed)] or [*_objects_in(parsed)]
    except (ValueError, RecursionError) as error:
        raise ImportFileError(f"The file is not valid JSON: {error}.") from error
    rows = ((f"item {number}", each) for number, each in enumerate(found, start=1))
    yield from _read(rows, [item for _, item in found], language)


def read_json_lines(stream: IO[bytes], language: str) -> Iterator[FileItem]:
    with open_text(stream, language, newline="\n") as text:
        lines = _lines(text)
        first = [*islice(lines, SAMPLE)]
        sample = [each[1] for _, each in first if not isinstance(each, BadRow)]
        yield from _read(chain(first, lines), sample, language)


def _read(
    rows: Iterable[tuple[str, _Object | BadRow]],
    sample: Iterable[object],
    language: str,
) -> Iterator[FileItem]:
    objects = [each for each in sample if isinstance(each, dict)]
    names = dict.fromkeys(
        chain.from_iterable(islice(each, MAX_COLUMNS) for each in objects)
    )
    header = _header(names, objects)
    read_as = dict(zip(names, header.columns, strict=True))
    found = (
        each if isinstance(each, BadRow) else _row(each, place, read_as, header)
        for place, each in rows
    )
    yield from items_of(found, language, lambda row: _item(row, language))
    yield from header.notes


def _header(names: Collection[str], objects: Sequence[dict[str, object]]) -> Header:
    written = [*map(spoken, names)]
    said = tuple(name.strip().lower() for name in written)
    if {TITLE, "text"} <= {*said} and "question" not in said:
        return Header(said, tuple(unread(said[:MAX_COLUMNS], _TEXTS)))
    first = [
        [
            value if isinstance(value := _value(each.get(name)), str) else ""
            for name in names
        ]
        for each in objects[:SAMPLE]
    ]
    needed = "Its objects must name"
    return header_of(written, first, needed=needed, read=_TEXTS)


def _value(value: object) -> object:
    """Return the text that an object wraps ("rendered"), or else the value itself."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, dict):
        return value
    held = (value[key] for key in _VALUES if isinstance(value.get(key), str))
    return next(held, value)


def _objects_in(parsed: object) -> Iterator[_Object]:
    if isinstance(parsed, list):
        yield from _walked(parsed, ())
    elif isinstance(parsed, dict) and (held := _held(parsed)):
        yield from _below(held, ())
    else:
        raise ImportFileError(
            "The file must hold a list of objects: "
            '[{"question": "...", "answer": "..."}, ...].'
        )


def _held(parsed: Mapping[str, object]) -> dict[str, object]:
    """Return the values that are lists of objects, or hold such lists."""
    return {
        name: value
        for name, value in parsed.items()
        if (isinstance(value, dict) and _held(value))
        or (isinstance(value, list) and any(isinstance(each, dict) for each in value))
    }


def _below(held: Mapping[str, object], above: tuple[str, ...]) -> Iterator[_Object]:
    """Yield the objects of several lists, with the list's name as their section."""
    for name, value in held.items():
        path = (*above, name) if len(held) > 1 else above
        if isinstance(value, list):
            yield from _walked(value, path)
        elif isinstance(value, dict):
            yield from _below(_held(value), (*path, *_called(value)))


def _walked(items: Iterable[object], path: tuple[str, ...]) -> Iterator[_Object]:
    for item in items:
        held = _held(item) if isinstance(item, dict) else {}
        if isinstance(item, dict) and held and not _is_row(item):
            yield from _below(held, (*path, *_called(item)))
        else:
            yield path, item


def _called(category: Mapping[str, object]) -> Iterator[str]:
    named = (_value(category[key]) for key in _NAMES if key in category)
    yield from islice((each for each in named if isinstance(each, str)), 1)


def _is_row(item: dict[str, object]) -> bool:
    try:
        _header(item, [item])
    except ImportFileError:
        return False
    return True


def _lines(text: IO[str]) -> Iterator[tuple[str, _Object | BadRow]]:
    number = 0
    while line := text.readline(MAX_LINE + 1):
        number += 1
        place = f"line {number}"
        if len(line) > MAX_LINE and not line.endswith("\n"):
            while (rest := text.readline(MAX_LINE)) and rest[-1] != "\n":
                pass
            reason = f"It has more than {MAX_LINE:,} characters; split it."
            yield place, BadRow(place, reason)
        elif line.strip():
            try:
                yield place, ((), json.loads(line))
            except (ValueError, RecursionError) as error:
                yield place, BadRow(place, f"It is not valid JSON: {error}.")


def _row(
    found: _Object, place: str, read_as: Mapping[str, str], header: Header
) -> Row | BadRow | Withdrawn:
    """Return an object as a row; values must be text, or numbers as ids."""
    above, parsed = found
    if not isinstance(parsed, dict):
        return BadRow(place, "It is not a JSON object; write {...} for each.")
    cells: dict[str, str] = {}
    for key, said in parsed.items():
        name = read_as.get(key, spoken(key).strip().lower())
        value = _value(said)
        if name == "also_asked" and isinstance(value, list):
            wrong = [each for each in value if not isinstance(each, str)]
            # Never a single line, in which a `|` would separate questions.
            value = wrong[0] if wrong else "\n".join(["", *value])
        if isinstance(value, int) and name not in _SAID:
            value = str(value)
        if value is not None and not isinstance(value, str) and name in _TEXTS:
            return BadRow(place, f"{name} is {json.dumps(value)[:60]}, not text.")
        if isinstance(value, str) or (value is None and name == OWN_KEY):
            cells[name] = value or ""
    return header.row(cells, place, above)


def _item(row: Row, language: str) -> FileItem:
    said = row.cells.get
    is_document = said(TITLE) and (said("text") or not said("question"))
    return _document(row, language) if is_document else fact_of(row)


def _document(row: Row, language: str) -> FileItem:
    said = row.cells.get
    text = said("text", "")
    if not text.strip():
        return BadRow(
            row.place,
            "Its text is empty; name it text, or the parts of a fact question and answer.",
        )
    try:
        title = clean_line(said(TITLE, ""), field=TITLE, limit=TITLE_LIMIT)
        source = clean_line(said("source") or title, field="source", limit=SOURCE_LIMIT)
    except InvalidKnowledgeError as error:
        return BadRow(row.place, str(error))
    form = said("format") or ("html" if is_markup(text) else "text")
    reader = _READERS.get(form)
    if reader is None:
        return BadRow(
            row.place, f"format {form!r} is not one of {', '.join(_READERS)}."
        )
    try:
        read = reader(io.BytesIO(text.encode()), language)
    except UnicodeEncodeError:
        return BadRow(row.place, "Its text contains half a surrogate pair; remove it.")
    except ImportFileError as error:
        return BadRow(row.place, str(error))
    return replace(read, title=title, source=source, place=row.place)
