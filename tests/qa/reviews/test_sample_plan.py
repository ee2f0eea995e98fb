"""A sample spends the hours it was given, and sees what is rare."""

from datetime import date
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from qa.reviews.sample_plan import Cell, allocate, plan_sample, size_for

POPULATIONS = st.lists(st.integers(1, 500), min_size=1, max_size=40)
CELLS = st.builds(
    Cell,
    outcome=st.sampled_from(["answered", "refused"]),
    vote=st.sampled_from(["up", "down", "none"]),
    product_line_id=st.sampled_from([None, 1, 2]),
    period=st.sampled_from([date(2026, 1, day) for day in range(1, 20)]),
)


@given(POPULATIONS, st.integers(0, 2000), st.integers(1, 5))
def test_exactly_as_many_are_drawn_as_wanted_or_all(populations, size, least):
    drawn = allocate(populations, size, least=least)

    assert sum(drawn) == min(size, sum(populations))
    assert all(0 <= one <= of for one, of in zip(drawn, populations, strict=True))


@given(POPULATIONS, st.integers(200, 2000), st.integers(1, 5))
def test_every_stratum_gets_its_least_share(populations, size, least):
    drawn = allocate(populations, size, least=least)

    for one, of in zip(drawn, populations, strict=True):
        assert one >= min(least, of)


@given(POPULATIONS, st.integers(0, 2000))
def test_more_of_a_larger_stratum_are_drawn(populations, size):
    drawn = allocate(populations, size)

    in_order = [one for _, one in sorted(zip(populations, drawn, strict=True))]
    assert all(b >= a - 1 for a, b in pairwise(in_order))


@given(POPULATIONS, st.integers(0, 2000), st.data())
def test_spreads_change_who_is_drawn_and_not_how_many(populations, size, data):
    spreads = data.draw(
        st.lists(
            st.sampled_from([1.0, 3.0]),
            min_size=len(populations),
            max_size=len(populations),
        )
    )
    drawn = allocate(populations, size, spreads=spreads)

    assert sum(drawn) == min(size, sum(populations))
    assert all(0 <= one <= of for one, of in zip(drawn, populations, strict=True))


def test_close_strata_get_three_times_as_many():
    assert allocate([1000, 1000], 40, least=0, spreads=[3.0, 1.0]) == [30, 10]


@given(st.dictionaries(CELLS, st.integers(1, 50), min_size=1), st.integers(1, 300))
def test_a_plan_keeps_as_many_dimensions_as_it_can_fill(counts, size):
    plan = plan_sample(counts, size)

    total = sum(counts.values())
    assert sum(plan.drawn.values()) == min(size, total)
    assert all(cell == cell.along(plan.dimensions) for cell in plan.drawn)
    if plan.dimensions and total >= size:
        assert all(plan.drawn.values())


def test_days_are_given_up_before_votes():
    counts = {
        Cell("answered", "", vote, period=date(2026, 1, day)): 10
        for vote in ("up", "down", "none")
        for day in range(1, 29)
    }

    assert "period" in plan_sample(counts, 200).dimensions
    assert plan_sample(counts, 20).dimensions[:3] == ("certainty", "outcome", "vote")
    assert "period" not in plan_sample(counts, 20).dimensions
    assert plan_sample(counts, 1).dimensions == ()


def test_what_is_rare_is_seen():
    rare = Cell("answered", vote="down")
    counts = {Cell("answered", vote="none"): 100_000, rare: 3}

    assert plan_sample(counts, 30).drawn[rare] == 2


@given(st.floats(0.1, 40), st.floats(0.5, 30), st.floats(0, 1))
def test_the_hours_suffice(hours, minutes, share):
    size = size_for(hours, minutes, share)

    assert size == 1 or size * (1 + share) * minutes <= hours * 60 * (1 + 1e-6)


def test_an_hour_of_four_minutes_each_is_fifteen_reviews():
    assert size_for(1, 4, 0) == 15
    assert size_for(1, 4, 0.25) == 12
