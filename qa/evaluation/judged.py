"""What became of one labelled question, whatever suite it is of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kb.models import KnowledgeBase
from qa.models import Policy

from .labelled import LabelledAnswer

Parameter = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Judged(LabelledAnswer):
    """A labelled answer with what was decided on it and how long it took.

    Attributes:
        is_answered: Whether the run's own policy answered it.
        gate: The gate that refused, or "verbatim"; "" for an answer of the model.
        reason: Why it was refused; "" for an answer.
        measures: Further numbers by name: exact_match, f1, rouge_l, accuracy, ...
        milliseconds: Wall time of the whole question.
        model_milliseconds: Of these, in the language model.
        answer_id: The stored answer, where there is one.
    """

    is_answered: bool
    gate: str
    reason: str
    measures: Mapping[str, float]
    milliseconds: float
    model_milliseconds: float
    answer_id: UUID | None


class Suite(Protocol):
    """Labelled questions, ready to be asked here; results are joined by id alone."""

    @property
    def name(self) -> str:
        """The suite's name on the command line."""
        ...

    @property
    def protocol(self) -> str:
        """What is asked against what, in sentences; says what is known to leak."""
        ...

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """All that makes two runs the same one: data digest, limit, seed, ratio, ..."""
        ...

    @property
    def knowledge_base(self) -> KnowledgeBase | None:
        """What is asked, if anything is."""
        ...

    @property
    def policy(self) -> Policy | None:
        """What decides, if anything does."""
        ...

    @property
    def case_ids(self) -> Sequence[str]:
        """The questions' ids, in the order in which they are asked; unique."""
        ...

    def judge(self, case_id: str) -> Judged:
        """Ask one question, wait for its outcome and judge it.

        Raises:
            UnavailableError: A model is down; the run goes on later from here.
        """
        ...
