"""Risk, coverage and ranking, against scikit-learn and examples worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from qa.evaluation.metrics.selective import (
    aurc,
    auroc,
    average_precision,
    least_aurc,
    precision_recall,
    rank,
    risk_coverage,
)

# Few different values, so that many are tied; None is missing.
_answers = st.lists(
    st.tuples(st.none() | st.integers(-4, 4).map(float), st.booleans()),
    min_size=1,
    max_size=40,
)


def apart(answers):
    scores, wrong = zip(*answers, strict=True)
    return list(scores), list(wrong)


def filled(scores):
    return [-100.0 if score is None else score for score in scores]


def test_the_curve_is_the_one_drawn_by_hand():
    # Shown in this order: right; then two tied, one of them wrong; then wrong.
    curve = risk_coverage([0.5, 0.9, 0.5, None], [True, False, False, True])

    assert curve.coverage == pytest.approx((1 / 4, 3 / 4, 1))
    assert curve.risk == pytest.approx((0, 1 / 3, 1 / 2))
    assert curve.threshold == (0.9, 0.5, None)
    assert curve.risk_at(0.25) == 0
    assert curve.risk_at(0.3) == pytest.approx(1 / 3)
    assert curve.coverage_at(0.4) == 0.75
    assert curve.coverage_at(0.2) == 0.25


def test_the_area_is_the_one_summed_by_hand():
    scores, wrong = [0.5, 0.9, 0.5, None], [True, False, False, True]

    assert aurc(scores, wrong) == pytest.approx((0 + 1 / 3 + 1 / 3 + 1 / 2) / 4)
    # The oracle shows the two right ones first: risks 0, 0, 1/3, 2/4.
    assert least_aurc(wrong) == pytest.approx((1 / 3 + 1 / 2) / 4)


def test_no_coverage_has_a_low_risk_where_the_most_trusted_is_wrong():
    assert risk_coverage([2.0, 1.0], [True, True]).coverage_at(0.5) == 0.0


@pytest.mark.parametrize("coverage", [0, -0.1, 1.1])
def test_what_is_no_coverage_has_no_risk(coverage):
    with pytest.raises(ValueError, match="not a coverage"):
        risk_coverage([1.0], [True]).risk_at(coverage)


@pytest.mark.parametrize(("scores", "wrong"), [([], []), ([1.0], [True, False])])
def test_what_can_not_be_ranked_is_an_error(scores, wrong):
    with pytest.raises(ValueError, match="can't be ranked"):
        rank(scores, wrong)


def test_no_answers_have_no_oracle():
    with pytest.raises(ValueError, match="at least one answer"):
        least_aurc([])


@given(_answers)
def test_auroc_is_scikit_learns(answers):
    scores, wrong = apart(answers)
    area = auroc(scores, wrong)

    if len(set(wrong)) < 2:
        assert area is None
    else:
        assert area == pytest.approx(roc_auc_score(~np.array(wrong), filled(scores)))


@given(_answers)
def test_average_precision_sums_the_steps_of_the_curve(answers):
    scores, wrong = apart(answers)
    steps, total = [], wrong.count(False)
    for threshold in sorted(set(filled(scores)), reverse=True):
        shown = [bad for score, bad in zip(filled(scores), wrong, strict=True) if score >= threshold]  # fmt: skip
        right = shown.count(False)
        steps.append((right / len(shown), right / total if total else 0.0))

    curve = precision_recall(scores, wrong)

    if not total:
        assert curve is None
        assert average_precision(scores, wrong) is None
    else:
        assert curve is not None
        assert np.transpose(curve) == pytest.approx(np.array(steps))
        gained = np.diff([recall for _, recall in steps], prepend=0.0)
        expected = sum(gained * [precision for precision, _ in steps])
        assert average_precision(scores, wrong) == pytest.approx(expected)


@given(_answers)
def test_aurc_without_ties_is_the_mean_of_the_running_error_rates(answers):
    _, wrong = apart(answers)
    scores = [-float(place) for place in range(len(wrong))]

    running = [sum(wrong[:n]) / n for n in range(1, len(wrong) + 1)]
    assert aurc(scores, wrong) == pytest.approx(np.mean(running))


@given(_answers, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(answers, random):
    shuffled = list(answers)
    random.shuffle(shuffled)

    first, second = apart(answers), apart(shuffled)
    assert risk_coverage(*first) == risk_coverage(*second)
    assert aurc(*first) == pytest.approx(aurc(*second))
    assert auroc(*first) == pytest.approx(auroc(*second), nan_ok=True)


@given(_answers)
def test_a_monotone_transform_changes_nothing(answers):
    scores, wrong = apart(answers)
    moved = [None if s is None else float(np.exp(s / 3) * 7 - 50) for s in scores]

    assert aurc(moved, wrong) == pytest.approx(aurc(scores, wrong))
    assert auroc(moved, wrong) == pytest.approx(auroc(scores, wrong))


@given(_answers)
def test_areas_stay_in_their_bounds(answers):
    scores, wrong = apart(answers)
    curve = risk_coverage(scores, wrong)

    assert least_aurc(wrong) - 1e-12 <= aurc(scores, wrong) <= 1
    assert all(0 <= risk <= 1 for risk in curve.risk)
    assert curve.coverage[-1] == 1
    assert curve.risk[-1] == pytest.approx(sum(wrong) / len(wrong))
    assert list(curve.coverage) == sorted(set(curve.coverage))


@given(_answers)
def test_a_score_that_tells_nothing_has_the_error_rate_as_its_area(answers):
    _, wrong = apart(answers)

    assert aurc([None] * len(wrong), wrong) == pytest.approx(sum(wrong) / len(wrong))


@given(_answers.flatmap(lambda rows: st.tuples(
    st.just(rows), st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))
)))  # fmt: skip
def test_a_weight_counts_as_so_many_rows(given_rows):
    rows, times = given_rows
    repeated = [row for row, n in zip(rows, times, strict=True) for _ in range(n)]
    if not repeated:
        return
    weights = np.array([times], dtype=np.float32)
    areas = rank(*apart(rows)).areas(weights)[:, 0]

    assert areas[0] == pytest.approx(aurc(*apart(repeated)), abs=1e-5)
    expected = auroc(*apart(repeated))
    assert areas[1] == pytest.approx(
        np.nan if expected is None else expected, abs=1e-5, nan_ok=True
    )
