"""Exact binomial bounds, against worked examples and scipy's own distributions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from qa.calibration.thresholds.values import (
    least_shown,
    p_value,
    shown_needed,
    upper_bound,
)

_counts = st.integers(1, 3000).flatmap(
    lambda shown: st.tuples(st.integers(0, shown), st.just(shown))
)
_inside = st.floats(0.005, 0.5)


@given(counts=_counts, epsilon=_inside)
def test_the_p_value_is_the_binomial_distribution(
    counts: tuple[int, int], epsilon: float
) -> None:
    wrong, shown = counts
    expected = stats.binom.cdf(wrong, shown, epsilon)
    assert p_value(wrong, shown, epsilon) == pytest.approx(expected, rel=1e-8)


@given(counts=_counts, delta=_inside)
def test_the_bound_is_the_upper_end_of_clopper_and_pearsons_interval(
    counts: tuple[int, int], delta: float
) -> None:
    wrong, shown = counts
    test = stats.binomtest(wrong, shown, alternative="less")
    expected = test.proportion_ci(1 - delta, method="exact").high
    assert upper_bound(wrong, shown, delta) == pytest.approx(expected, rel=1e-6)


@given(counts=_counts, epsilon=_inside, delta=_inside)
def test_the_bound_is_within_epsilon_exactly_where_the_test_rejects(
    counts: tuple[int, int], epsilon: float, delta: float
) -> None:
    bound, p = upper_bound(*counts, delta), p_value(*counts, epsilon)
    if abs(bound - epsilon) > 1e-9:
        assert (bound < epsilon) == (p < delta)


def test_worked_examples() -> None:
    # No error among n: the bound is 1 - delta^(1/n).
    assert upper_bound(0, 59, 0.05) == pytest.approx(1 - 0.05 ** (1 / 59))
    # Clopper and Pearson (1934): 10 of 100 at one-sided 97.5 % is 0.1762.
    assert upper_bound(10, 100, 0.025) == pytest.approx(0.1762, abs=5e-5)
    # P(Bin(3, 1/2) <= 1) = 4 / 8.
    assert p_value(1, 3, 0.5) == pytest.approx(0.5)


def test_of_nothing_shown_and_of_nothing_but_errors_nothing_good_is_known() -> None:
    assert (p_value(0, 0, 0.05), upper_bound(0, 0, 0.05)) == (1.0, 1.0)
    assert (p_value(7, 7, 0.05), upper_bound(7, 7, 0.05)) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "least"),
    [(0.05, 0.05, 59), (0.1, 0.1, 22), (0.01, 0.05, 299), (0.05, 0.01, 90)],
)
def test_the_least_number_without_errors_just_earns_it(
    epsilon: float, delta: float, least: int
) -> None:
    assert least_shown(epsilon, delta) == least
    assert least == math.ceil(math.log(delta) / math.log(1 - epsilon))
    assert upper_bound(0, least, delta) <= epsilon < upper_bound(0, least - 1, delta)


def test_how_many_would_earn_it_at_a_risk() -> None:
    needed = shown_needed(0.03, 0.05, 0.05)
    assert needed is not None
    assert p_value(0.03 * needed, needed, 0.05) <= 0.05
    assert p_value(0.03 * (needed - 1), needed - 1, 0.05) > 0.05
    assert shown_needed(0.0, 0.05, 0.05) == 59
    assert shown_needed(0.05, 0.05, 0.05) is None
