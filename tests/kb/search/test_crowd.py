"""Looking at the crowd around a question first changes nothing that a look returns."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.prepared import execute
from kb.models import Entry, EntryEmbedding
from kb.search.evidence import _LOOK, look_parameters
from kb.search.sql import COMPARED, MEASURED, VISIBLE
from tests.examples import SHARED_FIXTURES
from tests.kb.search.test_reference import (  # noqa: F401  # a fixture
    ENTRIES,
    Asker,
    Row,
    add_parts,
    askers,
    distances,
    entries,
    question_vector,
    rows,
    scope_of,
    set_up,
)

pytestmark = pytest.mark.slow

# Every visible entry measured and joined: slow, and plainly right.
ALL_JOINED = f"""
head AS MATERIALIZED (
    SELECT count(*) AS visible, true AS is_within FROM kb_entry e WHERE {VISIBLE}
),
near AS MATERIALIZED (
    SELECT e.id, e.confidence, {MEASURED}
    FROM kb_entry e JOIN kb_entryembedding v ON v.entry_id = e.id
    WHERE v.model_id = %(model)s AND {VISIBLE} GROUP BY e.id
)
"""
SETTLED = f"""
WITH question AS MATERIALIZED (SELECT %(vector)s::vector AS vector), {COMPARED}
SELECT is_settled FROM settled
"""
EVERYBODY = Asker(frozenset({0, 1, 2}), 0.1)
POOL, CROWD = 5, 12


@pytest.fixture(autouse=True)
def _uncounted_tables(db: None):
    """Let both tables be as never analysed, so that the crowd is of CROWD vectors.

    What autovacuum has counted of other tests' rows by now would widen it.
    """
    execute(
        "UPDATE pg_class SET reltuples = -1"
        " WHERE oid IN ('kb_halfvector'::regclass, 'kb_entry'::regclass) RETURNING 1"
    )


def crowd_parameters(asker: Asker, seed: int, words: str = "") -> dict[str, Any]:
    parameters = look_parameters(
        question_vector(seed), words, scope=scope_of(asker), top_k=4, exact_limit=100
    )
    return {
        **parameters,
        "few": 0,
        "looked_up": 0,
        "looked_up_share": 0,
        "pool": POOL,
        "crowd": CROWD,
    }


def is_settled(parameters: dict[str, Any]) -> bool:
    return bool(execute(SETTLED, parameters)[0][0])


def visible_row(confidence: float) -> Row:
    state = "verified" if confidence == 1.0 else "in_review"
    return Row(0, 0, state, confidence, None)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=SHARED_FIXTURES,
)
@given(
    shape=st.one_of(
        st.lists(rows, min_size=ENTRIES, max_size=ENTRIES),
        st.lists(
            st.sampled_from([1.0, 0.9, 0.1]).map(visible_row),
            min_size=ENTRIES,
            max_size=ENTRIES,
        ),
    ),
    asker=askers,
    seed=st.integers(0, 2**32 - 1),
    words=st.sampled_from(["", "rule cards", "number 7 13 21"]),
)
@pytest.mark.parametrize("has_places", [False, True])
def test_the_crowd_first_finds_what_joining_all_finds(
    entries: list[Entry],  # noqa: F811  # the fixture
    shape: list[Row],
    asker: Asker,
    seed: int,
    words: str,
    has_places: bool,
):
    set_up(entries, shape)
    if has_places and not EntryEmbedding.objects.filter(part=0).exists():
        add_parts(entries[::2], 0, np.random.default_rng(6))
    parameters = crowd_parameters(asker, seed, words)

    found = execute(_LOOK.format(rows=COMPARED), parameters)

    assert found == execute(_LOOK.format(rows=ALL_JOINED), parameters)


@pytest.mark.parametrize("confidence", [1.0, 0.5])
def test_where_all_are_equally_sure_the_crowd_settles_it(
    entries: list[Entry],  # noqa: F811  # the fixture
    confidence: float,
):
    set_up(entries, [visible_row(confidence)] * ENTRIES)

    assert is_settled(crowd_parameters(EVERYBODY, 1))


def test_a_sure_entry_outside_an_unsure_crowd_is_not_missed(
    entries: list[Entry],  # noqa: F811  # the fixture
):
    parameters = crowd_parameters(EVERYBODY, 1)
    question = question_vector(1).values
    far = entries[int(distances(entries, question).argmax())]
    set_up(entries, [visible_row(1.0 if e == far else 0.1) for e in entries])

    found = execute(_LOOK.format(rows=COMPARED), parameters)

    assert not is_settled(parameters)
    assert far.pk in [row[3] for row in found]


def test_a_crowd_that_the_asker_may_not_see_settles_nothing(
    entries: list[Entry],  # noqa: F811  # the fixture
):
    shape = [Row(0, 0 if at % 6 == 0 else 1, "verified", 1, None) for at in range(ENTRIES)]  # fmt: skip
    set_up(entries, shape)
    parameters = crowd_parameters(Asker(frozenset({0}), 0.5), 1)

    found = execute(_LOOK.format(rows=COMPARED), parameters)

    assert not is_settled(parameters)
    assert found[0][0] == ENTRIES / 6
    assert {row[3] for row in found} <= {entry.pk for entry in entries[::6]}
    assert len(found) == 4


def test_of_more_than_may_be_compared_none_is_measured(
    entries: list[Entry],  # noqa: F811  # the fixture
):
    set_up(entries, [visible_row(1.0)] * ENTRIES)
    parameters = {
        **look_parameters(
            question_vector(1), "", scope=scope_of(EVERYBODY), top_k=4, exact_limit=10
        ),
        "looked_up_share": 1,
    }
    measured = f"""
    WITH question AS MATERIALIZED (SELECT %(vector)s::vector AS vector), {COMPARED}
    SELECT (SELECT is_within FROM head), (SELECT count(*) FROM near)
    """

    assert execute(measured, parameters) == [(False, 0)]
