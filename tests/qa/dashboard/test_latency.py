"""Percentiles from counts in buckets."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.dashboard.traffic import ACCURACY, GROWTH, MIN_MILLISECONDS, quantile

TIMES = st.lists(st.floats(MIN_MILLISECONDS, 1e7), min_size=1, max_size=200)


def bucket_number(milliseconds: float) -> int:
    """Return the number of the bucket that the counting in SQL puts a time into."""
    return math.ceil(math.log(max(milliseconds, MIN_MILLISECONDS)) / math.log(GROWTH))


@given(TIMES, st.floats(0.01, 1))
def test_a_percentile_is_off_by_no_more_than_the_accuracy(times, share):
    counts = Counter(bucket_number(time) for time in times)

    found = quantile(counts, share)

    exact = float(np.quantile(times, share, method="inverted_cdf"))
    assert found == pytest.approx(exact, rel=ACCURACY + 1e-9)


@given(TIMES, TIMES)
def test_counts_of_two_days_add_up_to_the_percentile_of_both(one, other):
    buckets = [Counter(bucket_number(time) for time in times) for times in (one, other)]

    added = quantile(buckets[0] + buckets[1], 0.95)

    assert added == quantile(Counter(bucket_number(t) for t in one + other), 0.95)


def test_of_no_times_there_is_no_percentile():
    assert quantile({}, 0.5) is None
    assert quantile({3: 0}, 0.5) is None
