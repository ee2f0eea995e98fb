"""Joint thresholds whose risk is at most epsilon with confidence 1 - delta.

On one part of the labelled answers candidates are ordered, on the other they are tested
one after the other by exact binomial p-values, each at level delta, until the first fails.
As the order does not depend on what it is tested on, the probability that any that passed
has a risk above epsilon is at most delta, however many were tried.

References:
    Angelopoulos et al. (2021), "Learn then Test", arXiv 2110.01052, section 4 (fixed
    sequence testing, with a sequence learnt from a split).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qa.pipeline.policy import Policy
from qa.pipeline.scores import Score

from .bounds import upper_bound, upper_bounds
from .candidates import candidates, testing_order
from .decisions import Table
from .smoothing import smoothed_errors
from .values import Tested

# What was best in simulations (docs/explanation/calibration.md): an order needs fewer
# answers than a test does. And few, well spaced steps: each may be stopped by bad luck.
LEARN_SHARE = 0.25
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Course:
    """How testing went.

    Attributes:
        chosen: The policy that passed with the highest coverage, if any did.
        result: What it was tested to be.
        sequence: All that was tested, in order.
        best_possible: The least bound of all candidates, with hindsight.
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
    scores: Mapping[str, Score],
    epsilon: float,
    delta: float,
) -> Course:
    """Order candidates on `learn`, test them on `test`, stop at the first that fails."""
    policies = candidates(learn, base, scores)
    shown, wrong = learn.count(policies, smoothed_errors(learn, scores))
    scale = len(test) / max(len(learn), 1)
    order = testing_order(shown, wrong, epsilon=epsilon, scale=scale)
    steps = np.unique(np.linspace(0, len(order) - 1, _STEPS).round().astype(int))
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


def thresholds_in(policy: Policy, scores: Mapping[str, Score]) -> dict[str, float]:
    """Return the policy's thresholds of these signals, by field."""
    fields = (score.threshold for score in scores.values())
    return {field: getattr(policy, field) for field in fields}


def tested(
    table: Table,
    policy: Policy,
    scores: Mapping[str, Score],
    epsilon: float,
    delta: float,
) -> Tested:
    """Return what this policy does on these answers, with its bound at 1 - delta."""
    shown, wrong = (int(flags.sum()) for flags in table.outcomes(policy))
    bound = upper_bound(wrong, shown, delta)
    return Tested(
        thresholds=thresholds_in(policy, scores),
        labelled=len(table),
        shown=shown,
        wrong=wrong,
        bound=bound,
        passed=bound <= epsilon,
    )


def best_possible(
    table: Table,
    policies: Sequence[Policy],
    scores: Mapping[str, Score],
    epsilon: float,
    delta: float,
) -> Tested:
    """Return the one with the least bound: chosen with hindsight, no promise."""
    shown, wrong = table.count(policies)
    bounds = upper_bounds(wrong, shown, delta)
    best = policies[int(np.lexsort((-shown, bounds))[0])]
    return tested(table, best, scores, epsilon, delta)
