"""What models read: prompts of a file; evidence and questions as data, flat and visible."""

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
# Tokens beyond these are not read: time and memory stay bounded whatever is asked.
MAX_ENTRY_TOKENS: Final = 512
MAX_QUESTION_TOKENS: Final = 256

# Categories that break lines, hide or turn text round: controls, formats, separators,
# surrogates, private use.
UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"})

# A sentence ends with its mark before white space and what can begin a sentence; a
# short abbreviation ("e.g. In Berlin") may end one too early, which costs nothing but
# a shorter choice: neighbouring sentences can be copied together.
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019)]*\s+(?=[^\s\d\Wa-z]|[\"'\u201c\u201e\u00bf(\d])"
    r"|(?<=[\u3002\uff01\uff1f])"
)


def flatten(text: str) -> str:
    """Return `text` on one line, each unseen character as a space; as long as before."""
    return "".join(
        " " if unicodedata.category(character) in UNSEEN_CATEGORIES else character
        for character in text
    )


def note_text(piece: Evidence) -> str:
    """Return a piece on one line, after the question that it answers, if it has one."""
    return flatten(f"{piece.question} {piece.text}".strip())


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return where each sentence of a flat text starts and ends, at least one.

    The spans hold every character but the white space around them.
    """
    cuts = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    spans = []
    for start, end in itertools.pairwise(cuts):
        words = text[start:end].strip()
        if words:
            at = text.index(words, start)
            spans.append((at, at + len(words)))
    return spans or [(0, 0)]
