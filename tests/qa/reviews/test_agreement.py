"""Kappa is the field's, and its interval holds what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from qa.reviews.agreement import Kappa, cohen_kappa

GRADE = st.integers(0, 2)


def told(found: Kappa) -> tuple[float, float, float]:
    """Return the lower end, the value and the upper end, which are there."""
    assert found.low is not None
    assert found.value is not None
    assert found.high is not None
    return found.low, found.value, found.high


def test_a_worked_example():
    """Fleiss, Levin and Paik (2003), table 18.1: two raters, 100 patients."""
    table = [[75, 1, 4], [5, 4, 1], [0, 0, 10]]
    pairs = [
        (row, column)
        for row, counts in enumerate(table)
        for column, count in enumerate(counts)
        for _ in range(count)
    ]

    found = cohen_kappa(pairs, grades=3)

    low, value, high = told(found)
    assert value == pytest.approx(0.676, abs=0.0005)
    # The book's standard error for a non-zero kappa is 0.088.
    assert (high - low) / 2 / 1.96 == pytest.approx(0.088, abs=0.0005)


@given(
    pairs=st.lists(st.tuples(GRADE, GRADE), min_size=2, max_size=60),
    weighted=st.booleans(),
)
def test_it_is_the_kappa_of_a_reference(pairs, weighted):
    found = cohen_kappa(pairs, grades=3, weighted=weighted)

    if found.value is None:
        assert len({grade for pair in pairs for grade in pair}) == 1
    else:
        first, second = zip(*pairs, strict=True)
        weights = "linear" if weighted else None
        reference = cohen_kappa_score(first, second, labels=[0, 1, 2], weights=weights)
        low, value, high = told(found)
        assert value == pytest.approx(reference)
        assert -1 <= low <= value <= high <= 1


def test_one_verdict_for_all_says_nothing_of_agreement():
    assert cohen_kappa([(1, 1)] * 9).value is None
    assert cohen_kappa([]).value is None


def test_a_few_that_agree_in_everything_do_not_prove_it():
    few, many = cohen_kappa([(0, 0), (1, 1)] * 3), cohen_kappa([(0, 0), (1, 1)] * 200)

    assert (few.value, many.value) == (1.0, 1.0)
    assert told(few)[0] < 0.1
    assert told(many)[0] > 0.95


@pytest.mark.parametrize(
    "pairs", [[(1, 1)] * 9 + [(1, 0)], [(0, 1)], [(0, 1), (1, 0)] * 3]
)
def test_no_table_of_a_few_is_sure_of_itself(pairs):
    found = cohen_kappa(pairs)

    low, value, high = told(found)
    assert low <= value <= high
    assert high - low > 0.3


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(6)
    truth, held = 0.6, 0
    # Two raters of a coin's two sides who agree in 80 %: chance alone gives 50 %.
    for _ in range(400):
        first = generator.integers(0, 2, 80)
        second = np.where(generator.random(80) < 0.8, first, 1 - first)
        found = cohen_kappa([*zip(first.tolist(), second.tolist(), strict=True)])
        low, _, high = told(found)
        held += low <= truth <= high

    assert 0.92 <= held / 400 <= 0.98
