"""Shares told from stratified samples, and whether their intervals hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.reviews.sample_plan import Stratum, estimate


@st.composite
def strata(draw) -> Stratum:
    population = draw(st.integers(1, 10_000))
    reviewed = draw(st.integers(0, min(population, 50)))
    return Stratum(population, reviewed, draw(st.integers(0, reviewed)))


@given(st.lists(strata(), max_size=10))
def test_the_share_lies_in_its_interval_and_both_in_the_unit_interval(given):
    found = estimate(given)

    if found is None:
        assert not any(stratum.reviewed for stratum in given)
        return
    assert 0 <= found.low <= found.share <= found.high <= 1
    assert found.reviewed == sum(stratum.reviewed for stratum in given)
    assert found.covered <= found.population == sum(s.population for s in given)


@given(st.lists(strata(), min_size=1, max_size=6), st.randoms())
def test_the_order_of_the_strata_does_not_matter(given, random):
    shuffled = list(given)
    random.shuffle(shuffled)

    one, other = estimate(given), estimate(shuffled)

    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.low == pytest.approx(other.low, abs=1e-9)
        assert one.high == pytest.approx(other.high, abs=1e-9)


def test_each_stratum_counts_by_its_size_and_not_by_its_reviews():
    found = estimate([Stratum(900, 10, 1), Stratum(100, 40, 40)])

    assert found is not None
    assert found.share == pytest.approx(0.9 * 0.1 + 0.1 * 1.0)


def test_where_everything_was_reviewed_nothing_is_unsure():
    found = estimate([Stratum(30, 30, 3), Stratum(70, 70, 7)])

    assert found is not None
    assert found.low == found.share == found.high == pytest.approx(0.1)


def test_no_fault_among_few_reviews_is_no_proof_of_none():
    found = estimate([Stratum(10_000, 30, 0)])

    assert found is not None
    assert found.low == found.share == 0
    assert 0.09 < found.high < 0.13  # Clopper and Pearson say 11.6 % of 30


def test_what_was_not_reviewed_is_told_and_does_not_count():
    found = estimate([Stratum(500, 20, 2), Stratum(500, 0, 0)])

    assert found is not None
    assert (found.share, found.covered, found.population) == (0.1, 500, 1000)


def test_of_no_reviews_nothing_is_told():
    assert estimate([]) is None
    assert estimate([Stratum(500, 0, 0)]) is None


@pytest.mark.parametrize("counts", [(5, 6, 0), (5, 3, 4), (5, 3, -1)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="answers"):
        Stratum(*counts)


# (answers, share at fault, reviews) of each stratum: rare faults, a census of a small
# stratum, many strata of two reviews, a heavy one of few.
DESIGNS = {
    "one": [(10_000, 0.05, 60)],
    "voted down apart": [(10_000, 0.02, 40), (300, 0.6, 40)],
    "three": [(10_000, 0.01, 40), (200, 0.5, 40), (100, 0.9, 40)],
    "nearly all": [(60, 0.1, 50), (50, 0.3, 40)],
    "thin": [(9_000, 0.05, 6), *[(100, 0.3, 2)] * 12],
    "heavy and few": [(9_000, 0.2, 4), (5_000, 0.01, 20), (3_000, 0.0, 20)],
    "even": [(1_000, share, 15) for share in (0.05, 0.1, 0.2, 0.3, 0.5)],
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_the_interval_holds_the_truth_in_95_of_100_samples(design):
    rng = np.random.default_rng(7)
    sizes = np.array([size for size, _, _ in design])
    faults = np.round([size * share for size, share, _ in design]).astype(int)
    reviewed = [count for *_, count in design]
    truth = faults.sum() / sizes.sum()
    samples = 600

    held = 0
    for _ in range(samples):
        found = rng.hypergeometric(faults, sizes - faults, reviewed)
        told = estimate(
            Stratum(int(size), count, int(wrong))
            for size, count, wrong in zip(sizes, reviewed, found, strict=True)
        )
        assert told is not None
        held += told.low - 1e-12 <= truth <= told.high + 1e-12

    assert held / samples >= 0.94
