"""Thresholds of risk at most epsilon at confidence 1 - delta: Learn then Test, SGR.

Of thousands of combinations, the one with the fewest errors is mostly lucky. So the
order of testing rests half on counts and half on a model with few parameters; the tests
themselves use counts only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qa.calibration.thresholds.candidates import candidates, testing_order
from qa.calibration.thresholds.values import (
    FloatArray,
    Tested,
    upper_bound,
    upper_bounds,
)
from qa.evaluation.decisions import Table
from qa.exceptions import CalibrationError
from qa.pipeline.policy import Policy
from qa.pipeline.rules import SignalRow

_STAKES = np.linspace(0, 1, 65)
_EDGE = 1e-9


def log_capital(
    shown: FloatArray, wrong: FloatArray, most: int, epsilon: float
) -> float:
    """Return the log capital of the best bet against "the risk is above epsilon".

    Each group, whose answers may depend on each other in any way, is one bet: it wins
    on right shown answers and loses on wrong ones, at odds that are fair if the risk
    over all shown answers of all groups is epsilon (Waudby-Smith and Ramdas 2024,
    "Estimating means of bounded random variables by betting", arXiv 2010.09686). For
    i.i.d. groups of at most `most` questions, the capital exceeds 1 / delta with
    probability at most delta, although the stake is chosen with hindsight (Ming, Shen
    and Wang 2026, "Optimized combination of independent or simultaneous e-values",
    arXiv 2603.10329, theorem 1). A question counts as much in a large group as in a
    small one.
    """
    gains = (epsilon * shown - wrong) / ((1 - epsilon) * most)
    factors = np.maximum(1 + np.outer(_STAKES, gains), np.finfo(np.float64).tiny)
    return float(np.log(factors).sum(axis=1).max())


def group_bound(
    shown: FloatArray, wrong: FloatArray, sizes: FloatArray, delta: float
) -> float:
    """Return the upper bound on the risk at confidence 1 - delta, from counts by group.

    If every group has one question, it is the Clopper-Pearson bound.
    """
    most = int(sizes.max(initial=1))
    if most == 1:
        return upper_bound(wrong.sum(), shown.sum(), delta)

    def missing(risk: float) -> float:
        return log_capital(shown, wrong, most, risk) + math.log(delta)

    if missing(1 - _EDGE) < 0:
        return 1.0
    # Importing it takes a twelfth of every command's start, and few commands need it.
    from scipy.optimize import brentq  # noqa: PLC0415

    return float(brentq(missing, _EDGE, 1 - _EDGE, xtol=_EDGE))


def groups_needed(
    shown: FloatArray,
    wrong: FloatArray,
    sizes: FloatArray,
    epsilon: float,
    delta: float,
) -> int | None:
    """Return how many groups like these bring `group_bound` to epsilon, or None."""
    won = log_capital(shown, wrong, int(sizes.max(initial=1)), epsilon)
    return math.ceil(-math.log(delta) / won * len(sizes)) if won > 0 else None


_RIDGE = 1.0
_STEPS = 25


def smoothed_errors(table: Table, scores: Mapping[str, SignalRow]) -> FloatArray:
    """Return for each row the mean of its label (1 is wrong) and its prediction.

    The prediction is a logistic regression on the standardised signals, with a ridge
    penalty (Hoerl and Kennard 1970; le Cessie and van Houwelingen 1992) and an
    indicator for each signal's missing values.
    """
    features = np.column_stack([np.ones(len(table)), *_features(table, scores)])
    wrong = table.wrong.astype(np.float64)
    ridge = np.full(features.shape[1], _RIDGE)
    ridge[0] = 1e-3  # keeps the system solvable if nothing or everything is wrong
    weights = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        said = _logistic(features @ weights)
        slope = features.T @ (said - wrong) + ridge * weights
        curve = (features.T * (said * (1 - said))) @ features + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        weights -= np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-6:
            break
    return (wrong + _logistic(features @ weights)) / 2


def _features(table: Table, scores: Mapping[str, SignalRow]) -> list[FloatArray]:
    columns = []
    for name in scores:
        values = table.values[name]
        missing = np.isnan(values)
        if missing.all():
            continue
        spread = np.nanstd(values)
        filled = np.where(missing, np.nanmean(values), values)
        columns.append((filled - filled.mean()) / (spread if spread > 0 else 1.0))
        if missing.any():
            columns.append(missing.astype(np.float64))
    return columns


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))), np.float64)


# Best in simulations (docs/explanation/calibration.md): learning an order needs fewer
# answers than testing does, and few, well-spaced steps give bad luck fewer chances.
LEARN_SHARE = 0.25
_TEST_STEPS = 40


@dataclass(frozen=True, slots=True)
class Course:
    """The passing policy with the highest coverage, if any, and all tests made.

    `best_possible` has the lowest bound of all candidates, with hindsight.
    """

    chosen: Policy | None
    result: Tested | None
    sequence: tuple[Tested, ...]
    best_possible: Tested


def learn_then_test(
    learn: Table,
    test: Table,
    *,
    base: Policy,
    scores: Mapping[str, SignalRow],
    epsilon: float,
    delta: float,
) -> Course:
    """Order candidates on `learn` and test them on `test` until the first one fails."""
    policies = candidates(learn, base, scores)
    shown, wrong = learn.count(policies, smoothed_errors(learn, scores))
    scale = len(test) / max(len(learn), 1)
    order = testing_order(shown, wrong, epsilon=epsilon, scale=scale)
    steps = np.unique(np.linspace(0, len(order) - 1, _TEST_STEPS).round().astype(int))
    sequence: list[Tested] = []
    passed: list[Policy] = []
    for number in order[steps] if len(order) else ():
        policy = policies[number]
        sequence.append(tested(test, policy, scores, epsilon, delta))
        if not sequence[-1].passed:
            break
        passed.append(policy)
    best = max(range(len(passed)), key=lambda i: sequence[i].shown, default=None)
    return Course(
        chosen=None if best is None else passed[best],
        result=None if best is None else sequence[best],
        sequence=tuple(sequence),
        best_possible=best_possible(test, policies, scores, epsilon, delta),
    )


def thresholds_in(policy: Policy, scores: Mapping[str, SignalRow]) -> dict[str, float]:
    fields = (score.threshold for score in scores.values())
    return {field: getattr(policy, field) for field in fields}


def tested(
    table: Table,
    policy: Policy,
    scores: Mapping[str, SignalRow],
    epsilon: float,
    delta: float,
) -> Tested:
    """Test the promise by the bound over questions and by the bound over groups.

    Whichever of the two matches how the questions were drawn, a policy whose risk is
    above epsilon passes with probability at most delta.
    """
    flags = table.outcomes(policy)
    shown, wrong = (int(each.sum()) for each in flags)
    bound = upper_bound(wrong, shown, delta)
    sizes = np.bincount(table.groups).astype(np.float64)
    shows, fails = (
        np.bincount(table.groups, each, len(sizes)).astype(np.float64) for each in flags
    )
    by_group = group_bound(shows, fails, sizes, delta)
    return Tested(
        thresholds=thresholds_in(policy, scores),
        labelled=len(table),
        shown=shown,
        wrong=wrong,
        bound=bound,
        groups=len(sizes),
        group_bound=by_group,
        groups_needed=groups_needed(shows, fails, sizes, epsilon, delta),
        passed=max(bound, by_group) <= epsilon,
    )


def best_possible(
    table: Table,
    policies: Sequence[Policy],
    scores: Mapping[str, SignalRow],
    epsilon: float,
    delta: float,
) -> Tested:
    """Return the candidate with the lowest bound; hindsight, so not a guarantee."""
    shown, wrong = table.count(policies)
    bounds = upper_bounds(wrong, shown, delta)
    best = policies[int(np.lexsort((-shown, bounds))[0])]
    return tested(table, best, scores, epsilon, delta)


def select_with_guaranteed_risk(
    table: Table,
    *,
    base: Policy,
    scores: Mapping[str, SignalRow],
    epsilon: float,
    delta: float,
) -> Course:
    """Find one signal's most permissive threshold whose bound is at most epsilon."""
    if len(scores) != 1:
        named = ", ".join(scores)
        raise CalibrationError(
            f"This method finds one threshold, not those of {named}: name one signal."
        )
    policies = candidates(table, base, scores)  # the strictest first
    level = delta / len(policies).bit_length()  # the search takes no more steps
    sequence: list[Tested] = []
    chosen: tuple[Policy, Tested] | None = None
    low, high = 0, len(policies) - 1
    while low <= high:
        middle = (low + high) // 2
        found = tested(table, policies[middle], scores, epsilon, level)
        sequence.append(found)
        if found.passed:
            chosen = policies[middle], found
            low = middle + 1
        else:
            high = middle - 1
    return Course(
        chosen=chosen[0] if chosen else None,
        result=chosen[1] if chosen else None,
        sequence=tuple(sequence),
        best_possible=best_possible(table, policies, scores, epsilon, level),
    )
