"""What a calibration comes to, in its parts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.calibration.thresholds import (
    Certified,
    Method,
    NotCertified,
    calibrate,
    choose_by_cost,
)
from qa.calibration.thresholds.candidates import candidates, thresholds_of
from qa.calibration.thresholds.candidates import testing_order as order_of
from qa.calibration.thresholds.choice import split
from qa.calibration.thresholds.learn_then_test import smoothed_errors
from qa.calibration.thresholds.values import upper_bound
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import table_of
from qa.exceptions import CalibrationError
from qa.pipeline.gates import CONFIDENCES, SCORES, THRESHOLDED
from qa.pipeline.replay import Played, replay
from qa.pipeline.rules import Trust
from tests.qa.calibration.labelled_answers import draw, make_labelled
from tests.qa.pipeline.values import make_policy

pytestmark = pytest.mark.slow

_BASE = make_policy(alpha=2.0, min_verdict=0.0, horizon=1.2)
_JOINT = ("verified_ratio", "verdict_probability")


def perfect(count: int, **signals: Any) -> list[LabelledAnswer]:
    return [make_labelled(f"q{i}", **signals) for i in range(count)]


def certified(labelled, **changes) -> Certified:
    values: dict[str, Any] = {
        "base": _BASE,
        "epsilon": 0.15,
        "delta": 0.05,
        "signals": _JOINT,
    }
    found = calibrate(labelled, **{**values, **changes})
    assert isinstance(found, Certified)
    return found


@pytest.fixture(scope="module")
def drawn() -> list[LabelledAnswer]:
    return draw(np.random.default_rng(5), 2_000, per_group=4)


def test_what_is_certified_is_what_a_replay_of_the_chosen_policy_shows(drawn):
    found = certified(drawn)

    _, test = split(table_of(drawn).groups, learn_share=found.learnt / 2000, seed=0)
    rows = [answer for answer, is_tested in zip(drawn, test, strict=True) if is_tested]
    shown = [
        answer
        for answer in rows
        if replay(answer.signals, found.policy).outcome is Played.ANSWERED
    ]
    tested = found.tested
    assert (tested.labelled, tested.shown) == (len(rows), len(shown))
    assert tested.wrong == sum(answer.is_wrong_if_shown for answer in shown)
    assert tested.bound == upper_bound(tested.wrong, tested.shown, 0.05) <= 0.15


def test_testing_stops_at_the_first_failure_and_the_most_that_passed_is_chosen(drawn):
    found = certified(drawn)

    *passed, last = found.sequence
    assert all(tested.passed for tested in passed)
    assert not last.passed
    assert found.tested.shown == max(tested.shown for tested in passed)


def test_the_gates_of_chosen_thresholds_are_switched_on_and_the_rest_stays(drawn):
    shadow = replace(_BASE, hard_refusal=False, soft_refusal=False, support_check=False)

    found = certified(drawn, base=shadow)

    assert found.policy.hard_refusal
    assert found.policy.soft_refusal
    assert not found.policy.support_check
    assert found.policy.horizon >= found.policy.alpha
    chosen = {"alpha", "min_verdict", "hard_refusal", "soft_refusal", "horizon"}
    for name in set(shadow.__dataclass_fields__) - chosen:
        assert getattr(found.policy, name) == getattr(shadow, name)


def test_the_same_labels_in_another_order_and_the_same_seed_give_the_same(drawn):
    assert certified(drawn) == certified(drawn)
    assert certified(drawn, seed=1).thresholds != certified(drawn).thresholds


def test_no_group_is_learnt_from_and_tested_on(drawn):
    groups = table_of(drawn).groups
    learn, test = split(groups, learn_share=0.3, seed=7)

    assert (learn ^ test).all()
    assert not set(groups[learn]) & set(groups[test])
    assert learn.mean() == pytest.approx(0.3, abs=0.01)


@given(
    groups=st.lists(st.integers(0, 9), min_size=2, max_size=60), seed=st.integers(0, 99)
)
def test_any_groups_are_split_whole(groups: list[int], seed: int) -> None:
    numbers = np.unique(groups, return_inverse=True)[1]
    learn, test = split(numbers, learn_share=0.3, seed=seed)
    assert learn.any()
    assert not set(numbers[learn]) & set(numbers[test])


def test_too_few_labels_tell_how_many_it_takes():
    found = calibrate(perfect(70), base=_BASE, epsilon=0.05, delta=0.05, signals=_JOINT)

    assert isinstance(found, NotCertified)
    assert (found.needed, found.labelled) == (59, 70)
    best = found.best_possible
    assert best is not None
    assert (best.wrong, best.shown) == (0, 70 - found.learnt)
    assert best.shown < 59
    assert best.bound == pytest.approx(1 - 0.05 ** (1 / best.shown))
    assert found.needed_at_best_risk == 59
    for said in ("70 labelled answers", "59 shown", f"{best.bound:.1%}", "100.0%"):
        assert said in found.explanation


def test_just_enough_labels_without_an_error_earn_it():
    labelled = perfect(80)
    found = calibrate(labelled, base=_BASE, epsilon=0.05, delta=0.05, signals=_JOINT)

    assert isinstance(found, Certified)
    assert (found.tested.shown, found.tested.wrong) == (60, 0)
    assert found.tested.coverage == 1.0


def test_what_was_not_measured_is_left_out_counted_and_warned_of(drawn):
    failed = [LabelledAnswer(f"failed{i}", "", {}, True, None) for i in range(7)]

    found = certified([*drawn, *failed])

    assert found.unmeasured == 7
    assert found.learnt + found.tested.labelled == len(drawn)
    assert any("7 labelled answers" in warning for warning in found.warnings)


def test_what_an_enforced_gate_hid_can_not_be_certified():
    """All that would show more was never written: it counts as wrong, not as nothing."""
    near = perfect(300, verified_ratio=0.5)
    hidden = [
        LabelledAnswer(f"far{i}", "", {"verified_ratio": 0.9}, True, None)
        for i in range(300)
    ]

    found = certified([*near, *hidden], epsilon=0.05, signals=("verified_ratio",))

    assert found.policy.alpha < 0.9 + 1e-6
    assert found.tested.coverage == pytest.approx(0.5, abs=0.1)
    assert found.tested.wrong == 0


def test_answers_of_one_group_are_bounded_as_groups_and_no_others_are():
    rng = np.random.default_rng(6)
    grouped = certified(draw(rng, 3_000, per_group=10), epsilon=0.2, delta=0.1)
    single = certified(draw(rng, 3_000), epsilon=0.2, delta=0.1)

    tested = grouped.tested
    assert tested.groups == (3_000 - grouped.learnt) / 10
    assert tested.bound < tested.group_bound <= 0.2
    assert not any("group" in warning for warning in grouped.warnings)
    assert single.tested.group_bound == single.tested.bound
    assert any("No two" in warning for warning in single.warnings)


def test_a_group_that_is_much_of_all_is_warned_of():
    labelled = [
        replace(answer, group="manual" if number < 60 else answer.group)
        for number, answer in enumerate(perfect(900, group=""))
    ]
    found = calibrate(labelled, base=_BASE, epsilon=0.05, delta=0.05, signals=_JOINT)

    assert any("The largest of" in warning for warning in found.warnings)


def test_of_a_frontier_the_surest_is_tested_first_and_never_one_that_shows_less():
    shown = np.array([100, 200, 200, 300, 50])
    wrong = np.array([1.0, 2.0, 9.0, 40.0, 0.0])

    order = order_of(shown, wrong, epsilon=0.05, scale=1.0)

    assert order.tolist() == [1, 3]


def with_confidences(
    drawn: list[LabelledAnswer], rng: np.random.Generator
) -> list[LabelledAnswer]:
    """Return the answers with confidences, of which the joint one is worth most."""
    noise = {"answer_confidence": 0.5, "early_confidence": 1.0, "joint_confidence": 0.2}

    def measured(answer: LabelledAnswer) -> dict[str, float]:
        right = float(answer.is_correct is True)
        return {
            name: float(np.clip(0.3 + 0.4 * right + spread * rng.normal() / 2, 0, 1))
            for name, spread in noise.items()
        }

    return [
        replace(answer, signals={**answer.signals, **measured(answer)})
        for answer in drawn
    ]


def test_confidences_are_calibrated_with_the_other_signals_and_show_more(drawn):
    labelled = with_confidences(drawn, np.random.default_rng(8))

    joint = certified(labelled, signals=tuple(THRESHOLDED), epsilon=0.05)
    alone = calibrate(labelled, base=_BASE, epsilon=0.05, delta=0.05, signals=_JOINT)

    assert joint.policy.abstention
    assert joint.thresholds.keys() > set(CONFIDENCES.values())
    assert joint.tested.coverage > 0.6
    shown_alone = alone.tested.coverage if isinstance(alone, Certified) else 0.0
    assert joint.tested.coverage > shown_alone
    played = [replay(answer.signals, joint.policy).outcome for answer in labelled]
    wrong = [p is Played.ANSWERED and a.is_wrong_if_shown for a, p in zip(labelled, played, strict=True)]  # fmt: skip
    assert sum(wrong) <= 0.05 * sum(p is Played.ANSWERED for p in played)


def test_each_of_many_signals_is_tried_alone_in_fine_steps_too(drawn):
    labelled = with_confidences(drawn, np.random.default_rng(8))
    scores = {name: SCORES[name] for name in (*_JOINT, *CONFIDENCES)}

    tried = candidates(table_of(labelled), _BASE, scores)

    assert len(tried) < 20_000
    assert len({repr(policy) for policy in tried}) == len(tried)
    for name, score in scores.items():
        others = {other.threshold: other for other in scores.values()}
        del others[score.threshold]
        laxest = {
            field: other.limits[other.trust is Trust.LOW]
            for field, other in others.items()
        }
        alone = [
            getattr(policy, score.threshold)
            for policy in tried
            if all(getattr(policy, field) == lax for field, lax in laxest.items())
        ]
        assert len(alone) > 250, name


@given(
    values=st.lists(st.floats(0, 3, allow_nan=False), min_size=1, max_size=50),
    size=st.integers(2, 30),
)
def test_thresholds_go_from_the_strictest_to_the_laxest_within_limits(
    values: list[float], size: int
) -> None:
    column = np.array([*values, np.nan])
    for name in ("verified_ratio", "verdict_probability"):
        score = SCORES[name]
        found = thresholds_of(column, score, size)
        low, high = score.limits
        assert len(found) <= size
        assert all(low <= each <= high for each in found)
        passing = [sum(bool(score.meets(v, t)) for v in values) for t in found]
        assert passing == sorted(passing)


def test_smoothed_errors_lie_between_label_and_trend(drawn):
    table = table_of(drawn)
    scores = {name: SCORES[name] for name in _JOINT}

    errors = smoothed_errors(table, scores)

    model = 2 * errors - table.wrong
    assert ((model > 0) & (model < 1)).all()
    assert model.mean() == pytest.approx(table.wrong.mean(), abs=0.005)
    true = (
        0.8 * table.values["verified_ratio"] ** 2
        + 0.2 * (1 - table.values["verdict_probability"]) ** 2
    )
    assert np.corrcoef(model, true)[0, 1] > 0.9


@pytest.mark.parametrize("right", [True, False])
def test_smoothing_bears_one_label_alone_and_missing_values(right):
    labelled = [
        make_labelled(f"q{i}", right=right, verdict_probability=None if i % 2 else 0.5)
        for i in range(10)
    ]
    names = ("verdict_probability", "unverified_ratio")
    scores = {name: SCORES[name] for name in names}

    errors = smoothed_errors(table_of(labelled), scores)

    assert np.isfinite(errors).all()


def test_guaranteed_risk_finds_one_threshold_on_all_answers(drawn):
    base = replace(_BASE, min_verdict=0.2)
    found = certified(
        drawn,
        base=base,
        signals=("verified_ratio",),
        method=Method.GUARANTEED_RISK,
    )

    assert (found.learnt, found.tested.labelled) == (0, 2_000)
    assert found.policy.min_verdict == 0.2
    # Each step is tested at a part of delta, so that the bound is the wider one.
    tested = found.tested
    assert upper_bound(tested.wrong, tested.shown, 0.05) < tested.bound <= 0.15
    with pytest.raises(CalibrationError, match="one signal"):
        certified(drawn, method=Method.GUARANTEED_RISK)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0.0}, "epsilon 0.0"),
        ({"delta": 1.0}, "delta 1.0"),
        ({"epsilon": float("nan")}, "epsilon nan"),
        ({"signals": ("log_probability",)}, "log_probability.*verified_ratio"),
        ({"signals": ()}, "none is named"),
        ({"signals": ("unverified_ratio",)}, "unverified_ratio"),
        ({"labelled": perfect(3) * 2}, "same id"),
        ({"labelled": []}, "None of 0 labelled"),
        ({"labelled": [LabelledAnswer("q", "", {}, True, True)]}, "stored signals"),
    ],
)
def test_what_can_not_be_calibrated_is_refused(changes, said):
    values: dict[str, Any] = {"epsilon": 0.1, "delta": 0.1, "signals": _JOINT}
    values |= {"labelled": perfect(30), **changes}
    labelled = values.pop("labelled")
    with pytest.raises(CalibrationError, match=said):
        calibrate(labelled, base=_BASE, **values)


def test_dearer_mistakes_make_stricter_thresholds(drawn):
    dear, cheap = (
        choose_by_cost(
            drawn, base=_BASE, wrong_cost=cost, refused_cost=1.0, signals=_JOINT
        )
        for cost in (10.0, 0.1)
    )

    assert dear.shown < cheap.shown
    assert dear.wrong < cheap.wrong
    for choice in (dear, cheap):
        total = choice.wrong_cost * choice.wrong + choice.refused_right
        assert choice.cost == pytest.approx(total / len(drawn))
        assert choice.low < choice.cost < choice.high
    # What was chosen for looking cheap looks cheaper than it is.
    assert dear.optimism > 0


def test_the_cheapest_thresholds_are_the_cheapest_of_all_tried():
    labelled = [
        make_labelled("a", verdict_probability=0.9),
        make_labelled("b", verdict_probability=0.8, right=False),
        make_labelled("c", verdict_probability=0.7),
        make_labelled("d", verdict_probability=0.2, right=False),
    ]
    # All shown: 2 wrong. From 0.7: 1 wrong. From 0.9: 1 right refused. None: 2 refused.
    found = choose_by_cost(
        labelled,
        base=_BASE,
        wrong_cost=3.0,
        refused_cost=1.0,
        signals=("verdict_probability",),
    )
    assert (found.cost, found.shown, found.wrong, found.refused_right) == (
        0.25,
        1,
        0,
        1,
    )
    assert 0.8 < found.thresholds["min_verdict"] <= 0.9


@pytest.mark.parametrize("costs", [(-1.0, 1.0), (0.0, 0.0)])
def test_costs_that_are_none_are_refused(costs):
    with pytest.raises(CalibrationError, match="invalid; give positive ones"):
        choose_by_cost(
            perfect(3), base=_BASE, wrong_cost=costs[0], refused_cost=costs[1]
        )
