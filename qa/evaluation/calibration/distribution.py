"""How signals are distributed, in a form that is small enough to keep with a promise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qa.evaluation.labelled import LabelledAnswer
from qa.pipeline.gates import Gate
from qa.pipeline.policy import Policy
from qa.pipeline.replay import Signals, ends_early, replay
from qa.pipeline.scores import EARLY, SCORES

from .bounds import FloatArray

STEPS = 200


@dataclass(frozen=True, slots=True)
class Distribution:
    """A signal on many answers that reached the gate which measures it.

    Attributes:
        measured: Answers that have a value.
        missing: Answers that have none.
        quantiles: At 0, 1 / STEPS, ..., 1.
    """

    measured: int
    missing: int
    quantiles: FloatArray

    def as_json(self) -> dict[str, Any]:
        """Return what `distribution_from` reads."""
        return {
            "measured": self.measured,
            "missing": self.missing,
            "quantiles": self.quantiles.tolist(),
        }

    def at(self, values: FloatArray, *, side: str) -> FloatArray:
        """Return the share of values at most (side "right") or below ("left") each."""
        q = self.quantiles
        after = np.searchsorted(q, values, side=side)  # type: ignore[call-overload]  # one of two words
        inside = np.clip(after, 1, STEPS)
        width = q[inside] - q[inside - 1]
        part = (values - q[inside - 1]) / np.where(width > 0, width, 1.0)
        level = (inside - 1 + np.clip(part, 0.0, 1.0)) / STEPS
        return np.where(after == 0, 0.0, np.where(after > STEPS, 1.0, level))


def distribution_from(stored: Mapping[str, Any]) -> Distribution:
    """Return what `as_json` was made from."""
    return Distribution(
        measured=int(stored["measured"]),
        missing=int(stored["missing"]),
        quantiles=np.array(stored["quantiles"], np.float64),
    )


def distributions_of(
    labelled: Sequence[LabelledAnswer], policy: Policy
) -> dict[str, Distribution]:
    """Return how each signal is distributed where `policy` lets a question reach it.

    Live questions are measured under enforced gates, so that labelled ones, measured in
    shadow, count for a gate only where the one before would have let them pass.
    """
    found = {}
    for name in SCORES:
        reached = [
            answer.signals
            for answer in labelled
            if reaches(answer.signals, name) and _lets_reach(answer, policy, name)
        ]
        values = values_of(reached, name)
        if len(values):
            found[name] = distribution_of(values, len(reached) - len(values))
    return found


def distribution_of(values: FloatArray, missing: int) -> Distribution:
    """Return how values are distributed, of which there is one at least.

    Quantiles are values that occur: between two that are frequent there is nothing.
    """
    levels = np.linspace(0, 1, STEPS + 1)
    quantiles = np.quantile(values, levels, method="inverted_cdf")
    return Distribution(len(values), missing, quantiles)


def reaches(signals: Signals, name: str) -> bool:
    """Tell whether a question got as far as the gate that measures this signal."""
    match SCORES[name].gate:
        case Gate.HARD_REFUSAL:
            return "distance_over_confidence" in signals or "verified_ratio" in signals
        case Gate.ABSTENTION if name != EARLY:
            return name in signals and signals.get("readable") is not None
        case Gate.ABSTENTION:
            return name in signals
        case _:
            return signals.get("readable") is not None


def _lets_reach(answer: LabelledAnswer, policy: Policy, name: str) -> bool:
    """Tell whether the gates before this signal's would let the question pass."""
    gate = SCORES[name].gate
    if gate is Gate.HARD_REFUSAL:
        return True
    stops = {
        Gate.HARD_REFUSAL,
        *([Gate.SOFT_REFUSAL] if gate is Gate.ABSTENTION else []),
    }
    if replay(answer.signals, policy).gate in stops:
        return False
    return name == EARLY or not ends_early(answer.signals, policy)


def values_of(signals: Sequence[Signals], name: str) -> FloatArray:
    """Return the values of one signal, where it has any."""
    found = [each.get(name) for each in signals]
    return np.array([value for value in found if value is not None], np.float64)
