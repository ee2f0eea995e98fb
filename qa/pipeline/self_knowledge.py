"""Whether the language model knows the answer by itself: protocols and stage."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from .gates import Gate, judge
from .language_model import Generation
from .policy import Policy, RetrievalTiming
from .refusal_detector import is_refusal
from .staleness import holds_for
from .values import Boundary, Question


class KnowledgeEstimate(Protocol):
    """A question that the model has read without evidence, before any answer token."""

    @property
    def known_probability(self) -> float | None:
        """Probability in [0, 1] that the model knows the answer; None if unknown."""

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """The measurements by name, the deciding one first."""

    @property
    def examples(self) -> tuple[str, ...]:
        """Ids of the past questions that decided it, nearest first."""

    def answer(self) -> Generation:
        """Write the answer, continuing from the question as read.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """


class SelfKnowledge(Protocol):
    """A language model that is asked without evidence."""

    @property
    def fingerprint(self) -> str:
        """Identifier that differs between models and between ways of asking them."""

    def consider(self, question: Question) -> KnowledgeEstimate:
        """Read the question in one pass.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """


# The name under which the known probability is stored, whatever measured it.
KNOWN_PROBABILITY = "own_sureness"
# The signal that shows which timing a stored known probability belongs to.
SIGNAL_BY_TIMING: Mapping[RetrievalTiming, str] = {
    RetrievalTiming.BOUNDARY: "boundary_confidence",
    RetrievalTiming.HISTORY: "history_known",
    RetrievalTiming.LOG_PROBABILITY: "own_log_probability",
}
# Whether the model's own draft was an answer; not stored if it wrote none.
HAS_DRAFT = "own_answer_stands"


def consider(
    question: Question, *, own: SelfKnowledge, policy: Policy
) -> tuple[KnowledgeEstimate, Boundary]:
    """Let the model read the question without evidence, and decide whether it knows.

    It does not know if nothing could be measured, or if `min_known` was set for another
    way of asking.
    """
    considered = own.consider(question)
    holds = holds_for(own.fingerprint, policy)
    known_probability = considered.known_probability if holds else None
    values = {KNOWN_PROBABILITY: known_probability, **dict(considered.signals)}
    signals = judge(Gate.BOUNDARY, values, policy).signals
    is_known = signals[0].passed is True
    return considered, Boundary(is_known, own.fingerprint, considered.examples, signals)


def recall(
    considered: KnowledgeEstimate, boundary: Boundary, *, policy: Policy
) -> tuple[Generation | None, Boundary]:
    """Let the model answer without evidence if it knows.

    A draft that is empty, or that says it does not know, is discarded.
    """
    if not boundary.is_known:
        return None, boundary
    draft = considered.answer()
    says = bool(draft.answer.strip()) and not is_refusal(draft.answer)
    said = judge(Gate.BOUNDARY, {HAS_DRAFT: float(says)}, policy)
    signals = (*boundary.signals, *said.signals)
    return draft if says else None, replace(boundary, signals=signals, is_answered=says)
