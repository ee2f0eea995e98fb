"""Whether probabilities mean what they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from qa.evaluation.metrics.calibration_error import (
    Binning,
    brier_score,
    expected_calibration_error,
    reliability,
)

_answers = st.lists(
    st.tuples(st.floats(0, 1, allow_nan=False), st.booleans()), min_size=1, max_size=40
)


def apart(answers):
    values, right = zip(*answers, strict=True)
    return list(values), list(right)


def test_the_error_is_the_one_worked_out_by_hand():
    # Bin [0.1, 0.2): mean 0.15, none right. Bin [0.9, 1]: mean 0.95, two of three.
    bins = reliability(
        [0.1, 0.2 - 1e-9, 0.9, 0.95, 1.0], [False, False, True, False, True]
    )

    assert [one.count for one in bins] == [2, 3]
    error = 2 / 5 * 0.15 + 3 / 5 * (0.95 - 2 / 3)
    assert expected_calibration_error(bins) == pytest.approx(error)


def test_bins_of_equal_mass_never_tear_equal_values_apart():
    values = [0.1, 0.5, 0.5, 0.5, 0.9, 0.95]
    bins = reliability(values, [True] * 6, binning=Binning.EQUAL_MASS, bins=3)

    assert [(one.low, one.high, one.count) for one in bins] == [
        (0.1, 0.1, 1),
        (0.5, 0.5, 3),
        (0.9, 0.95, 2),
    ]


@given(_answers)
def test_brier_is_scikit_learns(answers):
    values, right = apart(answers)
    reference = brier_score_loss([*right, True, False], [*values, 1.0, 0.0])

    assert brier_score([*values, 1.0, 0.0], [*right, True, False]) == pytest.approx(
        reference
    )


@given(_answers, st.sampled_from(Binning), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(answers, binning, random):
    shuffled = list(answers)
    random.shuffle(shuffled)

    first = reliability(*apart(answers), binning=binning)
    second = reliability(*apart(shuffled), binning=binning)

    assert [(b.low, b.high, b.count) for b in first] == [
        (b.low, b.high, b.count) for b in second
    ]
    error = expected_calibration_error(first)
    assert error == pytest.approx(expected_calibration_error(second))
    assert error is not None
    assert 0 <= error <= 1 + 1e-9
    assert sum(one.count for one in first) == len(answers)


def test_nothing_has_no_error():
    assert expected_calibration_error(reliability([], [])) is None
    assert reliability([], [], binning=Binning.EQUAL_MASS) == ()
    assert brier_score([], []) is None


@pytest.mark.parametrize(
    ("values", "right", "bins"),
    [
        ([1.1], [True], 10),
        ([float("nan")], [True], 10),
        ([0.5], [], 10),
        ([0.5], [True], 0),
    ],
)
def test_what_is_no_probability_is_an_error(values, right, bins):
    with pytest.raises(ValueError, match=r"probabilit|bins"):
        reliability(values, right, bins=bins)
