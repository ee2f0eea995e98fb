"""A row of named values into a fact."""

import csv
from collections.abc import Iterator, Mapping
from typing import IO

from kb.entries.values import clean_said
from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import clean_line
from kb.text.spreadsheet_cells import original

from .plain_text import open_text
from .values import BadRow, Fact, ImportFileError

COLUMNS = ("id", "key", "question", "answer", "text")
"""What is read of a row; `key` is another name for `id`."""

_ID_LIMIT = 200


def parse_row(row: Mapping[str, str], place: str) -> Fact | BadRow:
    """Return the fact of a row, or what is wrong with the row.

    Where there is no answer, the text beside a question is its answer.

    Args:
        row: By the names of `COLUMNS`; others are left aside.
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
                row.get("id") or row.get("key") or "",
                field="id",
                limit=_ID_LIMIT,
                required=False,
            ),
        )
    except InvalidKnowledgeError as error:
        return BadRow(place, str(error))


# CSV and TSV: a fact a row, by the columns' names.


_DIALECT_SAMPLE = 16_384


def read_csv(stream: IO[bytes]) -> Iterator[Fact | BadRow]:
    with open_text(stream, newline="") as text:
        first = text.readline(_DIALECT_SAMPLE)
        text.seek(0)
        delimiter = ";" if first.count(";") > first.count(",") else ","
        yield from _rows(text, delimiter)


def read_tsv(stream: IO[bytes]) -> Iterator[Fact | BadRow]:
    with open_text(stream, newline="") as text:
        yield from _rows(text, "\t")


def _rows(text: IO[str], delimiter: str) -> Iterator[Fact | BadRow]:
    reader = csv.reader(text, delimiter=delimiter)
    header = _header(reader)
    before = reader.line_num
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield BadRow(f"line {before + 1}", f"It can not be read: {error}.")
            before = reader.line_num
            continue
        if cells is None:
            return
        place, before = f"line {before + 1}", reader.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > len(header):
            yield BadRow(
                place,
                f"It has {len(cells)} cells, the header {len(header)}; a cell that "
                "holds a separator needs quotes.",
            )
            continue
        yield parse_row(dict(zip(header, map(original, cells), strict=False)), place)


def _header(reader: Iterator[list[str]]) -> list[str]:
    try:
        header = [name.strip().lower() for name in next(reader, [])]
    except csv.Error as error:
        raise ImportFileError(f"The header can not be read: {error}.") from error
    named = [name for name in header if name]
    twice = {name for name in named if named.count(name) > 1}
    if twice:
        raise ImportFileError(f"The columns {sorted(twice)} stand twice in the header.")
    check_columns(dict.fromkeys(named, ""))
    return header


def check_columns(row: Mapping[str, str]) -> None:
    """Refuse columns that make no fact.

    Raises:
        ImportFileError: There is neither `text` nor `question` with `answer`.
    """
    if "text" in row or {"question", "answer"} <= row.keys():
        return
    found = ", ".join(row) or "none"
    raise ImportFileError(
        "The first row must name the columns: text, or question and answer, and "
        f"perhaps id; it names {found[:300]}."
    )
