"""The closed-book form: a question, and what the model itself knows about it.

It uses a white-box model without the adapter that taught it to write nothing if no note
answers. It is plain text with a few examples, so that any causal language model can
fill it in, however small. Notes follow the question:

    Question: ...
    Note: ...          (only if something was retrieved)
    Answer:
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accounts.ids import digest
from probes.language_model import Context, Generated, WhiteBoxModel
from probes.language_model.batch import Written
from probes.taps import Tap
from qa.inference.evidence_text import (
    MAX_ENTRY_TOKENS,
    MAX_QUESTION_TOKENS,
    PROMPTS,
    flatten,
)
from qa.inference.white_box import bounded_mean
from qa.pipeline.language_model import Generation
from qa.pipeline.values import Question

FORM: Final = "own-1"
_PROMPTS: Final = PROMPTS["closed_book"]
_INSTRUCTION: Final[str] = _PROMPTS["instruction"]
_EXAMPLES: Final[Sequence[tuple[str, Sequence[str], str]]] = _PROMPTS["examples"]
_MAX_TOKENS: Final = 24
_LINE_END: Final = "\n"


class ClosedBookForm:
    def __init__(self, model: WhiteBoxModel) -> None:
        self.model = model
        self._start = _start()
        self.fingerprint = digest(model.fingerprint, FORM, self._start)

    def prefix(self) -> Context:
        return self.model.read_prefix(self.model.tokens.encode_text(self._start))

    def question_ids(self, question: str) -> tuple[int, ...]:
        asked = f"Question: {flatten(question).strip()}"
        return self.model.tokens.encode_text(asked)[:MAX_QUESTION_TOKENS]

    def notes_ids(self, notes: Sequence[str]) -> tuple[int, ...]:
        encode = self.model.tokens.encode_text
        ids: list[int] = []
        for note in notes:
            ids += encode(_LINE_END)
            ids += encode(f"Note: {flatten(note).strip()}")[:MAX_ENTRY_TOKENS]
        return tuple(ids)

    def ending_ids(self) -> tuple[int, ...]:
        encode = self.model.tokens.encode_text
        return (*encode(_LINE_END), *encode("Answer:"))

    def prompt_ids(self, question: str, notes: Sequence[str] = ()) -> tuple[int, ...]:
        asked = self.question_ids(question)
        return (*asked, *self.notes_ids(notes), *self.ending_ids())

    def open(self, question: str, notes: Sequence[str] = ()) -> Context:
        """Read a question and its notes, best first, up to where its answer begins."""
        return self.model.read(self.prompt_ids(question, notes), self.prefix())

    def write(
        self,
        context: Context,
        *,
        max_tokens: int = _MAX_TOKENS,
        taps: Sequence[Tap] = (),
    ) -> Generated:
        """Write a one-line answer after what `open` read, white space included."""
        return self.model.generate(
            context, max_tokens=max_tokens, stop=[_LINE_END], taps=taps
        )

    def write_each(
        self, questions: Sequence[str], notes: Sequence[Sequence[str]] | None = None
    ) -> list[str]:
        return [each.text.strip() for each in self.draft_each(questions, notes)]

    def draft_each(
        self, questions: Sequence[str], notes: Sequence[Sequence[str]] | None = None
    ) -> tuple[Written, ...]:
        """Write an answer to each question and its notes, in one batch."""
        if not questions:
            return ()
        behind = notes if notes is not None else [()] * len(questions)
        rows = [
            self.prompt_ids(question, own)
            for question, own in zip(questions, behind, strict=True)
        ]
        return self.model.write_each(
            rows, self.prefix(), max_tokens=_MAX_TOKENS, stop=[_LINE_END]
        )


def _start() -> str:
    return _INSTRUCTION + "".join(
        "\n".join(
            [
                f"Question: {question}",
                *(f"Note: {note}" for note in notes),
                f"Answer: {answer}\n\n",
            ]
        )
        for question, notes, answer in _EXAMPLES
    )


def write_draft(form: ClosedBookForm, context: Context) -> Generation:
    began = time.perf_counter()
    written = form.write(context)
    return as_draft(
        written,
        prompt_tokens=len(context),
        milliseconds=(time.perf_counter() - began) * 1000,
    )


def as_draft(
    written: Generated, *, prompt_tokens: int, milliseconds: float
) -> Generation:
    text = written.text.strip()
    return Generation(
        can_answer=bool(text),
        answer=text,
        log_probability=bounded_mean(written.log_probabilities),
        raw=written.text,
        prompt_tokens=prompt_tokens,
        answer_tokens=len(written.ids),
        milliseconds=milliseconds,
        least_log_probability=min(written.log_probabilities, default=None),
        entropy=bounded_mean(written.entropies),
    )


@dataclass(frozen=True, slots=True)
class EstimateByDraft:
    """`qa.pipeline.self_knowledge.KnowledgeEstimate` of a draft already written."""

    draft: Generation
    examples: tuple[str, ...] = ()

    @property
    def known_probability(self) -> float | None:
        mean = self.draft.log_probability
        return None if mean is None else math.exp(mean)

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        return (("own_log_probability", self.draft.log_probability),)

    def answer(self) -> Generation:
        return self.draft


class SelfKnowledgeByDraft:
    """`qa.pipeline.self_knowledge.SelfKnowledge` by the likelihood of a draft.

    The simplest trigger, but an expensive one: the draft is written before it is known
    whether it will be shown, while boundary and history decide within the prompt's
    pass.
    """

    def __init__(self, form: ClosedBookForm) -> None:
        self._form = form
        self.fingerprint = form.fingerprint

    def consider(self, question: Question) -> EstimateByDraft:
        with self._form.model.turn():
            context = self._form.open(question.text)
            return EstimateByDraft(write_draft(self._form, context))
