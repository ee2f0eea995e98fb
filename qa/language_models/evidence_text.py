"""Evidence and questions as data: flat, visible, and the same length as before."""

import unicodedata
from typing import Final

# Categories that break lines, hide or turn text round: controls, formats, separators,
# surrogates, private use.
UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"})


def flatten(text: str) -> str:
    """Return `text` on one line, each unseen character as a plain space.

    Character i of the result stands for character i of `text`, so a span of one is a
    span of the other.
    """
    return "".join(
        " " if unicodedata.category(character) in UNSEEN_CATEGORIES else character
        for character in text
    )
