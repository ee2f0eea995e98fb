"""The figures: each is what it says, and no stored confidence leaks into them."""

from dataclasses import replace

import numpy as np
import pytest

from probes.abstention.fitting import FitSettings
from probes.exceptions import TooFewLabelsError
from studies.abstention.build import Options, build_report, fits_planned
from studies.abstention.scores import PARTS
from studies.abstention.tables import tables

from .given_insides import GivenInsides, given_examined

pytestmark = pytest.mark.slow

QUICK = FitSettings(
    hidden=6, projected=6, learning_rate=2e-2, epochs=8, patience=2, dropout=0.1
)


@pytest.fixture(scope="module")
def examined():
    return given_examined(720)


@pytest.fixture(scope="module")
def made(examined):
    fitted = []
    report = build_report(
        examined,
        GivenInsides(examined.right.tolist()),
        Options(settings=QUICK),
        on_fit=lambda: fitted.append(1),
    )
    return report.figures, len(fitted)


def test_as_many_probes_are_fitted_as_were_announced(examined, made):
    planned = fits_planned(
        examined, GivenInsides(examined.right.tolist()), Options(settings=QUICK)
    )

    assert made[1] == planned


def test_scores_that_know_more_tell_more(made):
    found = {name: part["auroc"] for name, part in made[0]["areas"]["scores"].items()}

    assert found["lstm"] > 0.9 > found["early"] > 0.6
    assert 0.4 < found["log_probability"] < 0.6
    assert 0.4 < found["p_true"] < 0.6
    assert found["joint"] > 0.9
    # The stored confidence knows everything; nothing may have read it.
    assert "answer_confidence" not in found
    assert found["joint"] < 0.999


def test_every_area_has_an_interval_that_holds_it(made):
    for part in made[0]["areas"]["scores"].values():
        for name in ("auroc", "aurc"):
            low, high = part[f"{name}_95"]
            assert low < part[name] < high


def test_a_threshold_shows_and_masks_every_answer_once(examined, made):
    for row in made[0]["thresholds"]["lstm"]:
        masked, recall, precision, left = (
            row[name]["value"]
            for name in ("masked", "recall", "precision", "masked_right")
        )
        shown = 1 - masked
        right = examined.right.mean()
        # Right ones are shown or masked: precision x shown + masked_right x masked.
        assert precision * shown + (left or 0) * masked == pytest.approx(
            right, abs=1e-5
        )
        assert recall * right == pytest.approx(precision * shown, abs=1e-5)


def test_nothing_is_masked_at_threshold_zero(made):
    first, *_ = made[0]["thresholds"]["joint"]

    assert first["threshold"] == 0.0
    assert first["masked"]["value"] == 0.0
    assert first["recall"]["value"] == 1.0
    assert first["masked_right"]["value"] is None
    assert first["rouge_masked"]["value"] is None


def test_the_threshold_separates_like_texts_from_unlike_ones(made):
    row = made[0]["thresholds"]["lstm"][5]

    assert row["rouge_displayed"]["value"] > 0.7 > row["rouge_masked"]["value"]


def test_trusting_more_answers_is_riskier_and_all_of_them_the_riskiest(examined, made):
    points = made[0]["coverage"]["lstm"]["risk_at_coverage"]

    assert [point["coverage"] for point in points] == [
        pytest.approx(step / 10) for step in range(2, 9)
    ]
    risks = [point["value"] for point in points]
    assert risks[0] < risks[-1] < float((~examined.right).mean())


def test_all_gates_beat_distance_where_activations_tell(made):
    assert all(point["difference"] < 0 for point in made[0]["against_distance"])
    assert [goal["is_met"] for goal in made[0]["goals"]][::2] == [True, True]


def test_the_block_at_two_thirds_with_all_evidence_comes_first_and_best(made):
    variants = made[0]["variants"]

    told = [(part["layer"], part["part"], part["pieces"]) for part in variants]
    assert told == [
        (layer, part, pieces)
        for layer, part in ((3, "block"), (2, "block"), (5, "block"), (2, "ffn"))
        for pieces in (None, 3, 1)
    ]
    best = max(variants, key=lambda part: part["auroc"])
    assert best == variants[0]
    assert variants[0]["auroc"] == made[0]["areas"]["scores"]["lstm"]["auroc"]


def test_learning_goes_by_thousands_to_all_there_are(examined, made):
    sizes = [part["answers"] for part in made[0]["learning"]]

    assert sizes == [len(examined.answers) - np.bincount(examined.folds).max()]
    assert set(made[0]["learning"][0]["scores"]) == {"lstm", "linear", "early"}


def test_before_the_answer_it_tells_right_ones_and_answerable_ones(made):
    early = made[0]["early"]

    assert set(early) == {
        "right", "right_at_two_thirds", "answerable", "answerable_by_right",
    }  # fmt: skip
    assert early["right"]["auroc"] > 0.6
    # These activations tell right answers, and questions with an answer by those alone.
    assert early["answerable_by_right"]["auroc"] < early["right"]["auroc"]


def test_every_table_is_there_and_every_row_is_whole(made):
    found = list(tables(made[0]))

    assert len(found) == 10
    for table in found:
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_parts_that_are_left_out_are_not_made(examined):
    small = given_examined(540)
    options = Options(settings=replace(QUICK, epochs=1), without=PARTS)

    report = build_report(small, GivenInsides(small.right.tolist()), options).figures

    assert "variants" not in report
    assert "learning" not in report
    assert "p_true" not in report["areas"]["scores"]


def test_too_few_labels_are_refused():
    few = given_examined(60)
    with pytest.raises(TooFewLabelsError, match="labelled answers"):
        build_report(few, GivenInsides(few.right.tolist()), Options(settings=QUICK))
