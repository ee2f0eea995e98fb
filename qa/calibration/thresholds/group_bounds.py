"""An upper bound on the risk that holds where the answers of one group hang together."""

import math

import numpy as np

from .values import FloatArray, upper_bound

_STAKES = np.linspace(0, 1, 65)
_EDGE = 1e-9


def log_capital(
    shown: FloatArray, wrong: FloatArray, most: int, epsilon: float
) -> float:
    """Return the log of what the best bet against "the risk is above epsilon" has won.

    A bet is on each group, whose answers may hang together as they like: it wins on
    right shown answers and loses on wrong ones, at odds that are fair where the risk, of
    all that is shown of all groups, is epsilon (Waudby-Smith and Ramdas 2024, "Estimating
    means of bounded random variables by betting", arXiv 2010.09686). For groups drawn
    alike and independently, of `most` questions at most, its capital exceeds 1 / delta
    with probability delta at most, though the stake is chosen with hindsight (Ming, Shen
    and Wang 2026, "Optimized combination of independent or simultaneous e-values", arXiv
    2603.10329, theorem 1). A question counts as much in a large group as in a small one.
    """
    gains = (epsilon * shown - wrong) / ((1 - epsilon) * most)
    factors = np.maximum(1 + np.outer(_STAKES, gains), np.finfo(np.float64).tiny)
    return float(np.log(factors).sum(axis=1).max())


def group_bound(
    shown: FloatArray, wrong: FloatArray, sizes: FloatArray, delta: float
) -> float:
    """Return the upper bound on the risk at confidence 1 - delta, from counts by group.

    Of groups of one question it is Clopper and Pearson's.
    """
    most = int(sizes.max(initial=1))
    if most == 1:
        return upper_bound(wrong.sum(), shown.sum(), delta)

    def missing(risk: float) -> float:
        return log_capital(shown, wrong, most, risk) + math.log(delta)

    if missing(1 - _EDGE) < 0:
        return 1.0
    # A twelfth of the start of every command, and few of them bound a risk.
    from scipy.optimize import brentq  # noqa: PLC0415

    return float(brentq(missing, _EDGE, 1 - _EDGE, xtol=_EDGE))


def groups_needed(
    shown: FloatArray,
    wrong: FloatArray,
    sizes: FloatArray,
    epsilon: float,
    delta: float,
) -> int | None:
    """Return how many groups like these would keep `group_bound` at epsilon."""
    won = log_capital(shown, wrong, int(sizes.max(initial=1)), epsilon)
    return math.ceil(-math.log(delta) / won * len(sizes)) if won > 0 else None
