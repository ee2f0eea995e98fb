"""Half-precision vectors: kept with the others, near enough, and never what decides."""

from collections.abc import Mapping

import numpy as np
import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from accounts.prepared import execute
from kb.models import Entry, EntryEmbedding, HalfVector
from kb.search.evidence import _LOOK, look_parameters
from kb.search.sql import _ROUNDING, COMPARED, Parameter
from tests.kb.search.test_crowd import (  # noqa: F401  # a fixture
    ALL_JOINED,
    EVERYBODY,
    SETTLED,
    _uncounted_tables,
    visible_row,
)
from tests.kb.search.test_reference import (  # noqa: F401  # a fixture
    ENTRIES,
    entries,
    put,
    question_vector,
    scope_of,
    set_up,
)

pytestmark = pytest.mark.slow


def unit(values: np.ndarray) -> np.ndarray:
    return np.asarray(values / np.linalg.norm(values), dtype=np.float32)


def assert_kept() -> None:
    """Every vector has its rounded one, bit by bit as numpy rounds, and none is over."""
    halves = {half.embedding_id: half for half in HalfVector.objects.all()}
    embeddings = EntryEmbedding.objects.all()
    assert halves.keys() == {embedding.pk for embedding in embeddings}
    for embedding in embeddings:
        half = halves[embedding.pk]
        assert (half.entry_id, half.model_id) == (embedding.entry_id, embedding.model_id)  # fmt: skip
        expected = np.asarray(embedding.vector, dtype=np.float16)
        assert (np.asarray(half.half, dtype=np.float16) == expected).all()


def test_they_follow_whatever_is_written(
    entries: list[Entry],  # noqa: F811  # the fixture
):
    count = HalfVector.objects.count()
    assert count > ENTRIES
    assert_kept()
    some = list(EntryEmbedding.objects.order_by("pk")[:3])

    some[0].vector = unit(np.arange(384.0))
    some[0].save()
    assert_kept()
    some[1].vector = unit(np.arange(384.0)[::-1].copy())
    EntryEmbedding.objects.bulk_create(
        some[1:2],
        update_conflicts=True,
        unique_fields=["entry", "model", "part"],
        update_fields=["vector"],
    )
    assert_kept()
    some[2].delete()
    assert_kept()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM kb_entryembedding WHERE id = %s", [some[1].pk])
    assert_kept()
    assert HalfVector.objects.count() == count - 2


@settings(max_examples=300, deadline=None)
@given(
    *[
        arrays.arrays(
            np.float32,
            384,
            elements=st.floats(-1, 1, width=32)
            | st.floats(-(2**-20), 2**-20, width=32),
        ).filter(lambda values: np.linalg.norm(values) > 1e-3)
    ]
    * 2
)
def test_rounding_moves_a_distance_by_less_than_half_of_what_is_allowed_for(
    one: np.ndarray, other: np.ndarray
):
    one, other = unit(one), unit(other)

    exact = np.linalg.norm(one.astype(np.float64) - other)
    rounded = [values.astype(np.float16).astype(np.float64) for values in (one, other)]

    assert abs(np.linalg.norm(rounded[0] - rounded[1]) - exact) < _ROUNDING / 2


def crowd_parameters(seed: int) -> Mapping[str, Parameter]:
    parameters = look_parameters(
        question_vector(seed), "", scope=scope_of(EVERYBODY), top_k=4, exact_limit=100
    )
    return {
        **parameters,
        "few": 0,
        "looked_up": 0,
        "looked_up_share": 0,
        "pool": 5,
        "crowd": 12,
    }


def place(entries: list[Entry], seed: int, distances: np.ndarray) -> None:  # noqa: F811
    """Put each entry at a distance from the question, in a direction of its own."""
    rng = np.random.default_rng(seed)
    question = question_vector(seed).values.astype(np.float64)
    vectors = []
    for distance in rng.permutation(distances):
        aside = rng.standard_normal(384)
        aside = unit(aside - aside @ question * question)
        cosine = 1 - distance**2 / 2
        vectors.append(cosine * question + np.sqrt(1 - cosine**2) * aside)
    put(entries, np.array(vectors))


@pytest.mark.parametrize("apart", [1e-6, 5e-5, 2e-4, 1e-3, 1e-2])
def test_what_rounding_would_order_otherwise_is_found_in_the_right_order(
    entries: list[Entry],  # noqa: F811  # the fixture
    apart: float,
):
    set_up(entries, [visible_row(1.0)] * ENTRIES)
    for seed in range(4):
        place(entries, seed, 0.9 + apart * np.arange(ENTRIES))
        parameters = crowd_parameters(seed)

        found = execute(_LOOK.format(rows=COMPARED), parameters)

        assert found == execute(_LOOK.format(rows=ALL_JOINED), parameters), seed
        # The twelve nearest lie within the rounding, or far outside of it.
        is_told = bool(execute(SETTLED, parameters)[0][0])
        assert is_told == (apart * 12 > 4 * _ROUNDING), seed
