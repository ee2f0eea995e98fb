"""What a report says of rows whose outcome is known."""

import json
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from qa.evaluation.report.build import build_report, judged_from
from qa.evaluation.report.signals import ABLATIONS, with_gates
from qa.exceptions import EvaluationDataError
from qa.pipeline.gates import SCORES
from qa.pipeline.replay import Played, replay
from tests.qa.evaluation.judged_rows import make_judged, make_shadow_run, make_signals
from tests.qa.pipeline.values import make_policy

SHADOW = make_policy(hard_refusal=False, soft_refusal=False, support_check=False)
REFUSED = {"is_answered": False, "gate": "hard_refusal", "reason": "too_far"}


def make_mixed():
    """Return seven rows, no two of one kind."""
    return [
        make_judged("right-1"),
        make_judged("right-2"),
        make_judged("wrong", is_correct=False),
        make_judged("masked right", **REFUSED),
        make_judged("false answer", is_answerable=False, is_correct=False),
        make_judged("masked", is_answerable=False, is_correct=False, **REFUSED),
        make_judged("undrafted", is_answerable=False, is_correct=None, **REFUSED),
    ]


def test_the_rates_count_what_they_say():
    rates = build_report(make_mixed(), policy=SHADOW)["rates"]

    counted = {name: (rate["count"], rate["of"]) for name, rate in rates.items()}
    assert counted == {
        "false_answers": (1, 3),
        "false_refusals": (1, 4),
        "wrong_answers": (2, 4),
        "right": (4, 7),
        "answered": (4, 7),
        "accuracy": (2, 4),
        "recall": (2, 3),
        "masked": (2, 6),
        "masked_right": (1, 2),
    }
    assert rates["right"]["wilson_95"] == pytest.approx((0.2505, 0.8418), abs=1e-4)
    assert "clustered_95" not in rates["right"]


