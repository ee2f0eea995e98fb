"""Search equals an exact reference, computed in numpy, whoever asks and when.

Secrecy: nothing outside the scope is ever returned. Completeness: nothing inside it that
is nearer is ever missing. Held on both routes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from unittest import mock

import numpy as np
import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.acting import as_owner
from kb.embedding import vector_index
from kb.embedding.services import active_model
from kb.models import Entry, EntryEmbedding
from kb.search import nearest_excluded, related, search
from kb.types import QuestionVector, Route, Scope
from tests.examples import SHARED_FIXTURES
from tests.factories import make_audience, make_entries, make_knowledge_base, make_user

pytestmark = pytest.mark.slow

NOW = datetime(2026, 6, 1, tzinfo=UTC)
AUDIENCES = ("everyone", "board", "fraud")
STATES = tuple(Entry.State.values)
CONFIDENCES = (0.1, 0.5, 0.9)
EXPIRIES = (None, -1, 0, 1)  # days from now; 0 is the moment itself, and expired
ENTRIES = 48

both_routes = pytest.mark.parametrize("route", [Route.EXACT, Route.HNSW])


@dataclass(frozen=True)
class Row:
    """What one entry of the example is; `base` is which of two knowledge bases."""

    base: int
    audience: int
    state: str
    confidence: float
    expires: int | None


@dataclass(frozen=True)
class Asker:
    audiences: frozenset[int]
    floor: float


rows = st.builds(
    Row,
    st.sampled_from([0, 0, 0, 1]),
    st.integers(0, len(AUDIENCES) - 1),
    st.sampled_from(STATES),
    st.sampled_from(CONFIDENCES),
    st.sampled_from(EXPIRIES),
)
askers = st.builds(
    Asker,
    st.frozensets(st.integers(0, len(AUDIENCES) - 1)),
    st.sampled_from([0.1, 0.5, 0.6, 1.0]),
)


@pytest.fixture
def entries(transactional_db) -> list[Entry]:
    """Entries with vectors; what they are is set anew by each example."""
    make_audience("board", groups=["board"])
    make_audience("fraud", groups=["fraud"])
    make_knowledge_base("other")
    made = make_entries([f"Rule number {at} holds for cards." for at in range(ENTRIES)])
    rng = np.random.default_rng(5)
    put(made, rng.standard_normal((ENTRIES, 384)))
    add_parts(made[::3], 2, rng)
    vector_index.build(active_model())
    return list(made)


def put(some: Sequence[Entry], vectors: np.ndarray) -> None:
    """Give each entry another vector, of unit length, for all of its parts so far."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    at = {entry.pk: number for number, entry in enumerate(some)}
    rows = list(EntryEmbedding.objects.filter(entry__in=some))
    for row in rows:
        row.vector = units[at[row.entry_id]]
    EntryEmbedding.objects.bulk_update(rows, ["vector"])


