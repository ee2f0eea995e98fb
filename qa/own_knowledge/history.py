"""DH-ICL: the model knows what is like the past questions that it knew.

The nearest past questions stand before the question, each with a label that says whether
the model answered it rightly by itself; the score of either label behind the question
tells, once the model's leaning has been taken off. The answer is written from the
question alone, by the own-knowledge form: no word of a past question can get into it.

References:
    Lv et al., "Whether LLMs Know If They Know: Identifying Knowledge Boundaries via
    Debiased Historical In-Context Learning", sections 3.1 to 3.3. Beyond it: a question
    about what changes is not known whatever the scores say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qa.language_models.history_form import HistoryForm
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.draft import write_draft
from qa.pipeline.generation import Generation
from qa.pipeline.history import History, KnownQuestion
from qa.pipeline.label_bias import LabelJudgement
from qa.pipeline.outcome import Question
from qa.pipeline.timely import asks_about_now

# The paper takes 20 of a history of 60,000; every one costs a prompt's tokens.
EXAMPLES_SHOWN: Final = 16


@dataclass(frozen=True, slots=True)
class ConsideredByHistory:
    """`qa.pipeline.own_knowledge.Considered` by past questions.

    Attributes:
        judgement: What the labels' scores tell.
        past: The past questions that it was shown, the nearest first.
        is_timely: Whether it asks about what changes.
    """

    form: OwnKnowledgeForm
    question: str
    judgement: LabelJudgement
    past: tuple[KnownQuestion, ...]
    is_timely: bool

    @property
    def sureness(self) -> float | None:
        """The probability of "known" without the leaning; 0 of what changes."""
        return 0.0 if self.is_timely else self.judgement.known

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """The probability with and without the correction, and what it rests on."""
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
        """Ids of the past questions, the nearest first."""
        return tuple(each.id for each in self.past)

    def answer(self) -> Generation:
        """Read the question without any past one, and write the answer.

        Raises:
            TooManyTokensError: It does not fit the model's context.
        """
        with self.form.model.turn():
            return write_draft(self.form, self.form.open(self.question))


class OwnKnowledgeByHistory:
    """`qa.pipeline.own_knowledge.OwnKnowledge` by past questions."""

    def __init__(
        self, form: OwnKnowledgeForm, asking: HistoryForm, history: History
    ) -> None:
        """Take over both forms of one model, and the history of one asker."""
        self._form = form
        self._asking = asking
        self._history = history

    @property
    def fingerprint(self) -> str:
        """That of the form which asks for the labels."""
        return self._asking.fingerprint

    def consider(self, question: Question) -> ConsideredByHistory:
        """Read the question after its nearest past ones, in one pass.

        Raises:
            TooManyTokensError: The question does not fit the model's context.
        """
        past: Sequence[KnownQuestion] = self._history.known(
            question, own_model=self._form.fingerprint, limit=EXAMPLES_SHOWN
        )
        return ConsideredByHistory(
            form=self._form,
            question=question.text,
            judgement=self._asking.judge(question.text, past),
            past=tuple(past),
            is_timely=asks_about_now(question.text, question.language),
        )
