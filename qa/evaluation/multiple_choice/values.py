"""A question with options, and what a model made of it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from qa.pipeline.evidence import Evidence


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """One question and its options, in the order in which they are shown.

    Attributes:
        id: Unique in its data set and made from what it says; joins tasks and runs.
        group: What must not be torn apart by resampling: the category, or "".
        correct: Indices of the right options, 0-based, ascending; at least one.
        several: Whether every right option is asked for, and not one of them.
        scored: All options that any task shows with this question. A model that
            scores options reads these in one batch, so that two tasks share the work
            and neither's result depends on which was asked first.
    """

    id: str
    group: str
    question: str
    options: tuple[str, ...]
    correct: tuple[int, ...]
    several: bool
    scored: tuple[str, ...]

    def share_right(self, chosen: Sequence[int]) -> float:
        """Return the share in [0, 1] of the options that `chosen` labels rightly."""
        right = sum(
            (index in chosen) == (index in self.correct)
            for index in range(len(self.options))
        )
        return right / len(self.options)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a model made of a question with options.

    Attributes:
        scores: For each option, higher is likelier; nats per token for a model that
            scores, else 1 for the chosen ones and 0 for the others. Empty if unreadable.
        chosen: 0-based indices, ascending; without `several` at most one. Empty where
            the model declined or can't be read.
        cited: 1-based numbers of the pieces of evidence that it rests on.
        reasoning: What led there; "" where the model gives none.
        can_answer: The model's own verdict on the evidence.
        verdict_probability: Of "can answer" in [0, 1]; None where nothing tells.
        readable: Whether the output could be read, after one repair if need be.
        repaired: Whether it took the repair.
        milliseconds: Time in the model; what was scored before for another task or
            another share of the knowledge takes none.
    """

    scores: tuple[float, ...]
    chosen: tuple[int, ...]
    cited: tuple[int, ...]
    reasoning: str
    can_answer: bool
    verdict_probability: float | None
    readable: bool
    repaired: bool
    milliseconds: float


class ChoiceModel(Protocol):
    """Chooses among options, from evidence or closed-book."""

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the model's fingerprint and the way of choosing."""
        ...

    def choose(self, question: ChoiceQuestion, evidence: Sequence[Evidence]) -> Choice:
        """Return the options chosen; without evidence from what the model knows itself.

        Raises:
            UnavailableError: The model is down; ask again later.
        """
        ...


def shuffled(options: Sequence[str], *, question_id: str, seed: int) -> tuple[str, ...]:
    """Return the options in an order that depends on ids, words and seed alone.

    Whatever order the data set has them in, and whatever stands before or behind the
    question, it is shown in this one.
    """

    def place(option: str) -> bytes:
        return hashlib.sha256(f"{seed}:{question_id}:{option}".encode()).digest()

    return tuple(sorted(options, key=place))
