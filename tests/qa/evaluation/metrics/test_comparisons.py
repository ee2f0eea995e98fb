"""Two runs on the same questions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from qa.evaluation.metrics.intervals import McNemar, differences, holm, mcnemar, share


def test_the_table_counts_each_question_once():
    first = [True, True, False, False, True]
    second = [True, False, True, False, False]

    assert mcnemar(first, second) == McNemar(1, 2, 1, 1)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        mcnemar(first, second[:2])


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_p_value_is_the_exact_binomial_tests(only_first, only_second):
    found = McNemar(3, only_first, only_second, 2).p_value
    differing = only_first + only_second

    reference = binomtest(only_first, differing).pvalue if differing else 1.0
    assert found == pytest.approx(reference, rel=1e-8)


def test_the_p_value_is_the_one_counted_by_hand():
    # Six fair coins, at most one or at least five heads: 2 * (1 + 6) / 64.
    assert McNemar(9, 1, 5, 4).p_value == pytest.approx(14 / 64)
    assert McNemar(9, 0, 0, 4).p_value == 1.0


def test_many_differing_questions_have_a_p_value_too():
    assert McNemar(0, 5600, 5400, 0).p_value == pytest.approx(
        binomtest(5600, 11000).pvalue, rel=1e-6
    )


def test_a_difference_draws_the_same_questions_of_both():
    random = np.random.default_rng(5)
    first = random.random(500) < 0.5
    # Alike but for twenty questions that only the second gets right.
    second = first.copy()
    second[np.flatnonzero(~first)[:20]] = True
    whole = np.ones(500, dtype=bool)

    (found,) = differences(
        [(share(first, whole), share(second, whole))], np.arange(500)
    )

    assert found.value == pytest.approx(20 / 500)
    assert found.interval is not None
    low, high = found.interval
    # Twenty of 500: unpaired, the interval would be four times as wide and hold 0.
    assert 0.02 < low < 0.04 < high < 0.06


def test_a_figure_that_one_run_has_not_has_no_difference():
    whole, none = np.ones(4, dtype=bool), np.zeros(4, dtype=bool)

    (found,) = differences([(share(whole, none), share(whole, whole))], np.arange(4))

    assert (found.first, found.second, found.value) == (None, 1.0, None)
    assert found.interval is None


def test_p_values_are_adjusted_as_in_holms_example():
    # Holm (1979): 0.01 * 4, 0.01 * 4, then 0.03 * 2, and no smaller than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    # Statsmodels', of values of which some are alike or adjusted to more than 1.
    several = [0.2, 0.01, 0.9, 0.01, 0.6, 0.03]
    assert holm(several) == pytest.approx(multipletests(several, method="holm")[1])