def test_outcomes_and_abstention_are_those_counted_by_hand():
    report = build_report(make_mixed(), policy=SHADOW)

    assert report["two_by_two"] == {
        "answered_rightly_due": 3,
        "answered_and_correct": 2,
        "false_refusals": 1,
        "false_answers": 1,
        "refused_rightly": 2,
    }
    values = {name: part["value"] for name, part in report["abstention"].items()}
    assert values == pytest.approx({"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3})


def test_places_and_reasons_are_counted():
    confusion = build_report(make_mixed(), policy=SHADOW)["confusion"]

    assert {
        "expected": "refused",
        "outcome": "refused",
        "gate": "hard_refusal",
        "reason": "too_far",
        "count": 2,
    } in confusion
    assert sum(part["count"] for part in confusion) == 7


def test_each_choice_of_gates_is_what_a_replay_of_every_row_decides():
    rows = with_confidence(make_shadow_run(300))
    least = replace(SHADOW, min_confidence=0.4)

    ablations = build_report(rows, policy=least)["ablations"]

    assert ablations["replayed_otherwise"] == 0
    for name in ABLATIONS:
        policy = with_gates(least, name)
        shown = [
            r for r in rows if replay(r.signals, policy).outcome is Played.ANSWERED
        ]
        part = ablations["gates"][name]
        assert part["answered"]["count"] == len(shown)
        assert part["wrong_answers"]["count"] == sum(
            row.is_wrong_if_shown for row in shown
        )
    counts = [part["answered"]["count"] for part in ablations["gates"].values()]
    assert list(ABLATIONS) == list(ablations["gates"])
    none, hard, _, _, confident, both, three, every = counts
    assert none == 300 > hard > both > three >= every > 0
    assert 300 > confident > three


def test_a_confidence_is_a_probability_with_its_calibration_error():
    rows = with_confidence(make_shadow_run(200))

    scores = build_report(rows, policy=SHADOW)["signals"]["scores"]

    assert scores["answer_confidence"]["calibration"]["count"] == 200
    assert scores["answer_confidence"]["auroc"] == pytest.approx(
        scores["verdict_probability"]["auroc"]
    )


def with_confidence(rows):
    """Return the rows with a confidence that ranks as the verdict does."""
    return [
        replace(
            row,
            signals={
                **row.signals,
                "answer_confidence": row.signals["verdict_probability"] ** 2,
            },
        )
        for row in rows
    ]


def test_what_an_enforced_gate_hid_is_said_to_be_unknown():
    hidden = make_judged(
        "hidden",
        signals={"distance_over_confidence": 0.9, "verified_ratio": 0.9},
        is_correct=None,
        **REFUSED,
    )
    report = build_report([hidden, make_judged("shown")], policy=make_policy())

    gates = report["ablations"]["gates"]
    assert gates["no gate"]["unknown"] == 1
    assert "shadow" in gates["no gate"]["why_not"]
    assert "answered" not in gates["no gate"]
    assert gates["hard refusal alone"]["answered"]["count"] == 1
    assert any("1 questions have no draft" in note for note in report["notes"])


def test_what_the_verifier_decided_is_no_part_of_hard_refusal():
    likely, unlikely = {"answerability": 0.9}, {"answerability": 0.1}
    near = {"distance_over_confidence": 0.5, "verified_ratio": 0.5}
    by_entry = {**near, **likely, "entry_answers": 0.9}
    refused = {**REFUSED, "gate": "entry", "reason": "not_answered"}
    unread = make_judged("refused", signals={**near, **unlikely}, **refused)
    shown = make_judged("shown", signals=by_entry)
    written = make_judged("written", signals=make_signals(**unlikely))
    policy = make_policy(verification=True)

    gates = build_report([shown, unread], policy=policy)["ablations"]["gates"]
    in_shadow = build_report([written], policy=SHADOW)["ablations"]["gates"]

    assert gates["hard refusal alone"]["unknown"] == 2
    for name in ("verifier alone", "all gates"):
        assert gates[name]["answered"]["count"] == 1
    # Measured with it, a draft is there that the verifier would have refused.
    assert in_shadow["hard refusal alone"]["answered"]["count"] == 1
    assert in_shadow["verifier alone"]["answered"]["count"] == 0


@pytest.mark.parametrize(
    ("rows", "policy", "why"),
    [
        ([make_judged("a")], None, "No policy"),
        ([make_judged("a", signals={})], SHADOW, "No signals"),
    ],
)
def test_gates_that_can_not_be_played_again_are_not_made_up(rows, policy, why):
    report = build_report(rows, policy=policy)

    assert report["ablations"]["gates"] == {}
    assert why in report["ablations"]["why_not"]
    assert report["alpha"] == []
    assert report["ablations"]["why_not"] in report["notes"]


def test_rows_that_another_policy_decided_are_noticed():
    row = make_judged("a", signals=make_signals(ratio=1.0))
    report = build_report([row], policy=make_policy(alpha=0.85))

    assert report["ablations"]["replayed_otherwise"] == 1
    assert any("not the run's policy" in note for note in report["notes"])


def test_a_wider_alpha_never_refuses_more():
    swept = build_report(make_shadow_run(200), policy=SHADOW)["alpha"]

    for name in ("hard refusal alone", "all gates"):
        refused = [part[name]["refused"] for part in swept]
        assert refused == sorted(refused, reverse=True)
        assert refused[0] > refused[-1]
    assert [part["alpha"] for part in swept if part["is_own"]] == [SHADOW.alpha]


def test_signals_are_ranked_by_their_own_direction():
    rows = make_shadow_run(400)
    scores = build_report(rows, policy=SHADOW)["signals"]["scores"]

    right = [not row.is_wrong_if_shown for row in rows]
    near = [-row.signals["verified_ratio"] for row in rows]
    assert scores["verified_ratio"]["auroc"] == pytest.approx(
        roc_auc_score(right, near)
    )
    assert scores["verified_ratio"]["auroc"] > 0.6
    low, high = scores["verified_ratio"]["auroc_95"]
    assert low < scores["verified_ratio"]["auroc"] < high
    low, high = scores["verified_ratio"]["aurc_95"]
    assert low < scores["verified_ratio"]["aurc"] < high
    assert "unverified_ratio" not in scores
    assert "calibration" in scores["verdict_probability"]
    assert "calibration" not in scores["verified_ratio"]


def test_multiple_choice_is_reported_by_what_is_shown():
    rows = [
        make_judged("a", is_answerable=None),
        make_judged("b", is_answerable=None, is_correct=False),
        make_judged("c", is_answerable=None, is_correct=False, **REFUSED),
    ]
    report = build_report(rows, policy=SHADOW)

    assert report["abstention"] is None
    assert sum(report["two_by_two"].values()) == 0
    rates = report["rates"]
    assert (rates["answered"]["count"], rates["accuracy"]["rate"]) == (2, 0.5)
    assert (rates["masked_right"]["count"], rates["masked_right"]["of"]) == (0, 1)
    assert rates["right"]["count"] == 1


def test_measures_are_told_apart_by_whether_they_were_shown():
    rows = [
        make_judged("a", measures={"f1": 1.0}),
        make_judged("b", measures={"f1": 0.5}),
        make_judged("c", measures={"f1": 0.2}, **REFUSED),
        make_judged("d"),
    ]
    measures = build_report(rows, policy=SHADOW)["measures"]

    found = {kind: (p["count"], p["mean"]) for kind, p in measures["f1"].items()}
    assert found["all"] == (3, pytest.approx(1.7 / 3))
    assert found["shown"] == (2, 0.75)
    assert found["masked"] == (1, pytest.approx(0.2))


def test_the_overhead_is_what_comes_on_top_of_the_models_own_time():
    rows = [
        make_judged("a"),
        make_judged("b", milliseconds=130.0),
        make_judged("c", milliseconds=30.0, model_milliseconds=0.0, **REFUSED),
    ]
    times = build_report(rows, policy=SHADOW)["times"]

    assert times["overhead_share"] == pytest.approx(0.2)
    assert times["question_without_model"]["median_ms"] == 30.0
    assert times["model"]["count"] == 2


@pytest.mark.slow
@settings(max_examples=12)  # each makes two reports
@given(st.permutations(make_shadow_run(12)))
def test_the_order_of_the_rows_changes_nothing(rows):
    assert build_report(rows, policy=SHADOW) == build_report(
        make_shadow_run(12), policy=SHADOW
    )


def test_a_report_is_json_and_its_rows_can_be_read_back():
    rows = [
        replace(row, answer_id=UUID(int=7)) if row.id == "right-1" else row
        for row in make_mixed()
    ]
    report = json.loads(json.dumps(build_report(rows, policy=SHADOW)))

    read = {row.id: row for row in judged_from(report)}
    assert len(read) == 7
    for row in rows:
        scores = {n: v for n, v in row.signals.items() if n in SCORES}
        assert read[row.id] == replace(row, signals=scores)


@pytest.mark.parametrize(
    ("report", "told"),
    [
        ({}, "no results by id"),
        ({"results": {"a": {}}}, "'a'"),
        ({"results": {"a": []}}, "'a'"),
    ],
)
def test_what_is_no_report_is_named(report, told):
    with pytest.raises(EvaluationDataError, match=told):
        judged_from(report)


def test_a_run_without_questions_has_a_report():
    report = build_report([], policy=SHADOW)

    assert report["questions"] == 0
    assert report["rates"]["right"]["rate"] is None
    assert report["notes"] == ["No question was asked."]


def test_an_id_that_stands_twice_is_an_error():
    with pytest.raises(ValueError, match="twice"):
        build_report([make_judged("a"), make_judged("a")], policy=None)


def test_groups_make_intervals_of_their_own():
    report = build_report(make_shadow_run(80, groups=4), policy=SHADOW)

    assert report["groups"] == 4
    low, high = report["rates"]["accuracy"]["clustered_95"]
    assert low < report["rates"]["accuracy"]["rate"] < high
    assert any("4 groups" in note for note in report["notes"])
    assert np.isfinite([low, high]).all()
