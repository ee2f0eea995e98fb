"""The gates as columns decide what `replay` decides, and know what was not measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import table_of
from qa.pipeline.policy import Policy
from qa.pipeline.replay import Played, replay
from tests.qa.calibration.labelled_answers import any_signals, make_labelled
from tests.qa.pipeline.strategies import bound, policies
from tests.qa.pipeline.values import make_policy

_policies = policies(verbatim_distance=st.just(0.0) | bound)
_labelled = st.lists(
    st.tuples(any_signals, st.none() | st.booleans(), st.none() | st.booleans()),
    min_size=1,
    max_size=8,
).map(
    lambda rows: [
        LabelledAnswer(f"q{i}", "", signals, answerable, right)
        for i, (signals, answerable, right) in enumerate(rows)
    ]
)


@given(labelled=_labelled, policy=_policies)
def test_columns_decide_what_a_replay_decides(
    labelled: list[LabelledAnswer], policy: Policy
) -> None:
    decided = table_of(labelled).decide(policy)
    played = [replay(answer.signals, policy).outcome for answer in labelled]

    assert decided.answered.tolist() == [p is Played.ANSWERED for p in played]
    assert decided.unknown.tolist() == [p is Played.UNKNOWN for p in played]


@pytest.mark.slow
@given(labelled=_labelled, policies=st.lists(_policies, min_size=1, max_size=6))
def test_counting_a_grid_is_counting_each_policy(
    labelled: list[LabelledAnswer], policies: list[Policy]
) -> None:
    table = table_of(labelled)
    shown, wrong = table.count(policies)

    one_by_one = [table.outcomes(policy) for policy in policies]
    assert shown.tolist() == [int(s.sum()) for s, _ in one_by_one]
    assert wrong.tolist() == [int(w.sum()) for _, w in one_by_one]


def test_what_an_enforced_gate_kept_from_the_model_counts_as_shown_and_wrong() -> None:
    kept = LabelledAnswer("q1", "", {"verified_ratio": 0.9}, True, None)
    table = table_of([kept, make_labelled("q2", verified_ratio=0.9)])

    shown, wrong = table.outcomes(make_policy(alpha=1.0))
    assert (shown.tolist(), wrong.tolist()) == ([True, True], [True, False])
    shown, wrong = table.outcomes(make_policy(alpha=0.85))
    assert (shown.any(), wrong.any()) == (np.False_, np.False_)


def test_rows_keep_their_answers_and_groups_are_numbered_anew() -> None:
    rows = [
        make_labelled("q1", group="a"),
        make_labelled("q2", group="b", right=False),
        make_labelled("q3", group="b"),
        make_labelled("q4"),
    ]
    table = table_of(rows).at(np.array([1, 2, 3]))

    assert table.groups.tolist() == [0, 0, 1]
    assert table.wrong.tolist() == [True, False, False]


def test_a_confidence_that_nobody_could_tell_is_not_one_that_nobody_asked_for():
    rows = [
        make_labelled("q1", answer_confidence=0.7),
        make_labelled("q2", answer_confidence=0.4),
        make_labelled("q3", answer_confidence=None),
        make_labelled("q4"),
    ]
    table = table_of(rows)
    lax = make_policy(abstention=True, min_confidence=0.5)
    strict = make_policy(
        abstention=True, min_confidence=0.5, answer_without_probe=False
    )

    assert table.decide(lax).answered.tolist() == [True, False, True, False]
    assert table.decide(strict).answered.tolist() == [True, False, False, False]
    for policy in (lax, strict):
        assert table.decide(policy).unknown.tolist() == [False, False, False, True]
    assert table.decide(make_policy(min_confidence=0.5)).answered.all()
