"""What changed between two texts, word by word."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of words that both texts have, or one of them.

    Attributes:
        kind: "same", "gone" (only in the old text) or "new".
    """

    kind: str
    text: str


def word_difference(old: str, new: str) -> tuple[Piece, ...]:
    """Return the pieces of both texts in reading order; nothing is left out.

    The pieces that are not new make up `old`, those that are not gone make up `new`.
    """
    return tuple(_pieces(_words(old), _words(new)))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+\s*|[^\w\s]\s*|\s+", text)


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    # The library's measure against words that come very often, in texts of 200 words and
    # more: without it a text of one word over and over takes many seconds.
    matcher = SequenceMatcher(None, old, new, autojunk=True)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(old[old_from:old_to]))
            continue
        if old_from < old_to:
            yield Piece("gone", "".join(old[old_from:old_to]))
        if new_from < new_to:
            yield Piece("new", "".join(new[new_from:new_to]))
