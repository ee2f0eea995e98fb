"""Recognises the columns of a table of facts, also under other names."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from kb.text.cleaning import original

from .formats import ImportFileError, UnreadColumns
from .header import NAME_LIMIT, OWN_KEY, TITLE, Header, marks_withdrawn, plain

COLUMNS = ("id", "key", OWN_KEY, "question", "answer", "text", "also_asked")
"""Columns read from every row; `key` is another name for `id`.

A table exported from Nescio has each entry's original id in `own_key`; `id` is then
Nescio's own number, which is ignored.

`also_asked` holds other wordings of the question, one on each line of the cell, or
separated by `|` in a cell of one line.
"""

MAX_COLUMNS = 500
SAMPLE = 40
"""Number of first rows used to recognise headings and columns without a known name."""

# Maximum columns of a table of prepared replies, one of which may be headed "Response";
# a wider table is one of facts.
_OF_REPLIES = 3

_MOSTLY = 0.6  # share of questions in such a column; the rest may be keywords

_MAX_SECTION = 80  # characters
_MAX_ANSWER = 1_500  # characters of an answer below a title that is a question
_SECTIONS = re.compile(
    r"(?:sub)?(?:section|categor(?:y|ie)|topic|chapter|folder|product)s?|\w*kategorien?|"
    r"rubrik(?:en)?|\w*them(?:a|en)|\w*bereiche?|\w*abschnitte?|produkte?"
)
# Matched against the last word of a heading, which names its content: "patients ask",
# "desk answer", but not "answer time". German compounds are one word.
_LAST_WORDS = {
    "question": re.compile(r"questions?|query|queries|asks?|\w*fragen?"),
    "answer": re.compile(
        r"answers?|response|responses|reply|replies|macros?|snippets?|\w*antwort(?:en)?"
    ),
    "text": re.compile(r"facts?|content|statements?|inhalt"),
    "id": re.compile(
        r"(?:(?:question|faq|entry|article|row|item|frage) )?(?:id|number|no|nr|nummer)|key"
    ),
}
_TITLES = re.compile(r"titles?|subjects?|headlines?|titel|betreff")
# Columns with the text that belongs to a title.
_BODIES = re.compile(r"body|html|text|article|inhalt|content|artikel")


def header_of(
    cells: Iterable[str],
    rows: Sequence[Sequence[str]] = (),
    *,
    needed: str = "The first row must name the columns",
    read: Sequence[str] = COLUMNS,
    takes_tables: bool = False,
    title: str = "",
    sheet: str = "",
    heads: int = 1,
) -> Header:
    """Return how to read a table whose first row is `cells`.

    Other names are tried only if those of `COLUMNS` do not suffice, and the content of
    the first rows only if no names do. With `takes_tables`, a table without questions
    is one of facts, each a whole row. `cells` may be several heading rows, joined.

    Args:
        read: The columns that are read.

    Raises:
        ImportFileError: The header is invalid, or nothing can be read as facts.
    """
    written = [*cells]
    # Custom fields of Salesforce end in "__c".
    header = [name.strip().lower().removesuffix("__c") for name in written]
    if len(header) > MAX_COLUMNS:
        raise ImportFileError(
            f"The header has {len(header):,} columns and may have {MAX_COLUMNS}; only "
            f"{', '.join(COLUMNS)} are read."
        )
    named = [name for name in header if name]
    twice = sorted(name for name, count in Counter(named).items() if count > 1)
    if twice:
        raise ImportFileError(
            f"The columns {', '.join(map(_printable, twice))[:300]} appear twice in the header."
        )
    read_as = {} if _suffices(named) else _by_other_names(named)
    columns = [read_as.get(name, name) for name in header]
    if not _suffices(columns) or "text" in columns:
        read_as |= _by_a_title(header, columns, rows)
        columns = [read_as.get(name, name) for name in header]
    if not _suffices(columns):
        read_as |= _by_their_cells(header, columns, rows)
        columns = [read_as.get(name, name) for name in header]
    if _suffices(columns):
        return _of_entries(columns, read_as, rows, read, sheet)
    is_guess = "answer" in read_as.values() and "question" not in columns
    if is_guess and len(named) > _OF_REPLIES:  # such as a column of response times
        columns = header
    if takes_tables and _is_of_facts(written, columns, rows, heads * NAME_LIMIT):
        together = ", ".join(repr(_printable(name)) for name in written if name)
        note = UnreadColumns((), (f"{together[:300]} together as one fact a row",))
        # A guessed id ("Number") may repeat in several rows.
        headings = tuple(map(original, written))
        telling = _telling(rows, len(headings))
        return Header(tuple(header), (note,), headings, title, sheet, telling)
    raise ImportFileError(f"{needed}: {_missing(columns, named)}")


def _of_entries(
    columns: Sequence[str],
    read_as: Mapping[str, str],
    rows: Sequence[Sequence[str]],
    read: Sequence[str],
    sheet: str,
) -> Header:
    """Return how to read rows that are questions, texts or articles."""
    is_exported = OWN_KEY in columns
    sections = () if is_exported else tuple(_sections(columns, rows))
    states = () if is_exported else filter(marks_withdrawn, columns)
    is_titled = TITLE in columns and not {"question", "answer"} & {*columns}
    # A text with an id from its source stays one entry, under that id.
    has_keys = {"id", "key", OWN_KEY} & {*columns} and "text" not in read_as.values()
    understood = [
        f"{_printable(name)!r} as {column}"
        for name, column in [
            *read_as.items(),
            *((each, "section") for each in sections),
        ]
        if name != column
    ]
    read = (*read, *sections, *states, *([TITLE] if is_titled else []))
    return Header(
        tuple(columns),
        tuple(unread(filter(None, columns), read, tuple(understood))),
        sheet=sheet,
        sections=sections,
        holds_articles=is_titled and not has_keys,
    )


def _sections(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the columns that name the sections of several rows."""
    below = _columns(rows, len(columns))
    for name, cells in zip(columns, below, strict=True):
        said = [*filter(None, cells)]
        repeats = len({*said}) < len(said) and max(map(len, said)) <= _MAX_SECTION
        if repeats and name not in COLUMNS and _SECTIONS.fullmatch(_last(name)):
            yield name


