"""Bootstrap intervals: whole groups, seeded, against scipy and a known distribution."""

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from qa.evaluation.metrics.intervals import (
    bootstrap,
    clusters_of,
    mean,
    resampled,
    share,
)


def alone(count):
    return np.arange(count)


def test_a_row_without_a_group_is_one_of_its_own():
    rows = [("a", "x"), ("b", ""), ("c", "x"), ("d", ""), ("x", "")]

    assert clusters_of(rows).tolist() == [0, 1, 0, 2, 3]


def test_groups_are_drawn_whole_and_as_many_as_there_are():
    clusters = np.array([0, 0, 1, 2, 2, 2])

    weights = np.concatenate(list(resampled(clusters, draws=50)))

    assert weights.shape == (50, 6)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 5]).all()
    assert (weights[:, 0] + weights[:, 2] + weights[:, 3] == 3).all()


def test_rows_are_drawn_within_drawn_groups_as_many_as_these_have():
    clusters = np.array([0, 0, 0, 1, 2, 2, 2, 2])

    whole = np.concatenate(list(resampled(clusters, draws=60)))
    drawn = np.concatenate(list(resampled(clusters, draws=60, within=True)))

    for inside in (clusters == number for number in range(3)):
        # The same groups are drawn, and each as often as its rows would have it.
        np.testing.assert_array_equal(drawn[:, inside].sum(1), whole[:, inside].sum(1))
    assert (drawn[:, 0] != drawn[:, 1]).any()


def test_drawing_within_groups_adds_the_spread_of_their_rows():
    values = np.random.default_rng(5).normal(size=400)
    clusters = np.repeat(np.arange(40), 10)
    statistic = mean(values, values < 99)

    (whole,) = bootstrap([statistic], clusters, draws=4000)
    (both,) = bootstrap([statistic], clusters, draws=4000, within=True)

    assert whole is not None
    assert both is not None
    # Of independent rows the groups' means vary by sigma^2 / 10, and so does each
    # group's drawn mean around its own: twice the variance, but for 1 - 1/10.
    ratio = (both[1] - both[0]) / (whole[1] - whole[0])
    assert ratio == pytest.approx(np.sqrt(1.9), rel=0.15)


def test_the_interval_of_a_mean_is_scipys():
    values = np.random.default_rng(3).normal(size=200)
    (found,) = bootstrap([mean(values, values < 99)], alone(200), draws=4000)

    reference = scipy_bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=1
    ).confidence_interval
    assert found == pytest.approx((reference.low, reference.high), abs=0.02)


def test_like_rows_in_groups_make_an_interval_wider():
    right = np.repeat(np.arange(20) % 2 == 0, 30)
    statistic = share(right, np.ones(600, dtype=bool))

    (single,) = bootstrap([statistic], alone(600))
    (grouped,) = bootstrap([statistic], np.repeat(np.arange(20), 30))

    assert single is not None
    assert grouped is not None
    # The standard error is 1 / sqrt(20) of 20 groups and 1 / sqrt(600) of 600 rows.
    ratio = (grouped[1] - grouped[0]) / (single[1] - single[0])
    assert ratio == pytest.approx(np.sqrt(30), rel=0.15)


def test_the_same_seed_gives_the_same_interval_and_another_another():
    flags = np.arange(40) < 13
    statistic = share(flags, np.ones(40, dtype=bool))

    assert bootstrap([statistic], alone(40)) == bootstrap([statistic], alone(40))
    first = next(resampled(alone(40), draws=5))
    assert not (first == next(resampled(alone(40), draws=5, seed=1))).all()


@pytest.mark.parametrize(
    ("counted", "clusters"),
    [
        ([True, False, True], [0, 0, 0]),  # one group tells nothing of others
        ([False] * 6, range(6)),  # 0 of 6 is no proof of 0
    ],
)
def test_what_resampling_can_not_tell_has_no_interval(counted, clusters):
    flags = np.array(counted)
    whole = np.ones(len(flags), dtype=bool)

    assert bootstrap([share(flags, whole)], np.array(list(clusters))) == [None]


def test_a_share_of_nothing_has_no_interval():
    none = np.zeros(5, dtype=bool)

    assert bootstrap([share(~none, none)], alone(5)) == [None]
    assert bootstrap([], alone(5)) == []
