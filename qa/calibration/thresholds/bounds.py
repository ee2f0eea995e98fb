"""Exact binomial bounds: what k wrong among n shown answers say about the risk.

References:
    Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26; Bates et al. (2021), arXiv 2101.02703, for
    the p-value of "the risk is above epsilon".
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv

FloatArray = NDArray[np.float64]


def p_values(wrong: ArrayLike, shown: ArrayLike, epsilon: float) -> FloatArray:
    """Return P(Bin(shown, epsilon) <= wrong), the p-value of "the risk is above epsilon".

    Fractional counts are interpolated by the incomplete beta function.

    Args:
        wrong: Wrong ones among the shown, 0 <= wrong <= shown.
        shown: Shown answers; of none nothing is known, and the p-value is 1.
        epsilon: The risk, in (0, 1).
    """
    k, n = np.asarray(wrong, np.float64), np.asarray(shown, np.float64)
    is_informative = k < n
    rest = np.where(is_informative, n - k, 1.0)
    below = betainc(rest, np.where(is_informative, k, 0.0) + 1, 1 - epsilon)
    return np.where(is_informative, below, 1.0)


def upper_bounds(wrong: ArrayLike, shown: ArrayLike, delta: float) -> FloatArray:
    """Return the Clopper-Pearson upper bounds on the risk, each at confidence 1 - delta.

    A bound is at most epsilon exactly where `p_values(..., epsilon)` is at most delta.

    Args:
        wrong: Wrong ones among the shown, 0 <= wrong <= shown.
        shown: Shown answers; of none nothing is known, and the bound is 1.
        delta: In (0, 1).
    """
    k, n = np.asarray(wrong, np.float64), np.asarray(shown, np.float64)
    is_informative = k < n
    rest = np.where(is_informative, n - k, 1.0)
    bound = betaincinv(np.where(is_informative, k, 0.0) + 1, rest, 1 - delta)
    return np.where(is_informative, bound, 1.0)


def p_value(wrong: float, shown: float, epsilon: float) -> float:
    return float(p_values(wrong, shown, epsilon))


def upper_bound(wrong: float, shown: float, delta: float) -> float:
    return float(upper_bounds(wrong, shown, delta))


def least_shown(epsilon: float, delta: float) -> int:
    """Return how many shown answers, none of them wrong, earn "at most epsilon wrong".

    The least n with (1 - epsilon)^n <= delta: 59 for 5 % at 95 %.
    """
    return math.ceil(math.log(delta) / math.log1p(-epsilon))


def shown_needed(risk: float, epsilon: float, delta: float) -> int | None:
    """Return how many shown answers would earn it if `risk` of them were wrong.

    None where no number would, for the risk is not below epsilon.
    """
    if risk >= epsilon:
        return None
    high = least_shown(epsilon, delta)
    while p_value(risk * high, high, epsilon) > delta:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if p_value(risk * middle, middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return high