def add_parts(some: Sequence[Entry], part: int, rng: np.random.Generator) -> None:
    vectors = rng.standard_normal((len(some), 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    EntryEmbedding.objects.bulk_create(
        EntryEmbedding(entry=entry, model=active_model(), part=part, vector=vector)
        for entry, vector in zip(some, vectors, strict=True)
    )


def set_up(entries: list[Entry], shape: list[Row]) -> None:
    verifier = make_user()
    audiences = [make_audience(slug) for slug in AUDIENCES]
    bases = [make_knowledge_base(), make_knowledge_base("other")]
    written = []
    for entry, row in zip(entries, shape, strict=True):
        is_verified = row.state == Entry.State.VERIFIED
        written.append(
            (
                entry.pk,
                bases[row.base].pk,
                audiences[row.audience].pk,
                row.state,
                1.0 if is_verified else row.confidence,
                verifier.pk if is_verified else None,
                NOW if is_verified else None,
                None if row.expires is None else NOW + timedelta(days=row.expires),
            )
        )
    # Nowhere else does an entry leave its knowledge base.
    with may_move(), connection.cursor() as cursor:
        cursor.execute(_SET_UP, [list(values) for values in zip(*written, strict=True)])


_SET_UP = """
UPDATE kb_entry e SET
    knowledge_base_id = new.base, audience_id = new.audience, state = new.state,
    confidence = new.confidence, verified_by_id = new.verifier,
    verified_at = new.verified, valid_until = new.expires
FROM unnest(
    %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::float8[], %s::bigint[],
    %s::timestamptz[], %s::timestamptz[]
) AS new(entry, base, audience, state, confidence, verifier, verified, expires)
WHERE e.id = new.entry
"""


@contextmanager
def may_move() -> Iterator[None]:
    """Let entries change their knowledge base meanwhile."""
    for switched in ("DISABLE", "ENABLE"):
        with as_owner("tests"), connection.cursor() as cursor:
            # A table whose triggers wait for the transaction's end can't be altered.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
            cursor.execute(f"ALTER TABLE kb_entry {switched} TRIGGER kb_entry_no_move")
        if switched == "DISABLE":
            yield


def is_visible(row: Row, asker: Asker) -> bool:
    return row.base == 0 and cause_of(row, asker) == "visible"


def cause_of(row: Row, asker: Asker) -> str | None:
    """Why the entry may not be evidence, in the documented precedence."""
    if row.base != 0 or row.state in ("draft", "retired", "proposed"):
        return None
    if row.audience not in asker.audiences:
        return "not_entitled"
    if row.expires is not None and row.expires <= 0:
        return "expired"
    if row.state != "verified" and row.confidence < asker.floor:
        return "unverified"
    return "visible"


def confidence_of(row: Row) -> float:
    return 1.0 if row.state == "verified" else row.confidence


def distances(entries: list[Entry], question: np.ndarray) -> np.ndarray:
    """Return the least distance of what each entry says."""
    rows = EntryEmbedding.objects.filter(entry__in=entries, part__gt=0)
    least = dict.fromkeys((entry.pk for entry in entries), np.inf)
    for pk, vector in rows.values_list("entry_id", "vector"):
        least[pk] = min(least[pk], float(np.linalg.norm(vector - question)))
    return np.array(list(least.values()))


def scope_of(asker: Asker) -> Scope:
    ids = tuple(make_audience(AUDIENCES[at]).pk for at in sorted(asker.audiences))
    return Scope(make_knowledge_base().pk, ids, asker.floor, NOW)


def question_vector(seed: int) -> QuestionVector:
    values = np.random.default_rng(seed).standard_normal(384).astype(np.float32)
    values /= np.linalg.norm(values)
    model = active_model()
    return QuestionVector("", values, model.pk, model.fingerprint, 0.0)


@both_routes
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=SHARED_FIXTURES,
)
@given(
    shape=st.lists(rows, min_size=ENTRIES, max_size=ENTRIES),
    asker=askers,
    seed=st.integers(0, 2**32 - 1),
    words=st.sampled_from(["", "rule cards", "number 7 13 21"]),
)
def test_search_equals_the_reference(entries, route, shape, asker, seed, words):
    set_up(entries, shape)
    vector = question_vector(seed)
    visible = [at for at, row in enumerate(shape) if is_visible(row, asker)]
    expected = distances(entries, vector.values)
    limit = 0 if route is Route.HNSW and visible else ENTRIES

    found = search(
        vector,
        words,
        scope=scope_of(asker),
        top_k=ENTRIES,
        deep=True,
        exact_limit=limit,
    )

    by_entry = {hit.entry_id: hit for hit in found.hits}
    assert set(by_entry) == {entries[at].pk for at in visible}
    for at in visible:
        hit = by_entry[entries[at].pk]
        assert hit.distance == pytest.approx(float(expected[at]), abs=1e-5)
        assert hit.confidence == confidence_of(shape[at])
        assert hit.is_verified == (shape[at].state == "verified")
    nearest_first = sorted(found.hits, key=lambda hit: hit.vector_rank or 0)
    assert [hit.distance for hit in nearest_first] == sorted(
        hit.distance for hit in found.hits
    )
    if visible:
        assert found.route is route
    assert found.visible == min(len(visible), limit)


@both_routes
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=SHARED_FIXTURES,
)
@given(
    shape=st.lists(rows, min_size=ENTRIES, max_size=ENTRIES),
    asker=askers,
    seed=st.integers(0, 2**32 - 1),
)
def test_four_hits_hold_the_nearest_and_the_one_that_decides(
    entries, route, shape, asker, seed
):
    set_up(entries, shape)
    vector = question_vector(seed)
    visible = [at for at, row in enumerate(shape) if is_visible(row, asker)]
    measured = distances(entries, vector.values)
    limit = 0 if route is Route.HNSW else ENTRIES

    found = search(
        vector, "", scope=scope_of(asker), top_k=4, deep=True, exact_limit=limit
    )

    ids = [hit.entry_id for hit in found.hits]
    assert len(ids) == len(set(ids)) == min(4, len(visible))
    nearest = sorted(visible, key=lambda at: measured[at])
    assert ids[:3] == [entries[at].pk for at in nearest[:3]]
    ratios = [float(measured[at]) / confidence_of(shape[at]) for at in visible]
    least = min((hit.distance / hit.confidence for hit in found.hits), default=None)
    assert least == pytest.approx(min(ratios, default=None), abs=1e-4)


@pytest.mark.parametrize("compared", [4_000, 2])  # of more of a cause the index finds
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=SHARED_FIXTURES,
)
@given(
    shape=st.lists(rows, min_size=ENTRIES, max_size=ENTRIES),
    asker=askers,
    seed=st.integers(0, 2**32 - 1),
)
def test_the_nearest_excluded_equal_the_reference(
    entries, compared, shape, asker, seed
):
    set_up(entries, shape)
    vector = question_vector(seed)
    measured = distances(entries, vector.values)
    expected: dict[str, int] = {}

    def without_cause(at: int) -> float:
        if cause_of(shape[at], asker) == "unverified":
            return float(measured[at])
        return float(measured[at]) / confidence_of(shape[at])

    for at in range(ENTRIES):
        cause = cause_of(shape[at], asker)
        if cause not in (None, "visible"):
            found_first = expected.setdefault(str(cause), at)
            if without_cause(at) < without_cause(found_first):
                expected[str(cause)] = at

    with mock.patch.object(related, "_COMPARED", compared):
        found = nearest_excluded(vector, scope=scope_of(asker))

    assert {one.cause.value for one in found} == set(expected)
    for one in found:
        at = expected[one.cause.value]
        assert one.distance == pytest.approx(float(measured[at]), abs=1e-5)
        assert one.confidence == confidence_of(shape[at])


@pytest.mark.django_db(transaction=True)
def test_a_vector_that_is_not_of_unit_length_is_refused_by_the_database(entries):
    from django.db import IntegrityError

    with pytest.raises(IntegrityError, match="entry_embedding_is_unit"):
        EntryEmbedding.objects.filter(entry=entries[0]).update(vector=np.ones(384))
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
