"""The scores compared, and the answers that they are compared on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from probes.taps import Activations, Tap
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.metrics.intervals import Numbers, clusters_of
from qa.pipeline.gates import SCORES
from qa.training.cross_fitting import MEASURED, Flags, Rows, Scores, folds_of

# Slow parts: the first asks the model about each answer, the others fit many probes.
OWN_WORDS: Final = "own-words"
VARIANTS: Final = "variants"
LEARNING: Final = "learning"
PARTS: Final = (OWN_WORDS, VARIANTS, LEARNING)


# The answers to examine, and the source of their activations.


_MIN_SHARE: Final = 0.1


@dataclass(frozen=True, eq=False)
class Examined:
    """Labelled drafted answers, split into folds by article.

    Attributes:
        answers: Each with a draft, in a fixed order.
        rouge: ROUGE-L of each draft with its best reference; NaN if there is none.
        right: The label of each: whether showing its draft would show something right.
        clusters: The number of each answer's article.
        folds: The number of each answer's fold.
    """

    answers: tuple[LabelledAnswer, ...]
    rouge: Scores
    right: Flags
    clusters: Rows
    folds: Rows

    @cached_property
    def wrong(self) -> list[bool]:
        """The opposite of `right`, in the form that rankings take."""
        return [not right for right in self.right.tolist()]

    @cached_property
    def answerable(self) -> Flags | None:
        """Whether each question has an answer.

        None unless that is known for all of them and each kind makes up at least a
        tenth.
        """
        known = [row.is_answerable for row in self.answers]
        if None in known:
            return None
        answerable = np.array(known, np.bool_)
        share = float(answerable.mean())
        return answerable if _MIN_SHARE <= share <= 1 - _MIN_SHARE else None

    @cached_property
    def once(self) -> Numbers:
        """A weight of 1 for each answer, as statistics take it: shape (1, answers)."""
        return np.ones((1, len(self.answers)))

    @property
    def everything(self) -> Flags:
        return np.ones(len(self.answers), np.bool_)


def examine(
    answers: Sequence[LabelledAnswer],
    rouge: Sequence[float | None],
    *,
    folds: int,
    seed: int,
) -> Examined:
    """Split answers into folds by article.

    Args:
        answers: Each with a draft.
        rouge: ROUGE-L of each; None if there is no reference.
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
    """A model's activations on the examined answers, and its self-assessments."""

    @property
    def language_model(self) -> str:
        """Fingerprint of the model."""
        ...

    @property
    def blocks(self) -> int:
        """Number of transformer blocks of the model."""
        ...

    def of_sequences(
        self, place: Tap, *, pieces: int | None = None
    ) -> Sequence[Activations]:
        """Return float32 (1 + tokens + 1, width) for each answer.

        The rows are its prompt's last token, its own tokens and its end token.

        Args:
            place: Where in the model to read.
            pieces: Give the model only this many pieces of evidence, best first.
        """
        ...

    def of_prompts(self, place: Tap) -> Sequence[Activations]:
        """Return float32 (1, width) for each answer: its prompt's last token."""
        ...

    def own_words(self) -> Mapping[str, Sequence[float]]:
        """Return the model's assessments of its own answers, by name.

        Values are in [0, 1], higher for an answer that it considers right.
        """
        ...


# The scores compared: measured signals, fitted probes, and all of them joined.


LOG_PROBABILITY: Final = "log_probability"
DISTANCE: Final = "distance_over_confidence"
P_TRUE: Final = "p_true"
VERBALISED: Final = "verbalised"
# On the answer's tokens alone, as in the paper.
LINEAR_ALONE: Final = "linear_alone"
LSTM_ALONE_PLAIN: Final = "lstm_alone_plain"
LSTM_ALONE: Final = "lstm_alone"
# With the prompt's last token before them.
LINEAR: Final = "linear"
LSTM_PLAIN: Final = "lstm_plain"
LSTM: Final = "lstm"
EARLY: Final = "early"
JOINT: Final = "joint"
# Scores fitted as probabilities of being right.
PROBABILITIES: Final = (
    LINEAR_ALONE, LSTM_ALONE_PLAIN, LSTM_ALONE, LINEAR, LSTM_PLAIN, LSTM, EARLY, JOINT,
)  # fmt: skip
# Names in the report, in its order.
TITLES: Final[Mapping[str, str]] = {
    LOG_PROBABILITY: "log-probability, by length",
    "least_token_probability": "least token probability",
    "mean_entropy": "mean entropy",
    VERBALISED: "verbalised confidence",
    P_TRUE: "P(true)",
    DISTANCE: "distance over confidence",
    "verdict_probability": "soft verdict",
    "willingness": "willingness to answer at all",
    "answer_in_evidence": "answer's words in the evidence",
    "question_in_evidence": "question's words in the evidence",
    EARLY: "early probe, before the answer",
    LINEAR_ALONE: "linear probe, mean of the answer alone",
    LSTM_ALONE_PLAIN: "LSTM on the answer alone, no Huber",
    LSTM_ALONE: "LSTM on the answer alone, with Huber",
    LINEAR: "linear probe, prompt's end and answer",
    LSTM_PLAIN: "LSTM beside linear, no Huber",
    LSTM: "LSTM beside linear, with Huber",
    JOINT: "joint, all gates' signals",
}


def measured(examined: Examined) -> dict[str, Scores]:
    """Return each signal stored for any answer; higher means more trusted."""
    found = {}
    for name in MEASURED:
        values = np.array(
            [row.signals.get(name) for row in examined.answers], dtype=np.float64
        )  # None becomes NaN
        if not np.isnan(values).all():
            found[name] = np.array([SCORES[name].oriented(value) for value in values])
    return found


def ordered(names: Iterable[str]) -> list[str]:
    places = {name: place for place, name in enumerate(TITLES)}
    return sorted(names, key=lambda name: places[name])
