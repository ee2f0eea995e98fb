"""Retrieval where the model's own draft is unlikely to it: the plainest of triggers.

The draft is written before it is known whether it will be shown, so that deciding costs
a whole answer; boundary and history decide within the prompt's pass.
"""

import math
from dataclasses import dataclass

from qa.inference.closed_book_form import OwnKnowledgeForm, write_draft
from qa.pipeline.language_model import Generation
from qa.pipeline.values import Question


@dataclass(frozen=True, slots=True)
class ConsideredByDraft:
    """`qa.pipeline.self_knowledge.KnowledgeEstimate` of a draft that is there already."""

    draft: Generation
    examples: tuple[str, ...] = ()

    @property
    def known_probability(self) -> float | None:
        """The geometric mean of the probabilities of the draft's tokens."""
        mean = self.draft.log_probability
        return None if mean is None else math.exp(mean)

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """The mean log-probability that the known probability is made of."""
        return (("own_log_probability", self.draft.log_probability),)

    def answer(self) -> Generation:
        return self.draft


class OwnKnowledgeByDraft:
    """`qa.pipeline.self_knowledge.SelfKnowledge` by the likelihood of the model's draft."""

    def __init__(self, form: OwnKnowledgeForm) -> None:
        """Take over the form that questions are asked in."""
        self._form = form

    @property
    def fingerprint(self) -> str:
        return self._form.fingerprint

    def consider(self, question: Question) -> ConsideredByDraft:
        """Read the question and write a draft."""
        with self._form.model.turn():
            context = self._form.open(question.text)
            return ConsideredByDraft(write_draft(self._form, context))
