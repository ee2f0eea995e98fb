"""The threshold from own questions: what the counts allow, and no more."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qa.calibration.own_questions.choosing import (
    ENOUGH,
    KNOWN,
    LEAST,
    MADE,
    NONE,
    Kind,
    Measured,
    choose,
)
from qa.exceptions import CalibrationError

PROBABILITIES = st.floats(0, 1).map(lambda value: round(value, 2))
ROWS = st.lists(
    st.tuples(st.sampled_from(MADE), st.integers(0, 5), PROBABILITIES, st.booleans()),
    max_size=120,
)
TARGETS = st.sampled_from([0.01, 0.02, 0.05, 0.1, 0.3])


def rows_of(drawn) -> list[Measured]:
    """What was drawn; nothing but an own question can be answered rightly."""
    first = Measured(Kind.OWN, "first", 0.9, is_right=True)
    return [first] + [
        Measured(kind, str(group), chance, is_right and kind is Kind.OWN)
        for kind, group, chance, is_right in drawn
    ]


def weighted_counts(rows, threshold, unanswerable=0.5):
    """Shown and wrong at a threshold, counted one by one."""
    numbers = {kind: sum(row.kind is kind for row in rows) for kind in MADE}
    asked = numbers[Kind.OWN] + numbers[Kind.FOREIGN]
    without = [k for k in (Kind.LEFT_OUT, Kind.FOREIGN) if numbers[k]]
    share = {k: unanswerable / len(without) for k in without}
    share[Kind.OWN] = 1 - sum(share.values())
    shown = wrong = 0.0
    for row in rows:
        weight = share[row.kind] * asked / numbers[row.kind]
        if row.probability >= threshold:
            shown += weight
            wrong += weight * (not row.is_right)
    return shown, wrong


def many(right: int, left_out: list[float], foreign: int = 0) -> list[Measured]:
    """Own questions answered at 0.9, the same ones left out, foreign ones at 0."""
    return [
        *[Measured(Kind.OWN, f"d{n}", 0.9, is_right=True) for n in range(right)],
        *[Measured(Kind.LEFT_OUT, f"d{n}", p, is_right=False) for n, p in enumerate(left_out)],
        *[Measured(Kind.FOREIGN, "t", 0.0, is_right=False) for _ in range(foreign)],
    ]  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(drawn=ROWS, target=TARGETS)
def test_what_is_chosen_keeps_the_target_with_one_to_spare(drawn, target):
    rows = rows_of(drawn)
    threshold = choose(rows, target=target).threshold
    assert LEAST <= threshold <= NONE
    if threshold < NONE:
        shown, wrong = weighted_counts(rows, threshold)
        assert (wrong + 1) / (shown + 1) <= target + 1e-9


@settings(deadline=None, max_examples=40)
@given(drawn=ROWS, target=TARGETS)
def test_it_is_never_below_a_threshold_that_the_counts_break(drawn, target):
    rows = rows_of(drawn)
    threshold = choose(rows, target=target).threshold
    for higher in {row.probability for row in rows if row.probability >= threshold}:
        shown, wrong = weighted_counts(rows, higher)
        assert shown < ENOUGH + 1e-9 or wrong <= target * shown + 1e-9


@settings(deadline=None, max_examples=40)
@given(drawn=ROWS, one=TARGETS, other=TARGETS)
def test_a_stricter_target_never_has_a_lower_threshold(drawn, one, other):
    rows, (strict, lax) = rows_of(drawn), sorted((one, other))
    assert choose(rows, target=strict).threshold >= choose(rows, target=lax).threshold


@settings(deadline=None, max_examples=40)
@given(drawn=ROWS, target=TARGETS)
def test_no_lower_threshold_would_do(drawn, target):
    rows = rows_of(drawn)
    found = choose(rows, target=target)
    lower = {row.probability for row in rows} | {LEAST}
    for each in lower:
        if LEAST <= each < found.threshold:
            at_or_above = {r.probability for r in rows if r.probability >= each} | {
                each
            }
            counts = {t: weighted_counts(rows, t) for t in at_or_above}
            shown, wrong = counts[each]
            is_spare = (wrong + 1) / (shown + 1) <= target - 1e-9
            is_broken = any(
                of >= ENOUGH - 1e-9 and bad > target * of - 1e-9
                for of, bad in counts.values()
            )
            assert is_broken or not is_spare


def test_where_nothing_is_wrong_the_least_is_chosen():
    found = choose(many(60, [0.1] * 60, foreign=20), target=0.05)
    assert (found.threshold, found.shown, found.wrong) == (LEAST, 60, 0)
    assert found.is_earned
    assert found.answered_share.value == 1.0
    # None wrong of 60 documents is no proof that none is.
    assert found.wrong_share is not None
    assert found.wrong_share.interval == pytest.approx((0, 0.06), abs=0.002)


def test_it_is_no_lower_than_asked_for_and_counts_what_it_shows():
    rows = many(60, [0.1] * 60, foreign=20)
    assert choose(rows, target=0.05).threshold < 0.85
    found = choose(rows, target=0.05, least=0.85)
    assert (found.threshold, found.shown, found.wrong) == (0.85, 60, 0)
    assert choose(rows, target=0.05, least=0.97).shown == 0
    assert choose(many(10, [0.1] * 10), target=0.05, least=0.85).threshold == NONE


def test_it_keeps_the_target_also_where_it_may_be_no_lower():
    own = [0.70] * 40 + [0.95] * 20
    rows = [Measured(Kind.OWN, f"d{n}", p, is_right=True) for n, p in enumerate(own)]
    left_out = [0.95] * 4 + [0.0] * 56
    rows += [
        Measured(Kind.LEFT_OUT, f"d{n}", p, is_right=False)
        for n, p in enumerate(left_out)
    ]
    rows += [Measured(Kind.FOREIGN, "t", 0.0, is_right=False) for _ in range(75)]
    assert choose(rows, target=0.05).threshold < 0.75

    found = choose(rows, target=0.05, least=0.75)

    assert not found.is_earned


def test_what_was_left_out_and_shown_raises_it_above_itself():
    found = choose(many(60, [0.8] * 30 + [0.1] * 30), target=0.05)
    assert 0.8 < found.threshold <= 0.9
    assert found.wrong == 0


def test_where_the_verifier_is_as_sure_of_wrong_ones_none_is_earned():
    found = choose(many(60, [0.9] * 60), target=0.05)
    assert (found.threshold, found.shown, found.wrong_share) == (NONE, 0, None)
    assert found.could_be_earned
    assert not found.is_earned


def judged(right: Sequence[float], wrong: Sequence[float]) -> list[Measured]:
    rows = [(each, True) for each in right] + [(each, False) for each in wrong]
    return [
        Measured(Kind.REVIEWED, str(n), each, is_right, is_answerable=is_right)
        for n, (each, is_right) in enumerate(rows)
    ]


def test_where_none_keeps_the_target_the_safest_that_answers_is_taken_if_it_is_bearable():
    # Of the surest fifty 4 are wrong whatever the threshold; below 0.8 far more.
    right = [0.8 + 0.002 * n for n in range(96)]
    rows = judged(right, [0.99, 0.98, 0.97, 0.96, *[0.7] * 30])

    found = choose(rows, target=0.03, bearable=0.06)

    assert choose(rows, target=0.03).threshold == NONE
    assert choose(rows, target=0.03, bearable=0.04).threshold == NONE
    assert (found.threshold, found.wrong, found.shown) == (0.8, 4, 100)
    assert found.could_be_earned
    assert not found.is_earned


def test_too_few_questions_earn_nothing_and_that_is_told_apart():
    found = choose(many(10, [0.1] * 10), target=0.05)
    assert found.threshold == NONE
    assert not found.could_be_earned


def test_more_unanswerable_questions_make_it_stricter():
    rows = many(80, [0.8] * 4 + [0.1] * 76)
    assert choose(rows, target=0.05, unanswerable=0.2).threshold == LEAST
    assert choose(rows, target=0.05, unanswerable=0.8).threshold > 0.8


def test_a_threshold_is_written_with_four_places_and_shows_what_it_says():
    rows = [
        Measured(kind, row.group, 0.900_049 if row.is_right else 0.85, row.is_right)
        for row in many(60, [0.85] * 60)
        for kind in [row.kind]
    ]
    found = choose(rows, target=0.05)
    assert found.threshold == NONE or round(found.threshold, 4) == found.threshold


def test_groups_are_resampled_whole():
    spread = many(60, [0.9] + [0.1] * 59, foreign=10)
    together = [
        Measured(row.kind, str(n % 3), row.probability, row.is_right)
        for n, row in enumerate(spread)
    ]
    apart = choose(spread, target=0.1).wrong_share
    few = choose(together, target=0.1).wrong_share
    assert apart is not None
    assert few is not None
    assert apart.interval
    low, high = apart.interval
    assert 0 <= low <= apart.value <= high


def test_the_curve_goes_from_the_strictest_to_the_laxest():
    points = choose(many(60, [0.7] * 30 + [0.1] * 30), target=0.05).curve
    assert [point.threshold for point in points] == sorted(
        (point.threshold for point in points), reverse=True
    )
    assert points[-1].answered == 1.0
    assert points[-1].wrong > points[0].wrong


def test_it_needs_an_answerable_question_and_sensible_shares():
    with pytest.raises(CalibrationError, match="verify some entries"):
        choose([Measured(Kind.FOREIGN, "t", 0.1, is_right=False)], target=0.05)
    with pytest.raises(CalibrationError, match="between 0 and 1"):
        choose(many(5, [0.1]), target=0.0)


# Simulated: documents differ in how sure the verifier is of what they say.


def draw(chance: np.random.Generator, documents: int, each: int = 4) -> list[Measured]:
    rows = []
    for document in range(documents):
        shift = chance.normal(0, 0.7)
        for _ in range(each):
            own = chance.normal(2.2, 1.2) + shift
            is_right = bool(chance.random() < 0.97)
            out = chance.normal(-1.8, 1.2) + shift
            group = f"d{document}"
            rows.append(Measured(Kind.OWN, group, _chance(own), is_right))
            rows.append(Measured(Kind.LEFT_OUT, group, _chance(out), is_right=False))
    for trade in range(12):
        shift = chance.normal(0, 0.5)
        for _ in range(5):
            logit = chance.normal(-4, 1) + shift
            rows.append(Measured(Kind.FOREIGN, f"t{trade}", _chance(logit), False))
    return rows


def _chance(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))


@pytest.mark.slow
def test_on_clustered_questions_the_target_holds_on_average_and_the_interval_often():
    chance = np.random.default_rng(11)
    others = draw(chance, 4_000)
    wrong_shares, inside, answered = [], [], []
    for _ in range(60):
        found = choose(draw(chance, 60), target=0.05)
        if not found.is_earned:
            continue
        shown, wrong = weighted_counts(others, found.threshold)
        wrong_shares.append(wrong / shown)
        answered.append(found.answered_share.value)
        assert found.wrong_share is not None
        if found.wrong_share.interval:
            low, high = found.wrong_share.interval
            inside.append(low <= wrong / shown <= high)
    assert len(wrong_shares) >= 45
    assert np.mean(wrong_shares) <= 0.05
    assert np.mean(answered) > 0.5
    assert np.mean(inside) >= 0.7  # chosen on the same questions, so not quite 95 %


def test_a_few_slips_do_not_outweigh_what_is_known_of_other_knowledge_bases():
    rows = many(60, [0.87] * 6 + [0.0] * 54, foreign=20)

    assert choose(rows, target=0.05, least=0.85).threshold == 0.9
    assert choose(rows, target=0.05, least=0.85, known=KNOWN).threshold == 0.85


def test_many_slips_do_outweigh_it_and_few_questions_gain_nothing_by_it():
    hard = many(60, [0.8] * 20 + [0.0] * 40, foreign=20)
    few = many(5, [0.8] + [0.0] * 4, foreign=2)

    for rows in (hard, few):
        alone = choose(rows, target=0.05, least=0.75)
        assert choose(rows, target=0.05, least=0.75, known=KNOWN) == alone


def test_wrong_ones_near_certainty_raise_it_no_further_than_what_is_known_bears():
    rows = many(60, [0.8] * 6 + [0.94] * 4 + [0.0] * 50, foreign=20)
    sure = [replace(row, probability=0.95) if row.is_right else row for row in rows]

    assert choose(sure, target=0.05, least=0.75).threshold == 0.95
    assert choose(sure, target=0.05, least=0.75, known=KNOWN).threshold == 0.94


def test_several_questions_of_one_entry_count_as_one():
    """Or a slip of one entry, asked in three ways, looks like evidence of three."""
    once = many(60, [0.87] * 7 + [0.0] * 53, foreign=20)
    rows = [replace(each, entry=str(at)) for at, each in enumerate(once)]
    thrice = [each for each in rows for _ in range(3)]
    apart = [replace(each, entry=str(at)) for at, each in enumerate(thrice)]

    found, of_one, of_many = (
        choose(each, target=0.05, least=0.85, known=KNOWN)
        for each in (rows, thrice, apart)
    )

    for one, other in zip(found.curve, of_one.curve, strict=True):
        assert one.wrong == pytest.approx(other.wrong)
    assert found.threshold == of_one.threshold == 0.85
    assert of_many.threshold == 0.9
