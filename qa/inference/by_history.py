"""DH-ICL: whether the model knows an answer, judged by similar past questions.

The soft refusal's verdict is corrected in the same way, by experts' verdicts on similar
questions.

While a knowledge base has no history, the bundled examples are all there is. Half of
them ask what a model can't know: what changes, what is private, what hardly anybody
wrote down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kb.text.terms import asks_about_now
from kb.types import Evidence
from probes.language_model import Tokens, WhiteBoxModel
from probes.language_model.scoring import Example
from qa.inference.closed_book_form import ClosedBookForm, write_draft
from qa.inference.evidence_text import MAX_QUESTION_TOKENS, PROMPTS, flatten, note_text
from qa.inference.label_judge import LabelJudge, LabelJudgement, LabelPair
from qa.pipeline.history import History, JudgedQuestion, KnownQuestion
from qa.pipeline.language_model import DebiasedVerdict, Generation, Prompt
from qa.pipeline.values import Question

_PROMPTS: Final = PROMPTS["known_by_history"]
INSTRUCTION: Final[str] = _PROMPTS["instruction"]
EXAMPLES: Final[Sequence[tuple[str, bool]]] = _PROMPTS["examples"]


# A past question is shown for its subject, not for its every condition.
_MAX_EXAMPLE_TOKENS: Final = 64


class HistoryForm(LabelJudge):
    """Asks a model whether it knows the answer to a question, given past questions."""

    def __init__(
        self,
        model: WhiteBoxModel,
        labels: LabelPair,
        *,
        examples: Sequence[tuple[str, bool]] = EXAMPLES,
    ) -> None:
        super().__init__(
            model,
            labels,
            instruction=INSTRUCTION,
            fixed=[_example(model.tokens, KnownQuestion(*each)) for each in examples],
        )

    def judge(
        self, question: str, past: Sequence[KnownQuestion] = ()
    ) -> LabelJudgement:
        """Return the probability that the model knows; `past` is nearest first."""
        tokens = self.model.tokens
        asked = question_ids(tokens, question, limit=MAX_QUESTION_TOKENS)
        return self.judge_tokens([_example(tokens, p) for p in past[::-1]], asked)


def _example(tokens: Tokens, past: KnownQuestion) -> Example:
    ids = question_ids(tokens, past.question, limit=_MAX_EXAMPLE_TOKENS)
    return Example(ids, int(past.is_known))


def question_ids(tokens: Tokens, question: str, *, limit: int) -> tuple[int, ...]:
    """Return a question, cut to `limit` tokens, up to where its label follows."""
    asked = tokens.encode_text(f"Question: {flatten(question).strip()}")
    line = tokens.encode_text("\n")
    return (*asked[:limit], *line, *tokens.encode_text("Answer:"))


# The paper uses 20 out of a history of 60,000; each one costs prompt tokens.
EXAMPLES_SHOWN: Final = 16


@dataclass(frozen=True, slots=True)
class EstimateByHistory:
    """`KnowledgeEstimate` from past questions, nearest first."""

    form: ClosedBookForm
    question: str
    judgement: LabelJudgement
    past: tuple[KnownQuestion, ...]
    is_timely: bool

    @property
    def known_probability(self) -> float | None:
        """The debiased probability of "known"; 0 for a question about the present."""
        return 0.0 if self.is_timely else self.judgement.known

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        share = (
            sum(each.is_known for each in self.past) / len(self.past)
            if self.past
            else None
        )
        return (
            ("history_known", self.judgement.known),
            ("history_uncorrected", self.judgement.uncorrected),
            ("history_bias_known", self.judgement.bias.known),
            ("history_bias_unknown", self.judgement.bias.unknown),
            ("history_examples", float(len(self.past))),
            ("history_known_share", share),
            ("asks_about_now", float(self.is_timely)),
        )

    @property
    def examples(self) -> tuple[str, ...]:
        return tuple(each.id for each in self.past)

    def answer(self) -> Generation:
        with self.form.model.turn():
            return write_draft(self.form, self.form.open(self.question))


class SelfKnowledgeByHistory:
    """`qa.pipeline.self_knowledge.SelfKnowledge` from past questions."""

    def __init__(
        self, form: ClosedBookForm, asking: HistoryForm, history: History
    ) -> None:
        self._form = form
        self._asking = asking
        self._history = history
        self.fingerprint = asking.fingerprint

    def consider(self, question: Question) -> EstimateByHistory:
        past: Sequence[KnownQuestion] = self._history.known(
            question, own_model=self._form.fingerprint, limit=EXAMPLES_SHOWN
        )
        return EstimateByHistory(
            form=self._form,
            question=question.text,
            judgement=self._asking.judge(question.text, past),
            past=tuple(past),
            is_timely=asks_about_now(question.text, question.language),
        )


_VERDICT_PROMPTS: Final = PROMPTS["verdict_by_history"]
VERDICT_INSTRUCTION: Final[str] = _VERDICT_PROMPTS["instruction"]
VERDICTS: Final[Sequence[tuple[str, str, bool]]] = _VERDICT_PROMPTS["examples"]


# An example's note is shown for its subject; the note asked about is read further.
_MAX_NOTE_TOKENS: Final = 64
_MAX_ASKED_NOTE_TOKENS: Final = 256


class VerdictForm(LabelJudge):
    """Asks a model whether a note answers a question, given past verdicts."""

    def __init__(self, model: WhiteBoxModel, labels: LabelPair) -> None:
        super().__init__(
            model,
            labels,
            instruction=VERDICT_INSTRUCTION,
            fixed=[
                _verdict_example(
                    model.tokens, JudgedQuestion(question, note, can_be_answered)
                )
                for note, question, can_be_answered in VERDICTS
            ],
        )

    def judge(
        self, question: str, note: str, past: Sequence[JudgedQuestion] = ()
    ) -> LabelJudgement:
        """Return the probability that the note answers; `past` is nearest first."""
        tokens = self.model.tokens
        asked = _verdict_ids(
            tokens,
            note,
            question,
            note_limit=_MAX_ASKED_NOTE_TOKENS,
            limit=MAX_QUESTION_TOKENS,
        )
        return self.judge_tokens(
            [_verdict_example(tokens, p) for p in past[::-1]], asked
        )


def _verdict_example(tokens: Tokens, past: JudgedQuestion) -> Example:
    ids = _verdict_ids(
        tokens,
        past.note,
        past.question,
        note_limit=_MAX_NOTE_TOKENS,
        limit=_MAX_EXAMPLE_TOKENS,
    )
    return Example(ids, int(past.can_be_answered))


def _verdict_ids(
    tokens: Tokens, note: str, question: str, *, note_limit: int, limit: int
) -> tuple[int, ...]:
    line = tokens.encode_text("\n")
    read = tokens.encode_text(f"Note: {flatten(note).strip()}")
    asked = tokens.encode_text(f"Question: {flatten(question).strip()}")
    ending = tokens.encode_text("The note answers the question:")
    return (*read[:note_limit], *line, *asked[:limit], *line, *ending)


# Each is a note and a question, three times as long as a question alone.
VERDICTS_SHOWN: Final = 6


class VerdictByHistory:
    """`qa.pipeline.history.VerdictDebiaser` from past verdicts."""

    def __init__(self, form: VerdictForm, history: History) -> None:
        self._form = form
        self._history = history
        self.fingerprint = form.fingerprint

    def debias(
        self, prompt: Prompt, generation: Generation, *, language_model: str
    ) -> DebiasedVerdict:
        past = self._history.judged(
            Question(prompt.question, prompt.language),
            language_model=language_model,
            limit=VERDICTS_SHOWN,
        )
        note = note_text(_piece_behind(prompt, generation))
        judgement = self._form.judge(prompt.question, note, past)
        return DebiasedVerdict(
            probability=judgement.known,
            uncorrected=judgement.uncorrected,
            examples=tuple(each.id for each in past),
        )


def _piece_behind(prompt: Prompt, generation: Generation) -> Evidence:
    numbers = [n for n in generation.cited if 1 <= n <= len(prompt.evidence)]
    return prompt.evidence[numbers[0] - 1 if numbers else 0]