def unread(
    names: Iterable[str], read: Iterable[str], understood: tuple[str, ...] = ()
) -> Iterator[UnreadColumns]:
    """Yield a note on columns that are not read, or read under another name, if any."""
    named = [*names]
    useless = {"id", "key"} if OWN_KEY in named else set()
    left = [name for name in named if name not in read or name in useless]
    if left or understood:
        yield UnreadColumns(tuple(map(_printable, left)), understood)


def _suffices(names: Sequence[str]) -> bool:
    return "text" in names or {"question", "answer"} <= set(names)


def _by_other_names(names: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for column, last_words in _LAST_WORDS.items():
        if column in names or (column == "id" and {"key", OWN_KEY} & set(names)):
            continue
        if column == "text" and {"question", "answer"} & {*found.values(), *names}:
            continue
        able = [
            name
            for name in names
            if name not in COLUMNS
            and last_words.fullmatch(plain(name) if column == "id" else _last(name))
        ]
        if len(able) == 1:
            found[able[0]] = column
        elif able and column != "id":
            raise ImportFileError(
                f"The columns {' and '.join(map(repr, map(_printable, able)))} may all "
                f"be the {column}; rename the right one to {column}."
            )
    return found


def _by_a_title(
    header: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> dict[str, str]:
    """Return which column is read as titles, and which as the text below them.

    Titles that are mostly questions, with short texts, are read as questions with
    answers; so are the titles of prepared replies.
    """
    below = dict(zip(header, _columns(rows, len(header)), strict=True))

    def only(last_words: re.Pattern[str]) -> str:
        able = [
            name
            for name, column in zip(header, columns, strict=True)
            if column not in COLUMNS and last_words.fullmatch(_last(name))
        ]
        return able[0] if len(able) == 1 else ""

    title = only(_TITLES)
    if not title or "question" in columns:
        return {}
    if "answer" in columns:
        return {title: "question"}
    body = header[columns.index("text")] if "text" in columns else only(_BODIES)
    if not body:
        return {}
    asks = _share_of_questions(below[title]) >= _MOSTLY
    if asks and max(map(len, below[body]), default=0) <= _MAX_ANSWER:
        return {title: "question", body: "answer"}
    found = {title: TITLE, body: "text"}
    return {name: column for name, column in found.items() if name != column}


def _by_their_cells(
    header: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> dict[str, str]:
    """Return the question and answer columns, by question marks and lengths of cells.

    The answer is the longest remaining column, if it is longer than the question.
    """
    below = dict(zip(header, _columns(rows, len(header)), strict=True))
    free = [
        name
        for name, column in zip(header, columns, strict=True)
        if name and column not in COLUMNS
    ]
    found: dict[str, str] = {}
    if "question" in columns:
        question = header[columns.index("question")]
    elif not free:
        return {}
    else:
        question = max(free, key=lambda name: _share_of_questions(below[name]))
        if _share_of_questions(below[question]) < _MOSTLY:
            return {}
        found[question] = "question"
        free.remove(question)
    if "answer" in columns:
        return found
    answer = max(free, key=lambda name: _length(below[name]), default="")
    if answer and _length(below[answer]) > _length(below[question]):
        return {**found, answer: "answer"}
    return {}


def _columns(rows: Sequence[Sequence[str]], count: int) -> list[list[str]]:
    """Return the cells of each column; a row may have fewer cells than there are columns."""
    return [[row[at].strip() for row in rows if at < len(row)] for at in range(count)]


def _share_of_questions(cells: Sequence[str]) -> float:
    said = [*filter(None, cells)]
    return sum(each.endswith("?") for each in said) / len(said) if said else 0.0


def _length(cells: Sequence[str]) -> float:
    return fmean(map(len, cells)) if cells else 0.0


def _is_of_facts(
    header: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    limit: int,
) -> bool:
    """Return whether the first row heads several columns, none of them of questions."""
    said = [name.strip() for name in header]
    return (
        len(said) > 1
        and all(said[1:])  # the rows' subject, first, needs no heading
        and not {"question", "answer"} & {*columns}
        and not any(len(name) > limit for name in said)
        and not said[0].endswith("?")
        and not any(map(_asks, said))
        and all(
            _share_of_questions(column) < _MOSTLY
            for column in _columns(rows, len(header))
        )
    )


_MIN_ASKED = 4  # words; a shorter one may be a heading: "Appointment needed?"


def _asks(name: str) -> bool:
    return name.endswith("?") and len(name.split()) >= _MIN_ASKED


def _telling(rows: Sequence[Sequence[str]], count: int) -> int:
    """Return how many leading cells identify each row, or 0 if only all cells do.

    A row whose other cells change is then still the same fact.
    """
    filled = [row for row in rows if any(map(str.strip, row))]
    for number in range(1, count):
        first = [tuple(cell.strip() for cell in row[:number]) for row in filled]
        if all(map(any, first)) and len({*first}) == len(first):
            return number
    return 0


_FORMS = ("text", "html", "body", "markdown", "plain")


def _last(name: str) -> str:
    """Return a heading's last word that is not a form: "answer" of "answer_html"."""
    words = plain(name).split()
    while len(words) > 1 and words[-1] in _FORMS:
        words.pop()
    return words[-1] if words else ""


def _missing(columns: Sequence[str], named: Sequence[str]) -> str:
    rename = [
        f"the one with the {column}s to {column}"
        for column in ("question", "answer")
        if column not in columns
    ]
    if len(rename) > 1:
        rename.append("or the one with the facts to text")
    found = ", ".join(map(_printable, named))[:300] or "none"
    return (
        f"text, or question and answer, and perhaps id; it names {found}. "
        f"Rename {', '.join(rename)}."
    )


def _printable(name: str) -> str:
    short = name[:NAME_LIMIT]
    return "".join(each if each.isprintable() else "?" for each in short)
