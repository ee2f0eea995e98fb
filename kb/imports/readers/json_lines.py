"""JSON Lines: an object a line, which is a fact or a whole document.

A document has a `title`, and its `text` in the `format` "text" (the default), "markdown"
or "html"; `source`, by default its title, tells it from the others.
"""

import io
import json
from collections.abc import Iterator
from typing import IO

from kb.documents.services import SOURCE_LIMIT, TITLE_LIMIT
from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import clean_line

from .html import read_html
from .markdown import read_markdown
from .plain_text import open_text, read_text
from .tables import parse_row
from .values import BadRow, FileItem, ImportFileError, SourceDocument

MAX_LINE = 4 * 1024 * 1024
"""Characters."""

_READERS = {"text": read_text, "markdown": read_markdown, "html": read_html}
_TEXTS = ("id", "key", "question", "answer", "text", "title", "source", "format")


def read_json_lines(stream: IO[bytes], language: str) -> Iterator[FileItem]:
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
                yield _item(line, place, language)


def _item(line: str, place: str, language: str) -> FileItem:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadRow(place, f"It is no JSON: {error}.")
    if not isinstance(parsed, dict):
        return BadRow(place, "It is no JSON object; write {...} on each line.")
    row: dict[str, str] = {}
    for name in _TEXTS:
        value = parsed.get(name)
        if isinstance(value, int) and name in ("id", "key"):
            value = str(value)
        if value is not None and not isinstance(value, str):
            return BadRow(place, f"{name} is {json.dumps(value)[:60]}, and no text.")
        row[name] = value or ""
    return _document(row, place, language) if row["title"] else parse_row(row, place)


def _document(row: dict[str, str], place: str, language: str) -> FileItem:
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
    return SourceDocument(title, source, read.headings, read.facts, place)
