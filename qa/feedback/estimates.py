"""What share of all answers is wrong, told from a stratified sample of reviewed ones.

A sample takes rare kinds of answers more often than common ones, so the share among the
reviewed says little; each stratum counts as much as it has answers. The interval is
Clopper and Pearson's for the effective number of reviews: so many as would be as certain,
were they drawn from all alike.

References:
    Cochran, "Sampling techniques", 3rd edition, 1977, sections 5.3 to 5.5 (the estimator,
    its variance with the finite population correction); Korn and Graubard, "Confidence
    intervals for proportions with small expected number of positive counts estimated from
    survey data", Survey Methodology 24 (1998), for the interval.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

CONFIDENCE = 0.95
# A stratum of one or two reviews tells nothing of its own variance: it is drawn towards
# what all reviews say by so many reviews.
_BORROWED = 2.0


@dataclass(frozen=True, slots=True)
class Stratum:
    """Answers of one kind, and what their reviews say.

    Attributes:
        population: Answers of this kind, at least `reviewed`.
        reviewed: Those that were drawn at random and reviewed.
        found: Of these, those that have the fault; 0 to `reviewed`.
    """

    population: int
    reviewed: int
    found: float

    def __post_init__(self) -> None:
        if not 0 <= self.found <= self.reviewed <= self.population:
            msg = (
                f"Of {self.population} answers {self.reviewed} cannot be reviewed and "
                f"{self.found} of these found at fault."
            )
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share of all answers with its 95 % interval, each in [0, 1].

    Attributes:
        share: The estimate, weighted by the strata's sizes.
        low: Where the interval begins.
        high: Where it ends.
        reviewed: The reviews that it rests on.
        population: Answers of all strata.
        covered: Answers of those strata of which at least one was reviewed; of the others
            nothing is known, and neither share nor interval speaks of them.
    """

    share: float
    low: float
    high: float
    reviewed: int
    population: int
    covered: int


def estimate(strata: Iterable[Stratum]) -> Estimate | None:
    """Return the share of all answers that have the fault; None where none was reviewed."""
    given = list(strata)
    known = [stratum for stratum in given if stratum.reviewed]
    if not known:
        return None
    size = np.array([stratum.population for stratum in known], dtype=np.float64)
    reviewed = np.array([stratum.reviewed for stratum in known], dtype=np.float64)
    found = np.array([stratum.found for stratum in known], dtype=np.float64)
    weight = size / size.sum()
    share = float(weight @ (found / reviewed))
    low, high = _interval(share, _effective(size, reviewed, found))
    return Estimate(
        share,
        low,
        high,
        reviewed=int(reviewed.sum()),
        population=sum(stratum.population for stratum in given),
        covered=int(size.sum()),
    )


def _effective(size: np.ndarray, reviewed: np.ndarray, found: np.ndarray) -> float:
    """Return how many reviews drawn from all alike would be as certain; may be infinite."""
    weight = size / size.sum()
    overall = (found.sum() + 0.5) / (reviewed.sum() + 1)
    likely = (found + _BORROWED * overall) / (reviewed + _BORROWED)
    spread = likely * (1 - likely) * size / np.maximum(size - 1, 1)
    variance = float(np.sum(weight**2 * (1 - reviewed / size) * spread / reviewed))
    middle = float(weight @ likely)
    return middle * (1 - middle) / variance if variance else float("inf")


def _interval(share: float, effective: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share of so many reviews."""
    if np.isinf(effective):
        return share, share
    tail = (1 - CONFIDENCE) / 2
    found, rest = share * effective, (1 - share) * effective
    low = float(betaincinv(found, rest + 1, tail)) if found > 0 else 0.0
    high = float(betaincinv(found + 1, rest, 1 - tail)) if rest > 0 else 1.0
    return min(low, share), max(high, share)
