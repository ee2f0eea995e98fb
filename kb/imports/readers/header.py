"""How a table's header is understood, and how the rows below it are read."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb.text.cleaning import TITLE_LIMIT

from .blocks import as_lead, headed, table_row
from .formats import BadRow, UnreadColumns, Withdrawn

OWN_KEY = "own_key"
TITLE = "title"
"""Name of the column with an article's title, which is put above its text."""

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
    """Return the values that mark a row as withdrawn in a column such as "status"."""
    said = plain(name.lower())
    return _NOT_PUBLISHED if _STATE.fullmatch(said) else _FLAGS.get(said, ())


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, with its cells by the names that their columns are read as.

    Attributes:
        headings: The sections it is in, outermost first.
        about: What identifies it, even if its other cells change.
        is_article: Whether it is split like a document; otherwise it is one entry.
    """

    place: str
    cells: Mapping[str, str]
    headings: tuple[str, ...] = ()
    about: str = ""
    is_article: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """How each column is read, with notes on the columns.

    Attributes:
        headings: Column headings of a table of facts, in which each row is a fact.
        title: The text above these headings.
        sheet: The name of the sheet, if it has one and is not the only one.
        name: The name of the table, if its sheet has several.
        telling: How many leading cells identify a row; 0 if none do.
        sections: The columns that name a row's sections, outermost first.
        holds_articles: Whether each row is an article.
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
        """Yield each row with its cells by the names that their columns are read as.

        Args:
            rows: The rows, each with its place.
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
            above: The sections it is in already.
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

        A row that has only its first cell is not a fact like the others: a sentence is
        one by itself, and anything else heads the rows below, if there are any.
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
    """Return whether a cell that stands alone is more than a name."""
    return len(alone) > NAME_LIMIT or alone.endswith((".", "!"))


def rows_above(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the text of each row above a table's headings, "" for an empty one.

    These rows have a single cell each, the headings two or more, with a row below them.
    """
    words: list[str] = []
    for row in rows[: _MAX_ABOVE + 1][:-1]:
        said = [cell.strip() for cell in row if cell.strip()]
        if len(said) > 1:
            return words
        words.append("".join(said))
    return []


def plain(name: str) -> str:
    """Return the words of a heading, without parts in brackets."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"\(.*?\)", "", name)))


def spoken(name: str) -> str:
    """Return a camel-case name in words: "accepted Answer" for "acceptedAnswer"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
