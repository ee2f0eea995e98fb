"""A least known_probability from the risk that answering alone is allowed.

References:
    El-Yaniv and Wiener (2010): the risk-coverage curve. Geifman and El-Yaniv (2017),
    arXiv 1705.08500, algorithm 2: the binary search, each step tested at delta over their
    number. CBDR takes beta from one data set's best score instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from qa.calibration.thresholds.values import upper_bounds
from qa.evaluation.metrics.selective import Scores, risk_coverage


@dataclass(frozen=True, slots=True)
class Threshold:
    """A least known_probability, on the questions that it was found on.

    Attributes:
        min_known: At or above, the model answers by itself; in [0, 1].
        coverage: Share of the questions that it answers by itself then.
        risk: Share of these answers that is wrong.
        bound: Upper bound on the risk for questions like these; see `Proposal`.
    """

    min_known: float
    coverage: float
    risk: float
    bound: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two thresholds for a stated risk, and the whole curve.

    Attributes:
        seen: The laxest whose risk on these questions is at most the stated one; None
            where none is. It promises nothing of others.
        guaranteed: The laxest found whose bound is at most the stated risk, with
            probability 1 - delta; None where none is.
        curve: Some thresholds, the strictest first.
    """

    seen: Threshold | None
    guaranteed: Threshold | None
    curve: tuple[Threshold, ...]


def propose_min_known(
    known_probability: Scores, right: Sequence[bool], *, risk: float, delta: float
) -> Proposal:
    """Return least known probabilities for a risk.

    Args:
        known_probability: Of each question, in [0, 1]; None where it can't be told, which is
            never answered alone.
        right: Whether the model's own answer is right.
        risk: Largest share of its own answers that may be wrong, in [0, 1].
        delta: Probability that the guaranteed one breaks that, in (0, 1).

    Raises:
        ValueError: There are no questions, the lengths differ, or a number is outside
            its range.
    """
    if not 0 <= risk <= 1 or not 0 < delta < 1:
        msg = f"risk {risk} is not in [0, 1], or delta {delta} not in (0, 1)"
        raise ValueError(msg)
    curve = risk_coverage(known_probability, [not one for one in right])
    steps = [
        (score, coverage, wrong)
        for score, coverage, wrong in zip(
            curve.threshold, curve.coverage, curve.risk, strict=True
        )
        if score is not None
    ]
    level = delta / max(1, len(steps).bit_length())
    total = len(right)

    def at(step: tuple[float, float, float]) -> Threshold:
        score, coverage, wrong = step
        shown = round(coverage * total)
        bound = float(upper_bounds(round(wrong * shown), shown, level))
        return Threshold(score, coverage, wrong, bound)

    thresholds = [at(step) for step in steps]
    seen = [one for one in thresholds if one.risk <= risk]
    return Proposal(
        seen=seen[-1] if seen else None,
        guaranteed=_searched(thresholds, risk),
        curve=tuple(thresholds),
    )


def _searched(thresholds: Sequence[Threshold], risk: float) -> Threshold | None:
    found = None
    low, high = 0, len(thresholds) - 1
    while low <= high:
        middle = (low + high) // 2
        if thresholds[middle].bound <= risk:
            found, low = thresholds[middle], middle + 1
        else:
            high = middle - 1
    return found
