"""Rates and their Wilson intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from qa.evaluation.metrics.intervals import Rate, wilson_interval


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counts):
    count, total = counts

    low, high = wilson_interval(count, total)

    reference = binomtest(count, total).proportion_ci(0.95, method="wilson")
    assert low == pytest.approx(reference.low, abs=1e-9)
    assert high == pytest.approx(reference.high, abs=1e-9)
    assert 0 <= low <= count / total <= high <= 1


def test_the_interval_is_newcombes_example():
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


@pytest.mark.parametrize(("count", "total"), [(0, 0), (2, 1), (-1, 3)])
def test_what_is_no_share_has_no_interval(count, total):
    with pytest.raises(ValueError, match="not a share"):
        wilson_interval(count, total)


def test_nothing_counted_has_no_rate():
    assert Rate(0, 0).value is None
    assert Rate(0, 0).interval is None
    assert Rate(1, 1).value == 1.0
