from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from qa.evaluation.cases import Case, sample


def cases_of(answerable, others):
    """Cases in groups of the given sizes, and `others` that are each a group alone."""
    rows = [
        Case(id=f"{group}-{number}", question="?", is_answerable=True, group=str(group))
        for group, size in enumerate(answerable)
        for number in range(size)
    ]
    return rows + [
        Case(id=f"out-{number}", question="?", is_answerable=False, group=f"o{number}")
        for number in range(others)
    ]


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.integers(0, 60),
    st.integers(0, 200),
    st.integers(0, 3),
)
def test_every_stratum_has_its_share(sizes, others, limit, seed):
    cases = cases_of(sizes, others)

    drawn = sample(cases, limit, seed=seed)

    assert len(drawn) == min(limit, len(cases))
    assert len({case.id for case in drawn}) == len(drawn)
    undue = sum(not case.is_answerable for case in drawn)
    assert abs(undue - len(drawn) * others / len(cases)) < 1
    due = len(drawn) - undue
    counted = Counter(case.group for case in drawn if case.is_answerable)
    for group, size in enumerate(sizes):
        assert abs(counted[str(group)] - due * size / sum(sizes)) < 1


def test_groups_of_one_take_their_turn_beside_large_ones():
    drawn = sample(cases_of([30] * 150, 1000), 400, seed=0)

    assert sum(not case.is_answerable for case in drawn) == 73


@given(st.integers(0, 20), st.integers(0, 3))
def test_the_same_seed_draws_the_same(limit, seed):
    cases = cases_of([5, 9], 8)

    drawn = sample(cases, limit, seed=seed)

    assert drawn == sample(list(reversed(cases)), limit, seed=seed)
