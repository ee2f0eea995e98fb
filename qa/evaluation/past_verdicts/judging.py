"""Every question judged in every way: with which examples, labels and correction."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probes.language_model import WhiteBoxModel
from qa.language_models.history_form import HistoryForm
from qa.language_models.label_pair import LabelPair
from qa.own_knowledge.history import EXAMPLES_SHOWN
from qa.pipeline.history import KnownQuestion
from qa.pipeline.label_bias import LabelJudgement

from .questions import Answered, Progress


class Shown(StrEnum):
    """What stands before a question."""

    NOTHING = "the instruction alone"
    FIXED = "fixed examples"
    PAST = "past questions"


@dataclass(frozen=True, slots=True)
class Way:
    """One way of judging; the correction needs examples."""

    labels: LabelPair
    shown: Shown
    is_corrected: bool


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """What every way makes of every question.

    Attributes:
        known: By the way, the probability of "known" of each question.
        share: Share of each question's nearest past ones that were known.
    """

    questions: Sequence[Answered]
    known: dict[Way, NDArray[np.float64]]
    share: NDArray[np.float64]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """What is right of each question."""
        return np.array([each.is_known for each in self.questions])


_WAYS: Final = (Shown.NOTHING, Shown.FIXED, Shown.PAST)


def judge_each(
    model: WhiteBoxModel,
    questions: Sequence[Answered],
    history: Sequence[Answered],
    nearest: NDArray[np.intp],
    pairs: Sequence[LabelPair],
    progress: Progress,
) -> Judgements:
    """Judge every question in every way.

    Args:
        nearest: Of each question its places in the history, the nearest first, of shape
            (questions, examples).

    Raises:
        LabelPairError: A pair's labels are not one token each to this model.
    """
    past = [
        [KnownQuestion(history[i].question, history[i].as_history) for i in row]
        for row in nearest
    ]
    known: dict[Way, NDArray[np.float64]] = {}
    for labels in pairs:
        alone = HistoryForm(model, labels, examples=())
        fixed = HistoryForm(model, labels)
        for shown in _WAYS:
            form = alone if shown is Shown.NOTHING else fixed
            found: list[LabelJudgement] = []
            for own, asked in zip(past, questions, strict=True):
                progress(f"{labels}, {shown.value}", len(found), len(questions))
                examples = own if shown is Shown.PAST else ()
                found.append(form.judge(asked.question, examples))
            progress(f"{labels}, {shown.value}", len(found), len(questions))
            known[Way(labels, shown, False)] = np.array([j.uncorrected for j in found])
            if shown is not Shown.NOTHING:
                known[Way(labels, shown, True)] = np.array([j.known for j in found])
    share = np.array([np.mean([each.is_known for each in own]) for own in past])
    return Judgements(questions, known, share)


def nearest_of(
    questions: NDArray[np.float32], history: NDArray[np.float32]
) -> NDArray[np.intp]:
    """Return for each unit vector the places of the nearest of the history's, by rank."""
    order: NDArray[np.intp] = np.argsort(
        -(questions @ history.T), axis=1, kind="stable"
    )
    return order[:, :EXAMPLES_SHOWN]
