"""Answers to be examined, and where their activations come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from qa.evaluation.labelled import LabelledAnswer
from qa.evaluation.metrics.intervals import Numbers, clusters_of
from qa.pipeline.activations import Activations, Place

from .folds import Flags, Rows, Scores, folds_of

_LEAST_SHARE: Final = 0.1


@dataclass(frozen=True, eq=False)
class Examined:
    """Drafted answers whose truth is known, dealt out to folds by article.

    Attributes:
        answers: Each with a draft, in any order that stays.
        rouge: ROUGE-L of each draft with the best reference; NaN where there is none.
        right: What is to be told of each: whether showing its draft shows something
            right.
        clusters: The number of each answer's article.
        folds: The fold of each.
    """

    answers: tuple[LabelledAnswer, ...]
    rouge: Scores
    right: Flags
    clusters: Rows
    folds: Rows

    @cached_property
    def wrong(self) -> list[bool]:
        """The opposite of right, as rankings take it."""
        return [not right for right in self.right.tolist()]

    @cached_property
    def answerable(self) -> Flags | None:
        """Whether each question has an answer.

        None unless that is known of all, and a tenth at least are of either kind.
        """
        known = [row.is_answerable for row in self.answers]
        if None in known:
            return None
        answerable = np.array(known, np.bool_)
        share = float(answerable.mean())
        return answerable if _LEAST_SHARE <= share <= 1 - _LEAST_SHARE else None

    @cached_property
    def once(self) -> Numbers:
        """Each answer once, as statistics take it: shape (1, answers)."""
        return np.ones((1, len(self.answers)))

    @property
    def everything(self) -> Flags:
        """Every answer."""
        return np.ones(len(self.answers), np.bool_)


def examine(
    answers: Sequence[LabelledAnswer],
    rouge: Sequence[float | None],
    *,
    folds: int,
    seed: int,
) -> Examined:
    """Deal answers out to folds.

    Args:
        answers: Each with a draft.
        rouge: ROUGE-L of each; None where there is no reference.

    Raises:
        EvaluationDataError: There are fewer articles than folds.
    """
    clusters = clusters_of([(row.id, row.group) for row in answers])
    right = np.array([not row.is_wrong_if_shown for row in answers], np.bool_)
    return Examined(
        tuple(answers),
        np.array(rouge, np.float64),  # None becomes NaN
        right,
        clusters,
        folds_of(clusters, folds, seed),
    )


class Insides(Protocol):
    """What a language model held inside while it wrote the examined answers."""

    @property
    def language_model(self) -> str:
        """Fingerprint of the model."""
        ...

    @property
    def blocks(self) -> int:
        """How many blocks the model has."""
        ...

    def of_sequences(
        self, place: Place, *, pieces: int | None = None
    ) -> Sequence[Activations]:
        """Return for each answer float32 (1 + its tokens + 1, width).

        Of its prompt's last token, its own tokens, and its end token.

        Args:
            place: Where.
            pieces: Read with only so many pieces of the evidence, best first.
        """
        ...

    def of_prompts(self, place: Place) -> Sequence[Activations]:
        """Return for each answer float32 (1, width) of its prompt's last token."""
        ...

    def own_words(self) -> Mapping[str, Sequence[float]]:
        """Return what the model says when it is asked about its answers, by name.

        Each in [0, 1] and higher for an answer that it holds for right.
        """
        ...
