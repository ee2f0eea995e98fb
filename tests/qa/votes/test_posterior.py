"""Votes move a confidence within bounds, and a ring of five moves nothing."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.votes.entry_confidence import RULE, Rating, Rule, Weighed
from qa.votes.entry_confidence import weigh as weigh_at

NOW = datetime(2026, 11, 22, tzinfo=UTC)
RING = range(1_000, 1_000 + RULE.trimmed)

priors = st.floats(0.02, 0.98)
RATERS = st.integers(0, 30)
ages = st.floats(0, 1_000)


def weigh(prior, given, *, at, rule: Rule = RULE) -> Weighed:
    """Weigh at a desk so large that as many are trimmed as ever are."""
    return weigh_at(prior, given, at=at, voters=25, rule=rule)


def votes(raters, *, is_up, days=0.0, times=1):
    at = NOW - timedelta(days=days)
    return [Rating(rater, is_up, at) for rater in raters for _ in range(times)]


@st.composite
def ratings(draw, raters=RATERS, max_size=60):
    rows = st.tuples(raters, st.booleans(), ages)
    found = draw(st.lists(rows, max_size=max_size))
    return [Rating(r, up, NOW - timedelta(days=days)) for r, up, days in found]


def test_without_votes_the_prior_stands():
    assert weigh(0.42, [], at=NOW).confidence == 0.42


@pytest.mark.parametrize("prior", [0.0, 1.0, float("nan")])
def test_what_is_certain_has_no_posterior(prior):
    with pytest.raises(ValueError, match="prior"):
        weigh(prior, [], at=NOW)


@given(priors, ratings())
def test_it_stays_within_its_bounds(prior, given_ratings):
    found = weigh(prior, given_ratings, at=NOW).confidence

    assert abs(found - prior) <= RULE.span + 1e-12
    assert min(prior, RULE.floor) <= found <= max(prior, RULE.ceiling)


@given(priors, ratings(raters=st.sampled_from(RING), max_size=200))
def test_a_ring_of_five_moves_nothing_whatever_it_does(prior, given_ratings):
    assert weigh(prior, given_ratings, at=NOW).confidence == pytest.approx(prior)


@given(priors, st.integers(0, 40), st.booleans(), ratings(raters=st.sampled_from(RING)))
def test_a_ring_of_five_undoes_nothing_that_all_others_agree_on(
    prior, honest, is_up, poison
):
    said = votes(range(honest), is_up=is_up)
    against = [r for r in poison if r.is_up != is_up]

    with_ring = weigh(prior, said + against, at=NOW).confidence

    assert with_ring == pytest.approx(weigh(prior, said, at=NOW).confidence)


@given(priors, ratings(), ratings(raters=st.sampled_from(RING)))
def test_a_ring_of_five_weighs_at_most_five_votes(prior, honest, poison):
    alone = weigh(prior, honest, at=NOW)
    together = weigh(prior, honest + poison, at=NOW)

    assert abs(together.up - alone.up) <= RULE.trimmed + 1e-9
    assert abs(together.down - alone.down) <= RULE.trimmed + 1e-9


@given(priors, st.integers(1, 500))
def test_one_rater_counts_once_however_often_he_votes(prior, times):
    crowd = votes(range(12), is_up=True)
    once = weigh(prior, [*crowd, *votes([99], is_up=True)], at=NOW)
    often = weigh(prior, [*crowd, *votes([99], is_up=True, times=times)], at=NOW)

    assert often == once


@given(priors, ratings(), st.randoms())
def test_the_order_of_votes_changes_nothing(prior, given_ratings, random):
    shuffled = list(given_ratings)
    random.shuffle(shuffled)

    assert weigh(prior, shuffled, at=NOW) == weigh(prior, given_ratings, at=NOW)


@given(priors, ratings(), st.integers(31, 60))
def test_one_more_thumb_up_never_lowers_it(prior, given_ratings, rater):
    before = weigh(prior, given_ratings, at=NOW).confidence
    after = weigh(prior, [*given_ratings, Rating(rater, True, NOW)], at=NOW).confidence

    assert after >= before - 1e-12


def test_many_raters_do_move_it():
    assert weigh(0.4, votes(range(15), is_up=True), at=NOW).confidence == pytest.approx(
        0.6
    )
    assert weigh(
        0.4, votes(range(15), is_up=False), at=NOW
    ).confidence == pytest.approx(0.2)


def test_votes_fade():
    said = votes(range(9), is_up=True)
    later = weigh(0.4, said, at=NOW + RULE.half_life)

    assert weigh(0.4, said, at=NOW).up == pytest.approx(4.0)
    assert later.up == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("voters", "trimmed"), [(0, 1), (1, 1), (5, 1), (6, 2), (20, 4), (25, 5), (900, 5)]
)
def test_a_fifth_of_the_voters_is_trimmed_and_at_most_five(voters, trimmed):
    assert RULE.trimmed_of(voters) == trimmed


@given(st.floats(0.1, 0.9), st.booleans())
def test_at_a_desk_of_four_one_moves_nothing_and_two_do(prior, is_up):
    alone, both = votes(range(1), is_up=is_up), votes(range(2), is_up=is_up)

    assert weigh_at(prior, alone, at=NOW, voters=4).confidence == pytest.approx(prior)
    moved = weigh_at(prior, both, at=NOW, voters=4).confidence
    assert (moved > prior) is is_up
    assert abs(moved - prior) <= RULE.span
