"""Stage 1: what was typed becomes a question."""

import re
import unicodedata

from .outcome import Question

# Reordering marks can make a question read otherwise than it is; joiners stay, since
# scripts and emoji need them.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def clean_question(text: str, language: str) -> Question:
    """Return the question in NFC on one line: no control characters, single spaces."""
    return Question(clean_text(text), language)


def clean_text(text: str) -> str:
    """Return a text in NFC on one line: no control characters, single spaces."""
    composed = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    spaced = "".join(" " if unicodedata.category(c) == "Cc" else c for c in composed)
    return " ".join(spaced.split())
