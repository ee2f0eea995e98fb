"""A least known probability from a stated risk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.calibration.adaptive_thresholds import min_known_table, propose_min_known
from qa.calibration.thresholds.values import upper_bounds

_rows = st.lists(
    st.tuples(st.none() | st.floats(0, 1), st.booleans()), min_size=1, max_size=60
)


@given(_rows, st.floats(0, 1), st.floats(0.01, 0.5))
def test_what_is_proposed_keeps_the_risk(rows, risk, delta):
    known_probability, right = [s for s, _ in rows], [r for _, r in rows]

    proposal = propose_min_known(known_probability, right, risk=risk, delta=delta)

    for one in (proposal.seen, proposal.guaranteed):
        if one is not None:
            shown = [r for s, r in rows if s is not None and s >= one.min_known]
            wrong = shown.count(False)
            assert wrong / len(shown) == pytest.approx(one.risk)
            assert len(shown) / len(rows) == pytest.approx(one.coverage)
            assert one.risk <= risk
    if proposal.guaranteed is not None:
        assert proposal.guaranteed.bound <= risk
        assert proposal.guaranteed.risk <= proposal.guaranteed.bound
        assert proposal.seen is not None


def test_a_clear_signal_earns_a_threshold_and_noise_none():
    clear = [n / 1000 for n in range(1000)]
    right = [n >= 500 for n in range(1000)]

    proposal = propose_min_known(clear, right, risk=0.1, delta=0.1)

    assert proposal.seen is not None
    assert proposal.guaranteed is not None
    assert proposal.seen.coverage == pytest.approx(0.555, abs=0.001)
    assert 0.5 <= proposal.guaranteed.coverage < proposal.seen.coverage
    noise = propose_min_known(
        clear, [n % 2 == 0 for n in range(1000)], risk=0.1, delta=0.1
    )
    assert noise.guaranteed is None


def test_the_bound_is_clopper_pearsons_at_the_steps_level():
    proposal = propose_min_known([0.5] * 40, [True] * 40, risk=0.1, delta=0.1)

    (one,) = proposal.curve
    assert one.bound == pytest.approx(float(upper_bounds(0, 40, 0.1)))


def test_questions_of_a_few_groups_earn_less_than_as_many_drawn_one_by_one():
    known = [n / 200 for n in range(200)]
    right = [True] * 200
    alone = propose_min_known(known, right, risk=0.05, delta=0.1)

    few = propose_min_known(
        known, right, risk=0.05, delta=0.1, groups=[f"g{n % 4}" for n in range(200)]
    )
    own = propose_min_known(known, right, risk=0.05, delta=0.1, groups=[""] * 200)

    assert alone.guaranteed is not None
    assert own == alone
    # Four groups may all be lucky: what 200 single questions prove, they do not.
    assert few.guaranteed is None
    assert min(one.bound for one in few.curve) > 0.05
    assert few.seen is not None


@pytest.mark.parametrize(("risk", "delta"), [(-0.1, 0.1), (0.1, 0.0), (0.1, 1.0)])
def test_impossible_risks_are_refused(risk, delta):
    with pytest.raises(ValueError, match="is not in"):
        propose_min_known([0.5], [True], risk=risk, delta=delta)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_threshold_is_printed_in_full(known_probability):
    proposal = propose_min_known(
        known_probability, [True] * len(known_probability), risk=1.0, delta=0.1
    )

    table = min_known_table(proposal)

    # What is printed lets pass what the bound counted, no question more and none less.
    guaranteed = next(row for row in table.rows if row[0] == "guaranteed")
    assert proposal.guaranteed is not None
    assert float(guaranteed[1]) == proposal.guaranteed.min_known
