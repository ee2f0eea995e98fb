"""Accuracy against retrieval rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.cbdr.timing.curve import retrieval_curve, retrieves, sent_at, timing

# Four questions, the least sure first: retrieving mends the first two, spoils the last.
KNOWN_PROBABILITY = [0.1, 0.2, 0.6, 0.9]
ALONE = [False, False, True, True]
RETRIEVING = [True, True, True, False]


def test_every_threshold_is_one_point_from_never_to_always():
    curve = retrieval_curve(KNOWN_PROBABILITY, ALONE, RETRIEVING)

    assert curve.rate == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert curve.accuracy == (0.5, 0.75, 1.0, 1.0, 0.75)
    assert curve.threshold == (0.1, 0.2, 0.6, 0.9, None)


def test_the_cheapest_of_the_best_points_is_chosen():
    curve = retrieval_curve(KNOWN_PROBABILITY, ALONE, RETRIEVING)

    assert curve.cheapest(within=0.0) == 2
    assert curve.cheapest(within=0.25) == 1
    assert curve.cheapest(within=1.0) == 0


def test_equal_known_probability_is_one_step_and_what_cannot_be_told_the_first():
    curve = retrieval_curve([0.5, None, 0.5], [True, False, False], [True] * 3)

    assert curve.rate == pytest.approx((0, 1 / 3, 1))
    assert curve.accuracy == pytest.approx((1 / 3, 2 / 3, 1))
    assert curve.threshold == (-np.inf, 0.5, None)


def test_the_area_is_that_of_the_lines_between_the_points():
    ranked = timing(KNOWN_PROBABILITY, ALONE, RETRIEVING)

    # Trapezia over quarters: (.5+.75)/2, (.75+1)/2, 1, (1+.75)/2.
    assert ranked.area(np.ones((1, 4)))[0] == pytest.approx(0.84375)


rows = st.lists(
    st.tuples(
        st.none() | st.sampled_from([0.0, 0.3, 0.7]), st.booleans(), st.booleans()
    ),
    min_size=1,
    max_size=30,
)


@given(rows)
def test_a_curve_ends_where_never_and_always_stand(questions):
    known_probability, alone, retrieving = map(list, zip(*questions, strict=True))

    curve = retrieval_curve(known_probability, alone, retrieving)

    assert curve.accuracy[0] == pytest.approx(sum(alone) / len(alone))
    assert curve.accuracy[-1] == pytest.approx(sum(retrieving) / len(retrieving))
    assert list(curve.rate) == sorted(set(curve.rate))


@given(rows)
def test_a_threshold_replayed_gives_its_own_point(questions):
    known_probability, alone, retrieving = map(list, zip(*questions, strict=True))
    curve = retrieval_curve(known_probability, alone, retrieving)

    for rate, accuracy, threshold in zip(
        curve.rate, curve.accuracy, curve.threshold, strict=True
    ):
        sent = [retrieves(value, threshold) for value in known_probability]
        right = [b if s else a for s, a, b in zip(sent, alone, retrieving, strict=True)]
        assert sum(sent) / len(sent) == pytest.approx(rate)
        assert sum(right) / len(right) == pytest.approx(accuracy)


@given(rows, st.integers(1, 3))
def test_an_area_counts_a_question_as_often_as_it_is_drawn(questions, times):
    repeated = [row for row in questions for _ in range(times)]

    once = timing(*map(list, zip(*questions, strict=True)))
    often = timing(*map(list, zip(*repeated, strict=True)))

    weights = np.full((1, len(questions)), float(times))
    ones = np.ones((1, len(repeated)))
    assert once.area(weights)[0] == pytest.approx(often.area(ones)[0])


@given(rows, st.floats(0, 1))
def test_an_exact_share_is_sent_and_the_least_sure_of_all(questions, rate):
    known_probability = [row[0] for row in questions]
    ids = [f"q{number}" for number in range(len(questions))]

    sent = sent_at(known_probability, rate, ids)

    told = [-1.0 if value is None else value for value in known_probability]
    inside = [v for v, is_sent in zip(told, sent, strict=True) if is_sent]
    outside = [v for v, is_sent in zip(told, sent, strict=True) if not is_sent]
    assert sum(sent) == round(rate * len(known_probability))
    assert not inside or not outside or max(inside) <= min(outside)


def test_lots_decide_between_the_equally_sure():
    ids = [f"q{number}" for number in range(200)]

    sent = sent_at([0.5] * 200, 0.5, ids)

    assert sum(sent) == 100
    assert 30 < sum(sent[:100]) < 70  # by their order it would be 100


@pytest.mark.parametrize("known_probability", [[], [0.1]])
def test_nothing_and_unequal_lengths_make_no_curve(known_probability):
    with pytest.raises(ValueError, match="do not make a curve"):
        timing(known_probability, [True] * len(known_probability), [])
