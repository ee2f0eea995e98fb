"""The bound over groups holds where errors cluster, as the one over questions does not."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from qa.calibration.thresholds import Certified, NotCertified, calibrate
from qa.calibration.thresholds.learn_then_test import (
    group_bound,
    groups_needed,
    log_capital,
)
from qa.calibration.thresholds.values import FloatArray, least_shown, upper_bound
from tests.qa.calibration.labelled_answers import draw, make_labelled, risk_of
from tests.qa.pipeline.values import make_policy

_DELTA = 0.1
_DRAWS = 800
_GROUPS = 80
Counts = tuple[FloatArray, FloatArray, FloatArray]  # shown, wrong and size by group


def counts(wrong: list[int], *, size: int = 10) -> Counts:
    sizes = np.full(len(wrong), float(size))
    return sizes, np.array(wrong, np.float64), sizes


def is_beyond_chance(broken: int, draws: int) -> bool:
    """Tell whether a bound that fails with probability delta hardly fails so often."""
    return bool(stats.binom.sf(broken - 1, draws, _DELTA) < 1e-3)


def alike(rng: np.random.Generator) -> Counts:
    """Groups of ten are wholly right or wholly wrong; a tenth is wrong."""
    wrong = np.where(rng.random(_GROUPS) < 0.1, 10.0, 0.0)
    return np.full(_GROUPS, 10.0), wrong, np.full(_GROUPS, 10.0)


def correlated(rng: np.random.Generator) -> Counts:
    """Each group has its own risk (beta-binomial, correlation 0.3), and half is shown."""
    shown = rng.binomial(10, 0.5, _GROUPS)
    wrong = rng.binomial(shown, rng.beta(0.1 * 7 / 3, 0.9 * 7 / 3, _GROUPS))
    return shown.astype(float), wrong.astype(float), np.full(_GROUPS, 10.0)


def large_ones_worse(rng: np.random.Generator) -> Counts:
    """A quarter has sixteen questions and may be wrong, the others have four and are not.

    Of 28 questions 16 are of a group that is wrong with probability 0.175: a tenth.
    """
    is_large = rng.random(_GROUPS) < 0.25
    sizes = np.where(is_large, 16.0, 4.0)
    return sizes, sizes * (is_large & (rng.random(_GROUPS) < 0.175)), sizes


@pytest.mark.parametrize("groups", [alike, correlated, large_ones_worse])
def test_of_clustered_errors_only_the_bound_over_groups_holds(groups):
    rng = np.random.default_rng(11)
    drawn: list[Counts] = [groups(rng) for _ in range(_DRAWS)]

    by_question = sum(
        upper_bound(wrong.sum(), shown.sum(), _DELTA) < 0.1 for shown, wrong, _ in drawn
    )
    by_group = sum(group_bound(*each, _DELTA) < 0.1 for each in drawn)

    assert is_beyond_chance(by_question, _DRAWS)
    assert not is_beyond_chance(by_group, _DRAWS)


@pytest.mark.slow
def test_a_certificate_on_clustered_answers_needs_the_groups(monkeypatch):
    """The same answers, with their groups and without: only with them is it kept."""
    monkeypatch.setattr("qa.calibration.thresholds.candidates._MAX_OF_ONE", 25)
    rng = np.random.default_rng(12)
    base = make_policy(alpha=2.0, min_verdict=0.0, horizon=2.0)
    broken, made = {True: 0, False: 0}, {True: 0, False: 0}
    draws = 100
    for number in range(draws):
        labelled = draw(rng, 2_000, per_group=20, together=True)
        for grouped in (True, False):
            found = calibrate(
                labelled if grouped else [replace(a, group="") for a in labelled],
                base=base,
                epsilon=0.2,
                delta=_DELTA,
                signals=("verified_ratio",),
                seed=number,
            )
            if isinstance(found, Certified):
                made[grouped] += 1
                broken[grouped] += risk_of(found.policy.alpha, 0.0) > 0.2

    assert is_beyond_chance(broken[False], draws)
    assert not is_beyond_chance(broken[True], draws)
    assert made[True] > draws / 3  # it is not kept by never being given


@given(
    wrong=st.lists(st.integers(0, 10), min_size=2, max_size=60),
    delta=st.floats(0.01, 0.3),
)
def test_the_bound_is_where_the_capital_reaches_one_over_delta(wrong, delta):
    shown, failed, sizes = counts(wrong)
    bound = group_bound(shown, failed, sizes, delta)

    assert failed.sum() / shown.sum() <= bound <= 1
    if bound < 1:
        won = log_capital(shown, failed, 10, bound)
        assert won == pytest.approx(-math.log(delta), abs=1e-3)
    # More errors never lower it.
    worse = np.minimum(failed + 1, shown)
    assert group_bound(shown, worse, sizes, delta) >= bound - 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.05), (0.1, 0.1), (0.01, 0.05)])
def test_without_an_error_as_many_groups_are_needed_as_answers(epsilon, delta):
    least = least_shown(epsilon, delta)

    assert group_bound(*counts([0] * least), delta) <= epsilon
    assert group_bound(*counts([0] * (least - 1)), delta) > epsilon
    assert groups_needed(*counts([0] * 7), epsilon, delta) == least


def test_of_groups_of_one_it_is_the_exact_bound():
    wrong = [1.0] * 3 + [0.0] * 97

    found = group_bound(np.ones(100), np.array(wrong), np.ones(100), 0.05)

    assert found == upper_bound(3, 100, 0.05)


def test_as_many_groups_as_are_said_to_be_needed_are_enough():
    wrong = [3] + [0] * 19  # 1.5 % of two hundred
    needed = groups_needed(*counts(wrong), 0.05, 0.05)

    assert needed is not None
    assert group_bound(*counts(wrong), 0.05) > 0.05
    times = math.ceil(needed / 20)
    assert group_bound(*counts(wrong * times), 0.05) <= 0.05
    assert group_bound(*counts(wrong * (times - 2)), 0.05) > 0.05
    assert groups_needed(*counts([1] * 20), 0.05, 0.05) is None


def test_what_is_earned_over_questions_alone_is_no_certificate_and_says_so():
    labelled = [make_labelled(f"q{i}", group=f"g{i // 10}") for i in range(200)]

    found = calibrate(
        labelled,
        base=make_policy(alpha=2.0, min_verdict=0.0, horizon=2.0),
        epsilon=0.1,
        delta=0.1,
        signals=("verified_ratio",),
    )

    assert isinstance(found, NotCertified)
    best = found.best_possible
    assert best is not None
    assert (best.groups, best.groups_needed) == (15, 22)
    assert best.bound < 0.1 < best.group_bound
    assert found.explanation.endswith(
        "The bound over questions holds. The bound over groups fails: about 7 more "
        "groups like these to test on would earn it."
    )
