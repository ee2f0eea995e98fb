"""A table's first row as it was understood, and each row below it read by it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb.text.cleaning import TITLE_LIMIT

from .blocks import as_lead, headed, table_row
from .formats import BadRow, UnreadColumns, Withdrawn

OWN_KEY = "own_key"
TITLE = "title"
"""What an article is called, below which its text stands."""

NAME_LIMIT = 60
_MAX_ABOVE = 10  # rows above a table's headings
_MIN_GROUPED = 2  # columns; a row of two may lack its second cell
# By column, the values that mark a row as a draft or as withdrawn.
_FLAGS = {
    **dict.fromkeys(("draft", "is draft", "archived", "is archived"), ("true", "yes", "1")),
    **dict.fromkeys(
        ("published", "is published", "active", "is active"), ("false", "no", "0")
    ),
}  # fmt: skip
_STATE = re.compile(
    r"(?:.*\b)?(?:publish(?:ing|ed)?|article|record|post)?(?:status|state)"
)
_NOT_PUBLISHED = (
    "draft", "archived", "unpublished", "deleted", "withdrawn", "retired", "obsolete",
    "entwurf", "archiviert", "zurückgezogen", "trash",
)  # fmt: skip


def marks_withdrawn(name: str) -> tuple[str, ...]:
    """Return by what a column of this name marks a row as withdrawn: "PublishStatus"."""
    said = plain(name.lower())
    return _NOT_PUBLISHED if _STATE.fullmatch(said) else _FLAGS.get(said, ())


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, its cells by what their columns are read as.

    Attributes:
        headings: What it is sorted under, outermost first.
        about: What tells it from the other rows, also where the rest of it changes.
        is_article: It is cut like a document; otherwise it is an entry.
    """

    place: str
    cells: Mapping[str, str]
    headings: tuple[str, ...] = ()
    about: str = ""
    is_article: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """What each column is read as, and what is to be said of it.

    Attributes:
        headings: Of a table of facts, each of which is a whole row below them.
        title: What stands above these headings.
        sheet: What the table is called beside others.
        name: Likewise, beside others of its sheet.
        telling: How many cells, from the first, tell its rows apart; 0 where none do.
        sections: The columns that say what a row is sorted under, outermost first.
        holds_articles: Each row is one.
    """

    columns: tuple[str, ...]
    notes: tuple[UnreadColumns, ...] = ()
    headings: tuple[str, ...] = ()
    title: str = ""
    sheet: str = ""
    telling: int = 0
    sections: tuple[str, ...] = ()
    holds_articles: bool = False
    name: str = ""

    def named(
        self, rows: Iterable[tuple[str, Sequence[str]] | BadRow]
    ) -> Iterator[Row | BadRow | Withdrawn]:
        """Yield each row with its cells by what their columns are read as.

        Args:
            rows: Each with its place.
        """
        if self.headings:
            yield from self._facts(rows)
            return
        for each in rows:
            if isinstance(each, BadRow):
                yield each
            else:
                place, said = each
                yield self.row(dict(zip(self.columns, said, strict=False)), place)

    def row(
        self, cells: Mapping[str, str], place: str, above: Sequence[str] = ()
    ) -> Row | Withdrawn:
        """Return a row of questions, texts or articles, or `Withdrawn` for a draft.

        Args:
            above: What it is sorted under already.
        """
        if OWN_KEY not in self.columns and _is_withdrawn(cells):
            return Withdrawn(place)
        said = (" ".join(cells.get(name, "").split()) for name in self.sections)
        path = tuple(
            dict.fromkeys(filter(None, (self.sheet, self.name, *above, *said)))
        )
        title = "" if self.holds_articles else cells.get(TITLE, "")
        if title and "question" not in self.columns:
            path = (*path, " ".join(title.split()))
        headings = tuple(each[:TITLE_LIMIT] for each in path)
        return Row(place, cells, headings, is_article=self.holds_articles)

    def _facts(
        self, rows: Iterable[tuple[str, Sequence[str]] | BadRow]
    ) -> Iterator[Row | BadRow]:
        """Yield each row as one fact.

        One with words in its first cell alone is no fact of the others' kind: a sentence
        is one by itself, and anything else heads what is below, if there is something.
        """
        path = (self.sheet, self.name) if self.name else ()
        headings = tuple(each[:TITLE_LIMIT] for each in path if each)
        group = last = ""
        met: set[str] = set()
        for each in rows:
            if isinstance(each, BadRow):
                yield each
                continue
            place, said = each
            about = ""
            alone = said[0].strip() if not any(said[1:]) else ""
            if says_more(alone):
                text, last = alone, ""
            elif alone and len(self.headings) > _MIN_GROUPED:
                group, last = alone, place
                continue
            else:
                last = ""
                above = (self.sheet, self.title, self.name, group)
                lead = ": ".join(dict.fromkeys(filter(None, above)))
                table = headed([*map(table_row, (self.headings, said))])
                text = "\n".join([as_lead(lead), *table] if lead else table)
                if self.telling:
                    known = [self.sheet, group, *said[: self.telling]]
                    about = table_row([*headings[-1:], *known])
            about = "" if about in met else about
            yield Row(place, {"text": text}, headings, about)
            met.add(about)
        if last:
            yield Row(last, {"text": group}, headings)


def _is_withdrawn(cells: Mapping[str, str]) -> bool:
    return any(
        cell.strip().lower() in marks_withdrawn(name) for name, cell in cells.items()
    )


def says_more(alone: str) -> bool:
    """Tell whether a cell that stands alone says more than what something is called."""
    return len(alone) > NAME_LIMIT or alone.endswith((".", "!"))


def rows_above(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what each row above a table's headings says; "" of an empty one.

    These have a single cell each, and the headings two or more, with a row below them.
    """
    words: list[str] = []
    for row in rows[: _MAX_ABOVE + 1][:-1]:
        said = [cell.strip() for cell in row if cell.strip()]
        if len(said) > 1:
            return words
        words.append("".join(said))
    return []


def plain(name: str) -> str:
    """Return the words of a heading, without what is in brackets."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"\(.*?\)", "", name)))


def spoken(name: str) -> str:
    """Return a name in words: "accepted Answer" of "acceptedAnswer"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
