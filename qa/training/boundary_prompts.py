"""Prompts of the own-knowledge form that were answered, and whether rightly.

Of each question one without notes and one for each of its notes: what is fitted on the
first alone would score the second by chance, and scores both at work.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from probes.taps import Activations, Tap
from qa.evaluation.metrics.text import contains_gold, normalised
from qa.inference.closed_book_form import ClosedBookForm

from .labelled_questions import LabelledQuestion

# Prompts of like length that are answered side by side.
_AT_ONCE: Final = 32
_MAX_TOKENS: Final = 24

OnProgress = Callable[[int, int], None]
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class AnsweredPrompt:
    prompt: LabelledQuestion
    answer: str
    is_right: bool

    @property
    def content(self) -> str:
        """64 hex digits of prompt, answer, label and group."""
        prompt = self.prompt
        said = [prompt.question, prompt.notes, prompt.group, self.answer, self.is_right]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def prompts_of(
    questions: Iterable[LabelledQuestion], *, notes: int | None = None
) -> list[LabelledQuestion]:
    """Return for each question a prompt without notes and one for each note."""
    return [
        replace(row, notes=shown, group=row.group or normalised(row.question))
        for row in questions
        for shown in ((), *((note,) for note in row.notes[:notes]))
    ]


def answered(
    form: ClosedBookForm,
    prompts: Sequence[LabelledQuestion],
    *,
    on_progress: OnProgress = lambda _done, _all: None,
) -> list[AnsweredPrompt]:
    """Let the model answer each prompt greedily; right is what contains a reference."""

    def write(rows: Sequence[tuple[int, ...]]) -> Sequence[str]:
        written = form.model.write_each(
            rows, form.prefix(), max_tokens=_MAX_TOKENS, stop=["\n"]
        )
        return [one.text.strip() for one in written]

    texts = _side_by_side(form, prompts, write, on_progress)
    return [
        AnsweredPrompt(prompt, text, contains_gold(text, prompt.references) == 1.0)
        for prompt, text in zip(prompts, texts, strict=True)
    ]


def states_of(
    form: ClosedBookForm,
    prompts: Sequence[LabelledQuestion],
    tap: Tap,
    *,
    on_progress: OnProgress = lambda _done, _all: None,
) -> list[Activations]:
    """Return for each prompt float32 (1, width) of its last token at the tap."""

    def look(rows: Sequence[tuple[int, ...]]) -> Sequence[Activations]:
        looked = form.model.look_each(rows, form.prefix(), taps=[tap])
        return [states[tap][None] for states in looked]

    return _side_by_side(form, prompts, look, on_progress)


def _side_by_side(
    form: ClosedBookForm,
    prompts: Sequence[LabelledQuestion],
    work: Callable[[Sequence[tuple[int, ...]]], Sequence[_Made]],
    on_progress: OnProgress,
) -> list[_Made]:
    """Return what `work` makes of each prompt's tokens, those of like length together."""
    rows = [form.prompt_ids(one.question, one.notes) for one in prompts]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    found: dict[int, _Made] = {}
    for first in range(0, len(order), _AT_ONCE):
        batch = order[first : first + _AT_ONCE]
        made = work([rows[index] for index in batch])
        found.update(zip(batch, made, strict=True))
        on_progress(len(found), len(rows))
    return [found[index] for index in range(len(rows))]
