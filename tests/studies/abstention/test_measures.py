"""Risk at a coverage, and coverage at a risk: as the curve says, and by hand."""

import numpy as np
import pytest

from qa.evaluation.metrics.selective import risk_coverage
from studies.abstention.measures import COVERAGES, risk_differences, risks
from studies.abstention.scores import examine
from tests.qa.evaluation.judged_rows import make_judged


def given(right):
    answers = [
        make_judged(f"q{number:03}", group=f"article {number % 5}", is_correct=is_right)
        for number, is_right in enumerate(right)
    ]
    return examine(answers, [None] * len(answers), folds=3, seed=0)


def test_by_hand():
    # Best first: 19 right, one wrong, then wrong ones; 20 of 40 are at 5 % risk.
    examined = given([True] * 19 + [False] * 21)
    scores = -np.arange(40.0)

    part = risks(examined, {"a": scores})["a"]

    assert part["coverage_at_risk"]["value"] == pytest.approx(0.5)
    at = {point["coverage"]: point["value"] for point in part["risk_at_coverage"]}
    assert at[0.2] == 0.0
    assert at[0.5] == pytest.approx(1 / 20)
    assert at[0.8] == pytest.approx(13 / 32)


def test_it_agrees_with_the_curve_where_scores_are_alike():
    random = np.random.default_rng(0)
    examined = given((random.random(200) < 0.6).tolist())
    scores = random.integers(0, 9, 200).astype(float)

    part = risks(examined, {"a": scores})["a"]

    curve = risk_coverage(scores.tolist(), examined.wrong)
    assert [p["value"] for p in part["risk_at_coverage"]] == pytest.approx(
        [curve.risk_at(coverage) for coverage in COVERAGES]
    )
    assert part["coverage_at_risk"]["value"] == pytest.approx(curve.coverage_at(0.05))


def test_where_no_step_is_safe_nothing_can_be_shown():
    part = risks(given([False] * 30 + [True] * 10), {"a": -np.arange(40.0)})["a"]

    assert part["coverage_at_risk"]["value"] == 0.0


def test_a_score_that_orders_alike_differs_by_nothing():
    random = np.random.default_rng(1)
    examined = given((random.random(60) < 0.5).tolist())
    scores = random.random(60)

    found = risk_differences(examined, scores, 3 * scores)

    assert [point["difference"] for point in found] == [0.0] * len(COVERAGES)
    assert [point["coverage"] for point in found] == list(COVERAGES)
