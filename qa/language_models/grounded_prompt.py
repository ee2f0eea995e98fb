"""The grounded form as tokens: notes, a question, and the words of a note that answer it.

The same tokens are built for fitting an adapter, for answering, and for reading the
activations of an answer in a second pass. Every text is encoded on its own, so that it
can neither become a control token nor run into the structure around it.
"""

from collections.abc import Sequence
from typing import Final

from probes.language_model import Tokens
from probes.language_model.second_pass import Passing
from qa.language_models.evidence_text import (
    LONGEST_ENTRY_TOKENS,
    LONGEST_QUESTION_TOKENS,
    flatten,
    note_of,
)
from qa.pipeline.evidence import Evidence
from qa.pipeline.generation import Prompt

FORM: Final = "grounded-1"
INSTRUCTION: Final = (
    "Answer the question with words of the notes. If no note answers it, write nothing."
    "\n\n"
)


def instruction_ids(tokens: Tokens) -> tuple[int, ...]:
    """Return the fixed prefix, which every prompt begins with."""
    return tokens.encode_text(INSTRUCTION)


def notes_ids(
    tokens: Tokens, question: str, evidence: Sequence[Evidence]
) -> tuple[int, ...]:
    """Return what follows the fixed prefix: the notes, best first, and the question."""
    ids: list[int] = []
    line = tokens.encode_text("\n")
    for piece in evidence:
        ids += tokens.encode_text(f"Note: {note_of(piece)}")[:LONGEST_ENTRY_TOKENS]
        ids += line
    asked = tokens.encode_text(f"Question: {flatten(question).strip()}")
    ids += asked[:LONGEST_QUESTION_TOKENS]
    return (*ids, *line, *tokens.encode_text("Answer:"))


def prompt_ids(
    tokens: Tokens, prompt: Prompt, *, pieces: int | None = None
) -> tuple[int, ...]:
    """Return the whole prompt, with the first `pieces` of its evidence or all."""
    notes = notes_ids(tokens, prompt.question, prompt.evidence[:pieces])
    return (*instruction_ids(tokens), *notes)


def answer_ids(tokens: Tokens, answer: str) -> tuple[int, ...]:
    """Return the answer and its end token; an empty answer is the end token alone."""
    said = flatten(answer).strip()
    written = tokens.encode_text(f" {said}") if said else ()
    return (*written, end_id(tokens))


def end_id(tokens: Tokens) -> int:
    """Return the token that ends an answer: the first of those that end a turn."""
    return min(tokens.end_ids)


def passing_of(
    tokens: Tokens, prompt: Prompt, answer: str, *, pieces: int | None = None
) -> Passing:
    """Return the second pass of an answer: its own tokens and its end token are kept."""
    before = prompt_ids(tokens, prompt, pieces=pieces)
    ids = (*before, *answer_ids(tokens, answer))
    return Passing(ids, len(before), len(ids))


def prompt_passing_of(
    tokens: Tokens, prompt: Prompt, *, pieces: int | None = None
) -> Passing:
    """Return the pass up to the answer: the prompt's last token alone is kept."""
    ids = prompt_ids(tokens, prompt, pieces=pieces)
    return Passing(ids, len(ids) - 1, len(ids))
