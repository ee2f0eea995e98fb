"""Folds: articles stay whole, and no score comes from a fit that saw its article."""

import numpy as np
import pytest

from qa.exceptions import EvaluationDataError
from qa.training.cross_fitting import cross_fit, folds_of, held_out, out_of_fold

CLUSTERS = np.repeat(np.arange(11), np.arange(1, 12))  # of 1 to 11 answers


def test_articles_stay_whole_and_folds_are_about_as_large():
    folds = folds_of(CLUSTERS, 4, seed=1)

    for article in range(11):
        assert len(np.unique(folds[article == CLUSTERS])) == 1
    sizes = np.bincount(folds)
    assert len(sizes) == 4
    assert sizes.max() - sizes.min() <= 3


def test_the_same_seed_deals_alike_and_another_otherwise():
    even = np.repeat(np.arange(12), 5)

    assert (folds_of(even, 4, seed=1) == folds_of(even, 4, seed=1)).all()
    assert (folds_of(even, 4, seed=1) != folds_of(even, 4, seed=2)).any()


@pytest.mark.parametrize("count", [1, 12])
def test_a_number_of_folds_that_articles_do_not_fill_is_refused(count):
    with pytest.raises(EvaluationDataError, match=f"11 articles .* {count} folds"):
        folds_of(CLUSTERS, count, seed=0)


def test_what_stops_a_fit_is_of_other_articles_than_what_it_is_fitted_on():
    rows = np.flatnonzero(CLUSTERS > 3)

    training, stopping = held_out(rows, CLUSTERS, 0.2, seed=0)

    assert sorted([*training, *stopping]) == rows.tolist()
    assert not set(CLUSTERS[training]) & set(CLUSTERS[stopping])
    assert len(stopping) >= 0.2 * len(rows)
    assert len(training)


def test_of_one_article_nothing_can_be_held_out():
    with pytest.raises(EvaluationDataError, match="one article"):
        held_out(np.flatnonzero(CLUSTERS == 10), CLUSTERS, 0.2, seed=0)


class _Watched:
    """A fit whose scores are the set of folds that it was fitted on, as a number."""

    def __init__(self, folds):
        self.folds = folds
        self.count = 0

    def __call__(self, rows):
        self.count += 1
        seen = sum(2 ** int(fold) for fold in np.unique(self.folds[rows]))
        return lambda test: np.full(len(test), float(seen))


def test_no_score_is_of_a_fit_that_saw_its_fold():
    folds = folds_of(CLUSTERS, 4, seed=0)

    scores = out_of_fold(_Watched(folds), folds)

    assert scores.tolist() == [15 - 2**fold for fold in folds.tolist()]


def test_crosswise_two_folds_are_too_few():
    folds = folds_of(CLUSTERS, 2, seed=0)
    with pytest.raises(EvaluationDataError, match="at least 3"):
        cross_fit(_Watched(folds), folds)


def test_crosswise_no_fit_saw_either_fold():
    folds = folds_of(CLUSTERS, 4, seed=0)
    fit = _Watched(folds)

    crossed = cross_fit(fit, folds)

    assert fit.count == 4 + 6
    assert crossed.own.tolist() == [15 - 2**fold for fold in folds.tolist()]
    for other, scores in crossed.apart.items():
        inside = folds == other
        assert np.isnan(scores[inside]).all()
        expected = [15 - 2**other - 2**fold for fold in folds[~inside].tolist()]
        assert scores[~inside].tolist() == expected
