"""Whether the language model knows the answer without searching: the protocols and the stage."""

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
    """A question that the model has read by itself, before any answer token."""

    @property
    def known_probability(self) -> float | None:
        """How sure it is in [0, 1] that the model knows; None where that is unknown."""

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """What was measured, by name, the deciding one first."""

    @property
    def examples(self) -> tuple[str, ...]:
        """Ids of the past questions that it was decided by, nearest first."""

    def answer(self) -> Generation:
        """Write the answer, going on from what was read.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """


class SelfKnowledge(Protocol):
    """A language model that is asked without evidence."""

    @property
    def fingerprint(self) -> str:
        """What tells two models and ways of asking them apart."""

    def consider(self, question: Question) -> KnowledgeEstimate:
        """Read the question, in one pass over it.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """


# What the known_probability is stored under, whatever measured it.
KNOWN_PROBABILITY = "own_sureness"
# By which signal the known_probability of a timing is known from another's.
SIGNAL_BY_TIMING: Mapping[RetrievalTiming, str] = {
    RetrievalTiming.BOUNDARY: "boundary_confidence",
    RetrievalTiming.HISTORY: "history_known",
    RetrievalTiming.LOG_PROBABILITY: "own_log_probability",
}
# Whether what it wrote by itself was an answer; not there where it wrote nothing.
HAS_DRAFT = "own_answer_stands"


def consider(
    question: Question, *, own: SelfKnowledge, policy: Policy
) -> tuple[KnowledgeEstimate, Boundary]:
    """Let the model read the question by itself, and decide whether it knows.

    What can't be measured is not known, nor what is measured by anything but what
    `min_known` was set for.
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
    """Let the model answer by itself, where it knows.

    A draft that says nothing, or that it does not know, is none: evidence is looked for.
    """
    if not boundary.is_known:
        return None, boundary
    draft = considered.answer()
    says = bool(draft.answer.strip()) and not is_refusal(draft.answer)
    said = judge(Gate.BOUNDARY, {HAS_DRAFT: float(says)}, policy)
    signals = (*boundary.signals, *said.signals)
    return draft if says else None, replace(boundary, signals=signals, is_answered=says)
