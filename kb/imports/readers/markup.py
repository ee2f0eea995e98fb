"""The HTML that other systems keep in table cells or JSON values, as text."""

import re
from html import unescape

from .blocks import Block, Kind
from .html import html_blocks
from .questions import lines_of

# Text about HTML has tags too, but rarely closes a tag used for formatting.
_MARKUP = re.compile(
    r"<br\s*/?>|</(?:a|b|blockquote|div|em|h[1-6]|i|li|ol|p|pre|span|strong|table|u|ul)\s*>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});", re.IGNORECASE)


def is_markup(cell: str) -> bool:
    """Return whether a cell holds HTML, which may be escaped."""
    return _MARKUP.search(_unescaped(cell)) is not None


def blocks_of(cell: str) -> list[Block] | None:
    """Return the blocks of a cell with HTML, even escaped; None for other text."""
    text = _unescaped(cell)
    return html_blocks(text)[1] if _MARKUP.search(text) else None


def words_of(cell: str) -> str:
    """Return a cell's text as a reader sees it: no tags, and entities replaced."""
    blocks = blocks_of(cell)
    if blocks is None:
        return _unescaped(cell)
    said = [block for block in blocks if block.kind is not Kind.FURNITURE]
    return "\n".join(lines_of(said))


def _unescaped(cell: str) -> str:
    """Return a cell with entities replaced; HTML stays, as it is parsed later."""
    if _MARKUP.search(cell) or not _ENTITY.search(cell):
        return cell
    return unescape(cell)
