"""What thresholds do to labelled and to logged answers, counted by hand."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.calibration.threshold_effects import Labelled, Log
from qa.evaluation.decisions import columns_of
from qa.pipeline.replay import Played, replay
from tests.qa.evaluated import kept_from_the_model, labelled, measured
from tests.qa.pipeline.values import make_policy

POLICY = make_policy(alpha=0.85, min_verdict=0.5)
ANSWERS = (
    labelled("right", measured(0.5, 0.9), answerable=True, correct=True),
    labelled("wrong", measured(0.6, 0.9), answerable=True, correct=False),
    labelled("false answer", measured(0.7, 0.6), answerable=False, correct=None),
    labelled("far, right", measured(1.0, 0.9), answerable=True, correct=True),
    labelled("unsure, right", measured(0.5, 0.3), answerable=True, correct=True),
    labelled("rightly refused", measured(1.2, 0.2), answerable=False, correct=None),
    labelled("choice", measured(0.4, 0.9), answerable=None, correct=False),
)


def test_the_effect_on_labelled_answers_is_counted_by_hand():
    effect = Labelled(ANSWERS).effect(POLICY)

    assert (effect.questions, effect.unknown) == (7, 0)
    assert (effect.shown, effect.wrong) == (4, 3)
    assert (effect.due_shown, effect.due_refused) == (2, 2)
    assert (effect.undue_shown, effect.undue_refused) == (1, 1)


def test_the_bound_on_the_risk_is_the_exact_one():
    # With 0 wrong of n the 95 % bound solves (1 - p)^n = 0.05.
    right = [labelled(str(i), measured(), answerable=True, correct=True) for i in range(59)]  # fmt: skip

    effect = Labelled(right).effect(POLICY)

    assert effect.risk_bound == pytest.approx(1 - 0.05 ** (1 / 59))
    assert Labelled(right).effect(replace(POLICY, alpha=0.0)).risk_bound == 1.0


def test_what_a_gate_kept_from_the_model_is_unknown_and_counted_nowhere_else():
    answers = Labelled(
        (*ANSWERS, labelled("kept", kept_from_the_model(0.9), answerable=True, correct=None))
    )  # fmt: skip

    before, wider = answers.effect(POLICY), answers.effect(replace(POLICY, alpha=0.95))

    assert (before.unknown, before.due_refused) == (0, 3)
    assert (wider.unknown, wider.due_refused, wider.shown) == (1, 2, 4)


def test_the_tables_mark_the_policys_own_value_and_count_as_the_effect_does():
    answers = Labelled(ANSWERS)

    rows = {row.threshold: row for row in answers.by_alpha(POLICY)}
    own = rows[0.85]

    assert [row.threshold for row in rows.values() if row.is_own] == [0.85]
    assert (own.shown, own.wrong, own.right_masked) == (4, 3, 2)
    assert (own.precision, own.recall) == (1 / 4, 1 / 3)
    assert own.masked == pytest.approx(3 / 7)
    assert (rows[0.0].shown, rows[0.0].precision, rows[0.0].recall) == (0, None, 0.0)
    verdicts = {row.threshold: row.shown for row in answers.by_min_verdict(POLICY)}
    assert (verdicts[0.0], verdicts[0.5], verdicts[0.9]) == (5, 4, 3)


def test_a_confidence_has_a_table_once_it_is_measured_and_with_abstention_enforced():
    sure, unsure = measured(answer_confidence=0.9), measured(answer_confidence=0.35)
    answers = Labelled(
        (
            labelled("sure, right", sure, answerable=True, correct=True),
            labelled("unsure, wrong", unsure, answerable=True, correct=False),
            labelled("unsure, right", unsure, answerable=True, correct=True),
        )
    )
    shadow = replace(POLICY, min_confidence=0.3)

    table = answers.by_confidence(shadow, "answer_confidence")

    assert [row.threshold for row in table if row.is_own] == [0.3]
    rows = {row.threshold: row for row in table}
    assert list(rows) == [step / 10 for step in range(10)]
    assert (rows[0.0].shown, rows[0.3].shown, rows[0.4].shown) == (3, 3, 1)
    assert (rows[0.4].wrong, rows[0.4].right_masked) == (0, 1)
    assert (rows[0.4].precision, rows[0.4].recall) == (1.0, 0.5)
    assert answers.by_confidence(shadow, "joint_confidence") == ()


def test_nothing_labelled_has_no_shares():
    (row, *_) = Labelled(()).by_alpha(POLICY)

    assert (row.precision, row.recall, row.masked) == (None, None, None)


def test_the_effect_on_logged_answers_is_held_against_what_happened():
    signals, answered, down = zip(
        (measured(0.5), True, False),
        (measured(0.8), True, True),
        (measured(0.8), True, False),
        (measured(0.5, 0.55), False, True),
        (kept_from_the_model(0.9), False, False),
        (kept_from_the_model(1.3), False, False),
        strict=True,
    )
    log = Log(
        signals=columns_of(
            len(signals),
            (
                (list(each), [at], [list(each.values())])
                for at, each in enumerate(signals)
            ),
        ),
        was_answered=np.array(answered),
        has_thumb_down=np.array(down),
        since=datetime.now(UTC),
        asked=6,
        other_models=0,
        refused_stale=0,
    )

    stricter = log.effect(replace(POLICY, alpha=0.7, min_verdict=0.6))
    laxer = log.effect(replace(POLICY, alpha=1.0))

    assert (stricter.more_refused, stricter.more_refused_down) == (2, 1)
    assert (stricter.more_answered, stricter.unknown, stricter.same) == (0, 0, 4)
    assert (laxer.more_answered, laxer.more_answered_down) == (1, 1)
    assert (laxer.more_refused, laxer.unknown, laxer.same) == (0, 1, 4)


_bound = st.floats(0, 2)


@given(
    ratios=st.lists(_bound, max_size=20), alpha=_bound, verdict=st.floats(0, 1)
)  # fmt: skip
def test_labelled_answers_in_columns_come_out_as_one_by_one(ratios, alpha, verdict):
    policy = replace(POLICY, alpha=alpha, min_verdict=verdict)
    answers = [
        labelled(str(i), measured(ratio, ratio / 2), answerable=True, correct=True)
        for i, ratio in enumerate(ratios)
    ]
    played = [replay(answer.signals, policy).outcome for answer in answers]

    effect = Labelled(answers).effect(policy)

    assert effect.shown == played.count(Played.ANSWERED)
    assert effect.due_refused == played.count(Played.REFUSED)
