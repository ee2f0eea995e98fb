"""Rankings of what is relevant, against scikit-learn and examples worked out by hand."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from qa.evaluation.suites.scifact import ndcg_at, recall_at, reciprocal_rank
from studies.cbdr.reranker.ranking import precision_at

_gains = st.lists(st.integers(0, 3), min_size=2, max_size=12)


def test_recall_and_reciprocal_rank_count_places():
    ranked = ["x", "a", "y", "b"]

    assert recall_at(ranked, {"a", "b", "c"}, 2) == pytest.approx(1 / 3)
    assert recall_at(ranked, {"a", "b"}, 10) == 1
    assert precision_at(ranked, {"a", "b"}, 3) == pytest.approx(1 / 3)
    assert precision_at(ranked, {"a", "b"}, 10) == 1 / 2
    assert reciprocal_rank(ranked, {"b", "a"}) == 1 / 2
    assert reciprocal_rank(ranked, {"c"}) == 0
    assert reciprocal_rank([], {"c"}) == 0


def test_gains_are_discounted_by_place():
    got = 2 / math.log2(3) + 1 / math.log2(5)
    best = 2 / math.log2(2) + 1 / math.log2(3)

    assert ndcg_at(["x", "a", "y", "b"], {"a": 2, "b": 1}, 10) == pytest.approx(
        got / best
    )


@given(_gains, st.integers(1, 14))
def test_ndcg_is_scikit_learns(gains, k):
    assume(any(gains))
    names = [str(place) for place in range(len(gains))]
    places = [list(range(len(gains), 0, -1))]

    found = ndcg_at(names, dict(zip(names, gains, strict=True)), k)

    assert found == pytest.approx(ndcg_score([gains], places, k=k))
    assert 0 <= found <= 1 + 1e-12


@pytest.mark.parametrize(
    ("ranked", "relevant", "k"),
    [(["a"], [], 1), (["a"], ["a"], 0), (["a", "a"], ["a"], 1)],
)
def test_what_can_not_be_measured_is_an_error(ranked, relevant, k):
    with pytest.raises(ValueError, match=r"measure|twice"):
        recall_at(ranked, relevant, k)
    with pytest.raises(ValueError, match=r"measure|twice"):
        ndcg_at(ranked, dict.fromkeys(relevant, 1.0), k)
