"""What the pipeline asks of whoever tells whether the model knows without looking."""

from typing import Protocol

from .generation import Generation
from .outcome import Question


class Considered(Protocol):
    """A question that the model has read by itself, before any answer token."""

    @property
    def sureness(self) -> float | None:
        """How sure it is in [0, 1] that the model knows; None where that can't be told."""
        ...

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """What was measured, by name, the deciding one first."""
        ...

    @property
    def examples(self) -> tuple[str, ...]:
        """Ids of the past questions that it was decided by, nearest first."""
        ...

    def answer(self) -> Generation:
        """Write the answer, going on from what was read.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """
        ...


class OwnKnowledge(Protocol):
    """A language model that is asked without evidence."""

    @property
    def fingerprint(self) -> str:
        """What tells two models and ways of asking them apart."""
        ...

    def consider(self, question: Question) -> Considered:
        """Read the question, in one pass over it.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """
        ...
