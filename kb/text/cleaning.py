"""Cleaning of text that people write (NFC, trimmed, bounded) and of spreadsheet cells.

Also the digests that identify texts.
"""

import csv
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from kb.exceptions import InvalidKnowledgeError

SLUG_LIMIT = 50
TEXT_LIMIT = 8000  # of an entry's text; all in characters
QUESTION_LIMIT = 1000
TITLE_LIMIT = 300
SOURCE_LIMIT = 500
KEY_LIMIT = 200  # of an entry's key in another system
WORDING_LIMIT = 500  # of another wording of a question; longer ones fit in no index
MAX_WORDINGS = 30  # of an entry; each has a vector

_SLUG = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?")  # as slugify makes them
# C0 and C1 control characters except tab and line feed, and lone surrogates:
# PostgreSQL refuses NUL and surrogates, prompts and pages should refuse the rest.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_text(value: str, *, field: str, limit: int, required: bool = True) -> str:
    """Return `value` in Unicode NFC, trimmed, with line ends as line feeds.

    Raises:
        InvalidKnowledgeError: It is empty, too long or contains what is not text.
    """
    # Checked first: the rest takes time in proportion to the length.
    if len(value) > 4 * limit:
        raise _too_long(field, len(value), limit)
    cleaned = re.sub(r"\r\n?", "\n", value)
    found = _UNPRINTABLE.search(cleaned)
    if found:
        raise InvalidKnowledgeError(
            field,
            f"{field} holds U+{ord(found[0]):04X} at position {found.start()}, "
            "which is not text; remove it.",
        )
    cleaned = unicodedata.normalize("NFC", cleaned).strip()
    # Zero-width spaces are not text either.
    if required and not any(c.isprintable() and not c.isspace() for c in cleaned):
        raise InvalidKnowledgeError(field, f"{field} is empty; write something.")
    if len(cleaned) > limit:
        raise _too_long(field, len(cleaned), limit)
    return cleaned


def clean_line(value: str, *, field: str, limit: int, required: bool = True) -> str:
    """Like `clean_text`, for a single line."""
    cleaned = clean_text(value, field=field, limit=limit, required=required)
    if "\n" in cleaned:
        raise InvalidKnowledgeError(
            field, f"{field} has more than one line; write it on one."
        )
    return cleaned


def clean_slug(value: str) -> str:
    """Return `value` if it is a slug: up to `SLUG_LIMIT` letters, digits and hyphens."""
    if len(value) > SLUG_LIMIT or not _SLUG.fullmatch(value):
        raise InvalidKnowledgeError(
            "slug",
            f"slug {value[:80]!r} is not valid; use up to {SLUG_LIMIT} lower-case "
            "letters, digits and hyphens.",
        )
    return value


def clean_said(name: str, value: str) -> str:
    """Return an entry's question or text, cleaned."""
    if name == "question":
        return clean_line(value, field=name, limit=QUESTION_LIMIT, required=False)
    return clean_text(value, field=name, limit=TEXT_LIMIT)


def _too_long(field: str, length: int, limit: int) -> InvalidKnowledgeError:
    return InvalidKnowledgeError(
        field, f"{field} has {length} characters and may have {limit}; shorten it."
    )


# Blanks before the sign do not protect in every spreadsheet; some treat the wide forms
# of the signs as the plain ones.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")


class _Line:
    text = ""

    def write(self, text: str) -> None:
        self.text = text


def csv_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    line = _Line()
    writer = csv.writer(line, lineterminator="\r\n")
    for row in rows:
        writer.writerow([inert(cell) for cell in row])
        yield line.text


def inert(text: str) -> str:
    """Return the cell for `text`, with an apostrophe before a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def original(cell: str) -> str:
    """Return the text that `inert` made the cell of; other cells are unchanged."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def digest_of(*parts: str) -> str:
    """Return 64 hex digits that identify these parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def digest_of_key(own_key: str) -> str:
    """Return the digest of the key that an entry has in its source."""
    return digest_of("id", own_key)
