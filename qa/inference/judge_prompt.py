"""How a language model is asked what two statements are to each other."""

from typing import Final

from kb.conflicts import Kind, Statement
from qa.inference.evidence_text import flatten

# Made up, and of no labelled pair.
EXAMPLES: Final = (
    ("The pool opens at 8.", "The pool opens at 9.", Kind.CONTRADICTION),
    ("Dogs may enter the park.", "You may bring a dog into the park.", Kind.DUPLICATE),
    ("The pool opens at 8.", "The library opens at 9.", Kind.DIFFERENT),
    ("Helmets are required.", "Nobody has to wear a helmet.", Kind.CONTRADICTION),
    ("Tea is served at noon.", "Tea is served at 12 o'clock.", Kind.DUPLICATE),
    ("A day ticket costs 4 euros.", "Children's tickets cost 2 euros.", Kind.DIFFERENT),
)
_LONGEST: Final = 600  # characters of a statement; most entries are one sentence


def line_of(statement: Statement) -> str:
    """Return a statement on one line, its question before it."""
    said = f"{statement.question} {statement.text}"
    return flatten(said).strip()[:_LONGEST]
