"""The text that models read: prompts from a file, evidence and questions as data."""

import itertools
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kb.types import Evidence

PROMPTS: Final[Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8")
)
# Tokens beyond these are cut off, so that time and memory stay bounded.
MAX_ENTRY_TOKENS: Final = 512
MAX_QUESTION_TOKENS: Final = 256

# Unicode categories that break lines, or hide or reorder text: controls, formats,
# separators, surrogates, private use.
UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"})

# A sentence ends with its mark before white space and something that can begin a
# sentence. A short abbreviation ("e.g. In Berlin") may end one too early, which only
# makes the choices shorter: neighbouring sentences can be copied together.
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019)]*\s+(?=[^\s\d\Wa-z]|[\"'\u201c\u201e\u00bf(\d])"
    r"|(?<=[\u3002\uff01\uff1f])"
)


def flatten(text: str) -> str:
    """Return `text` on one line of equal length, unseen characters as spaces."""
    return "".join(
        " " if unicodedata.category(character) in UNSEEN_CATEGORIES else character
        for character in text
    )


def note_text(piece: Evidence) -> str:
    """Return a piece on one line, after the question that it answers, if any."""
    return flatten(f"{piece.question} {piece.text}".strip())


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of a flat text; at least one.

    The spans contain every character except the white space around them.
    """
    cuts = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    spans = []
    for start, end in itertools.pairwise(cuts):
        words = text[start:end].strip()
        if words:
            at = text.index(words, start)
            spans.append((at, at + len(words)))
    return spans or [(0, 0)]
