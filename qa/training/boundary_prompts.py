"""Prompts of the own-knowledge form that were answered, and whether rightly.

Of each question one without notes and one for each of its notes: what is fitted on the
first alone would score the second by chance, and scores both at work.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from probes.language_model.taps import Activations, Tap
from qa.evaluation.cases import as_text, as_texts, read_lines
from qa.evaluation.metrics.text import contains_gold, normalised
from qa.exceptions import EvaluationDataError, TrainingDataError
from qa.language_models.own_knowledge import OwnKnowledgeForm

# Prompts of like length that are answered side by side.
_AT_ONCE: Final = 32
_MOST_TOKENS: Final = 24

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, its right answers, and notes that may help or not.

    Attributes:
        group: Questions of one group stand or fall together; by default each alone.
    """

    question: str
    references: tuple[str, ...]
    notes: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class BoundaryPrompt:
    """A question as the model reads it.

    Attributes:
        notes: What stands behind it, best first; empty without any.
    """

    question: str
    notes: tuple[str, ...]
    references: tuple[str, ...]
    group: str


@dataclass(frozen=True, slots=True)
class AnsweredPrompt:
    """What the model wrote, and whether it is right."""

    prompt: BoundaryPrompt
    answer: str
    is_right: bool

    @property
    def content(self) -> str:
        """64 hex digits: what was read, what it came to, and whose group it is in."""
        prompt = self.prompt
        said = [prompt.question, prompt.notes, prompt.group, self.answer, self.is_right]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def questions_of_file(file: Path) -> list[LabelledQuestion]:
    """Read questions, one JSON object a line; other fields than these are let be.

    `question`, `answers` (or `answer`; a text is one answer, or a list written as JSON),
    and optionally `notes` and `group`.

    Raises:
        TrainingDataError: The file can't be opened, or a line is none; names it.
    """
    try:
        return [row for _, row in read_lines(file, _question)]
    except EvaluationDataError as error:
        raise TrainingDataError(
            f'{error} A line is {{"question": "...", "answers": ["..."]}}, with '
            '"notes": ["..."] where some are to be tried.'
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingDataError(f"{file} can not be read: {error}.") from error


def prompts_of(
    questions: Iterable[LabelledQuestion], *, notes: int | None = None
) -> list[BoundaryPrompt]:
    """Return for each question a prompt without notes and one for each note.

    Args:
        notes: How many notes of a question are tried at most; None for all.
    """
    return [
        BoundaryPrompt(
            asked.question,
            behind,
            asked.references,
            asked.group or normalised(asked.question),
        )
        for asked in questions
        for behind in ((), *((note,) for note in asked.notes[:notes]))
    ]


def answered(
    form: OwnKnowledgeForm,
    prompts: Sequence[BoundaryPrompt],
    *,
    on_progress: OnProgress = lambda _done, _all: None,
) -> list[AnsweredPrompt]:
    """Let the model answer each prompt greedily; right is what a reference stands in.

    Raises:
        TooManyTokensError: A prompt does not fit the model's context.
    """
    rows = [form.prompt_ids(one.question, one.notes) for one in prompts]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    texts: dict[int, str] = {}
    for first in range(0, len(order), _AT_ONCE):
        batch = order[first : first + _AT_ONCE]
        written = form.model.write_each(
            [rows[index] for index in batch],
            form.prefix(),
            max_tokens=_MOST_TOKENS,
            stop=["\n"],
        )
        texts.update(
            (index, one.text.strip()) for index, one in zip(batch, written, strict=True)
        )
        on_progress(len(texts), len(rows))
    return [
        AnsweredPrompt(
            prompt, texts[index], contains_gold(texts[index], prompt.references) == 1.0
        )
        for index, prompt in enumerate(prompts)
    ]


def states_of(
    form: OwnKnowledgeForm,
    prompts: Sequence[BoundaryPrompt],
    tap: Tap,
    *,
    on_progress: OnProgress = lambda _done, _all: None,
) -> list[Activations]:
    """Return for each prompt float32 (1, width) of its last token at the tap.

    The pass ends at the tap, before any answer token.

    Raises:
        TooManyTokensError: A prompt does not fit the model's context.
        LayerError: The model has no such block.
    """
    rows = [form.prompt_ids(one.question, one.notes) for one in prompts]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    found: dict[int, Activations] = {}
    for first in range(0, len(order), _AT_ONCE):
        batch = order[first : first + _AT_ONCE]
        looked = form.model.look_each(
            [rows[index] for index in batch], form.prefix(), taps=[tap]
        )
        found.update(
            (index, states[tap][None])
            for index, states in zip(batch, looked, strict=True)
        )
        on_progress(len(found), len(rows))
    return [found[index] for index in range(len(rows))]


def _question(row: Mapping[str, Any]) -> LabelledQuestion:
    if not isinstance(row, dict):
        msg = f"it is {type(row).__name__}, not an object"
        raise TypeError(msg)
    given = row["answers"] if "answers" in row else row["answer"]
    if isinstance(given, str):
        given = json.loads(given) if given.startswith("[") else [given]
    # A reference of signs alone stands in every answer, or in none.
    references = tuple(one for one in as_texts(given) if normalised(one))
    if not references:
        msg = f"no answer among {given!r}"
        raise ValueError(msg)
    return LabelledQuestion(
        question=as_text(row["question"]),
        references=references,
        notes=as_texts(row.get("notes", [])),
        group=as_text(row["group"]) if row.get("group") else "",
    )
