"""The scores that are compared: what was measured, what is fitted, and all of it joined."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from qa.pipeline.scores import SCORES

from .folds import Scores
from .joint import MEASURED
from .values import Examined

LOG_PROBABILITY: Final = "log_probability"
DISTANCE: Final = "distance_over_confidence"
P_TRUE: Final = "p_true"
VERBALISED: Final = "verbalised"
# Of the answer's tokens alone, as in the paper.
LINEAR_ALONE: Final = "linear_alone"
LSTM_ALONE_PLAIN: Final = "lstm_alone_plain"
LSTM_ALONE: Final = "lstm_alone"
# With the prompt's last token before them.
LINEAR: Final = "linear"
LSTM_PLAIN: Final = "lstm_plain"
LSTM: Final = "lstm"
EARLY: Final = "early"
JOINT: Final = "joint"
# Those that are fitted to be probabilities of being right.
PROBABILITIES: Final = (
    LINEAR_ALONE, LSTM_ALONE_PLAIN, LSTM_ALONE, LINEAR, LSTM_PLAIN, LSTM, EARLY, JOINT,
)  # fmt: skip
# By the names that the report prints, in its order.
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
    """Return each stored signal that any answer has, higher for more trusted."""
    found = {}
    for name in MEASURED:
        values = np.array(
            [row.signals.get(name) for row in examined.answers], dtype=np.float64
        )  # None becomes NaN
        if not np.isnan(values).all():
            found[name] = np.array([SCORES[name].oriented(value) for value in values])
    return found


def ordered(names: Iterable[str]) -> list[str]:
    """Return names in the order of the report."""
    places = {name: place for place, name in enumerate(TITLES)}
    return sorted(names, key=lambda name: places[name])
