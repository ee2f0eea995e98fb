"""The columns of a table of facts, also by other names that people give them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from kb.text.cleaning import original

from .formats import ImportFileError, UnreadColumns
from .header import NAME_LIMIT, OWN_KEY, TITLE, Header, marks_withdrawn, plain

COLUMNS = ("id", "key", OWN_KEY, "question", "answer", "text", "also_asked")
"""What is read of every row; `key` is another name for `id`.

A table that Nescio exported has each entry's id of before in `own_key`, and Nescio's number
in `id`, which says nothing then.

`also_asked`: the question in other words, each on a line of its own in the cell; in a cell
of one line there is a `|` between them.
"""

MAX_COLUMNS = 500
SAMPLE = 40
"""First rows that are read to recognise the headings, and columns without a known name."""

# Columns of prepared replies at most, of which one may be headed "Response"; more are of facts.
_OF_REPLIES = 3

_MOSTLY = 0.6  # of a column of questions, some of which are key words

_MAX_SECTION = 80  # characters
_MAX_ANSWER = 1_500  # characters of what stands below a title that asks
_SECTIONS = re.compile(
    r"(?:sub)?(?:section|categor(?:y|ie)|topic|chapter|folder|product)s?|\w*kategorien?|"
    r"rubrik(?:en)?|\w*them(?:a|en)|\w*bereiche?|\w*abschnitte?|produkte?"
)
# By the last word of a heading, which says what it is: "patients ask", "desk answer", but not
# "answer time". German puts the words into one.
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
# Beside a title.
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
    """Return how a table is read whose first row is `cells`, and of which `read` is read.

    Other names count only where those of `COLUMNS` do not suffice, and what the first rows
    below look like only where no names do. Where `takes_tables`, a table in which nothing
    is asked is one of facts, each a whole row. `cells` may be of several rows, joined.

    Raises:
        ImportFileError: Nothing in it can be read as facts.
    """
    written = [*cells]
    # Salesforce's own fields end so.
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
            f"The columns {', '.join(map(_printable, twice))[:300]} stand twice in the header."
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
    if is_guess and len(named) > _OF_REPLIES:  # how fast somebody comes, say
        columns = header
    if takes_tables and _is_of_facts(written, columns, rows, heads * NAME_LIMIT):
        together = ", ".join(repr(_printable(name)) for name in written if name)
        note = UnreadColumns((), (f"{together[:300]} together as one fact a row",))
        # A guessed id ("Number") may stand in several rows.
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
    """Return how rows are read that are questions, texts or articles."""
    is_exported = OWN_KEY in columns
    sections = () if is_exported else tuple(_sections(columns, rows))
    states = () if is_exported else filter(marks_withdrawn, columns)
    is_titled = TITLE in columns and not {"question", "answer"} & {*columns}
    # A text that its source has given an id is one entry, which keeps it.
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
    """Yield the columns under whose words several rows are sorted."""
    below = _columns(rows, len(columns))
    for name, cells in zip(columns, below, strict=True):
        said = [*filter(None, cells)]
        repeats = len({*said}) < len(said) and max(map(len, said)) <= _MAX_SECTION
        if repeats and name not in COLUMNS and _SECTIONS.fullmatch(_last(name)):
            yield name


def unread(
    names: Iterable[str], read: Iterable[str], understood: tuple[str, ...] = ()
) -> Iterator[UnreadColumns]:
    """Yield what is left out of all rows, and what is read by another name, if any is."""
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
    """Return what is read as titles, and what as that which stands below them.

    Titles that mostly ask, with short texts, are questions with answers; so is what a
    prepared reply is called.
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
    """Return what is asked and what is answered, by the marks and lengths of the cells.

    A question's answer is the longest thing that a row says, if it is longer than it.
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
    """Tell whether the first row has headings of several columns, none of them asked."""
    said = [name.strip() for name in header]
    return (
        len(said) > 1
        and all(said[1:])  # what the rows are about needs no heading
        and not {"question", "answer"} & {*columns}
        and not any(len(name) > limit for name in said)
        and not said[0].endswith("?")
        and not any(map(_asks, said))
        and all(
            _share_of_questions(column) < _MOSTLY
            for column in _columns(rows, len(header))
        )
    )


_MIN_ASKED = 4  # words; a column may be headed "Appointment needed?"


def _asks(name: str) -> bool:
    return name.endswith("?") and len(name.split()) >= _MIN_ASKED


def _telling(rows: Sequence[Sequence[str]], count: int) -> int:
    """Return of how many cells, from the first, no two of these rows have the same.

    A row whose other cells change is the same one then. Not where it takes all cells.
    """
    filled = [row for row in rows if any(map(str.strip, row))]
    for number in range(1, count):
        first = [tuple(cell.strip() for cell in row[:number]) for row in filled]
        if all(map(any, first)) and len({*first}) == len(first):
            return number
    return 0


_FORMS = ("text", "html", "body", "markdown", "plain")


def _last(name: str) -> str:
    """Return the last word of a heading that tells more than a form: "answer_html"."""
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
