import numpy as np
import pytest

from qa.evaluation.metrics.calibration_error import (
    brier_score,
    expected_calibration_error,
    reliability,
)
from qa.evaluation.metrics.selective import aurc, auroc
from qa.training.held_out import figures, rows_of


@pytest.fixture(scope="module")
def found():
    random = np.random.default_rng(0)
    confidences = random.uniform(size=600)
    right = random.uniform(size=600) < confidences**2
    clusters = random.integers(0, 20, 600)
    scores = {"noise": random.normal(size=600).tolist(), "none": [None] * 600}
    return (
        confidences,
        right,
        figures(confidences, right, clusters, baselines=scores),
    )


def test_the_figures_are_those_of_the_metrics(found):
    confidences, right, said = found
    values, wrong = confidences.tolist(), (~right).tolist()

    assert said["auroc"]["value"] == pytest.approx(auroc(values, wrong), abs=1e-5)
    assert said["aurc"]["value"] == pytest.approx(aurc(values, wrong), abs=1e-5)
    assert said["brier"]["value"] == pytest.approx(
        brier_score(values, right.tolist()), abs=1e-5
    )
    assert said["ece"]["value"] == pytest.approx(
        expected_calibration_error(reliability(values, right.tolist())), abs=1e-5
    )
    assert (said["answers"], said["groups"]) == (600, 20)
    assert said["right"] == right.mean()
    assert said["risk_coverage"][-1] == [1.0, pytest.approx(1 - right.mean())]
    assert len(said["risk_coverage"]) <= 101
    assert sum(one["count"] for one in said["reliability"]) == 600


def test_intervals_hold_the_figures(found):
    _, _, said = found
    for name in ("auroc", "aurc", "brier"):
        assert said[name]["low"] < said[name]["value"] < said[name]["high"]
    assert said["auroc"]["high"] - said["auroc"]["low"] < 0.15
    noise = said["baselines"]["noise"]["auroc"]
    assert noise["low"] < 0.5 < noise["high"]
    assert noise["high"] < said["auroc"]["low"]


def test_a_table_shows_each_figure_with_its_interval(found):
    _, _, said = found

    first, noise, none = rows_of("a probe", said)

    assert first[0] == "a probe"
    assert all("[" in cell for cell in first[1:])
    assert noise[0] == "noise"
    assert noise[3:] == ("", "")
    assert none[1] == "0.500"
