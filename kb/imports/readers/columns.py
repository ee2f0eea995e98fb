"""The columns of a table of facts, also by other names that people give them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .formats import ImportFileError, UnreadColumns

OWN_KEY = "own_key"
COLUMNS = ("id", "key", OWN_KEY, "question", "answer", "text", "also_asked")
"""What is read of a row; `key` is another name for `id`.

A table that Nescio exported has each entry's id of before in `own_key`, and Nescio's number
in `id`, which says nothing then.

`also_asked`: the question in other words, each on a line of its own in the cell; in a cell
of one line there is a `|` between them.
"""

MAX_COLUMNS = 500
_NAME_LIMIT = 60

# By the last word of a heading, which says what it is: "patients ask", "desk answer", but not
# "answer time". German puts the words into one.
_LAST_WORDS = {
    "question": re.compile(r"questions?|query|queries|asks?|\w*fragen?"),
    "answer": re.compile(
        r"answers?|response|responses|reply|replies|\w*antwort(?:en)?"
    ),
    "text": re.compile(r"facts?|content|statements?|inhalt"),
    "id": re.compile(
        r"(?:(?:question|faq|entry|article|row|item|frage) )?(?:id|number|no|nr|nummer)|key"
    ),
}


def header_of(cells: Iterable[str]) -> tuple[list[str], list[UnreadColumns]]:
    """Return what each column is read as, and what is to be said of it.

    Other names count only where those of `COLUMNS` do not suffice.

    Raises:
        ImportFileError: Nothing in it can be read as facts.
    """
    header = [name.strip().lower() for name in cells]
    if len(header) > MAX_COLUMNS:
        raise ImportFileError(
            f"The header has {len(header):,} columns and may have {MAX_COLUMNS}; only "
            f"{', '.join(COLUMNS)} are read."
        )
    named = [name for name in header if name]
    twice = sorted(name for name, count in Counter(named).items() if count > 1)
    if twice:
        raise ImportFileError(
            f"The columns {', '.join(twice)[:300]} stand twice in the header."
        )
    read_as = {} if _suffices(named) else _by_other_names(named)
    columns = [read_as.get(name, name) for name in header]
    if not _suffices(columns):
        raise ImportFileError(_missing(columns, named))
    understood = tuple(
        f"{_printable(name)!r} as {column}" for name, column in read_as.items()
    )
    return columns, list(unread(filter(None, columns), COLUMNS, understood))


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
            and last_words.fullmatch(_plain(name) if column == "id" else _last(name))
        ]
        if len(able) == 1:
            found[able[0]] = column
        elif able and column != "id":
            raise ImportFileError(
                f"The columns {' and '.join(map(repr, map(_printable, able)))} may all "
                f"be the {column}; rename the right one to {column}."
            )
    return found


def _plain(name: str) -> str:
    """Return the words of a heading, without what is in brackets."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"\(.*?\)", "", name)))


def _last(name: str) -> str:
    words = _plain(name).removesuffix(" text").split()
    return words[-1] if words else ""


def _missing(columns: Sequence[str], named: Sequence[str]) -> str:
    rename = [
        f"the one with the {column}s to {column}"
        for column in ("question", "answer")
        if column not in columns
    ]
    if len(rename) > 1:
        rename.append("or the one with the facts to text")
    found = ", ".join(named)[:300] or "none"
    return (
        "The first row must name the columns: text, or question and answer, and "
        f"perhaps id; it names {found}. Rename {', '.join(rename)}."
    )


def _printable(name: str) -> str:
    short = name[:_NAME_LIMIT]
    return "".join(each if each.isprintable() else "?" for each in short)
