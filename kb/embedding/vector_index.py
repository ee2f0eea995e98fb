"""The HNSW index of each embedding model: a partial index over that model's vectors.

Every model has its own width, so the column has none and each index casts to its
model's. Whatever it finds, the distance that decides is computed on the full-precision
vectors. The index holds full-precision vectors too: among 100,000 vectors of 384
dimensions a half-precision index found the same (recall@4 1.000 at ef_search 100 to
400) in 111 instead of 195 MiB, but was no faster to search and took 35 s instead of 22
s to build. With pgvector's default ef_construction of 64, recall@4 was 0.996 at
ef_search 200.

Malkov, Yashunin: Efficient and robust approximate nearest neighbor search using
hierarchical navigable small world graphs (2016).
"""

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from accounts.acting import as_owner
from accounts.prepared import execute
from kb.embedding.models import EmbeddingModel, EntryEmbedding

logger = logging.getLogger(__name__)

# For a SELECT list; `to_regclass` gives NULL if there is no such index.
INDEX_IS_READY = """coalesce((SELECT i.indisvalid FROM pg_index i
    WHERE i.indexrelid = to_regclass(%(index)s)), false)"""

# Up to this many visible rows all are compared: that takes as long as a filtered HNSW
# scan with the same recall (benchmarks/recall.py prints both).
EXACT_LIMIT = 20_000
# pgvector's HNSW does not support wider vectors.
_MAX_DIMENSIONS = 2_000
_LOCK = 0x6E657363  # this product's first key for advisory locks on embedding models


def index_name(model_id: int) -> str:
    return f"kb_vector_model_{model_id}"


def build_where_it_pays(model: EmbeddingModel) -> bool:
    """Build the model's index if it has many vectors; return whether it has one then.

    Reads and writes are not blocked meanwhile. What a killed build left behind is
    dropped and built again. Must not run inside a transaction.
    """
    if not pays(model):
        return is_ready(model)
    with _only_builder(model):
        if not is_ready(model):
            build(model)
    return True


def pays(model: EmbeddingModel) -> bool:
    """Return whether the model has enough vectors for an index, and can have one."""
    some = EntryEmbedding.objects.filter(model=model)[: EXACT_LIMIT + 1]
    return some.count() > EXACT_LIMIT and model.dimensions <= _MAX_DIMENSIONS


@contextmanager
def _only_builder(model: EmbeddingModel) -> Iterator[None]:
    key = [_LOCK, model.pk]
    # Polled, because the build waits for every running statement, so one that waited
    # for the build would never end.
    while not execute("SELECT pg_try_advisory_lock(%s, %s)", key)[0][0]:
        time.sleep(1)
    try:
        yield
    finally:
        execute("SELECT pg_advisory_unlock(%s, %s)", key)


def build(model: EmbeddingModel) -> None:
    drop(model)
    with _owner():
        execute(
            f"CREATE INDEX CONCURRENTLY {index_name(model.pk)} ON kb_entryembedding"
            f" USING hnsw ((vector::vector({model.dimensions})) vector_l2_ops)"
            " WITH (m = 16, ef_construction = 128)"
            f" WHERE model_id = {model.pk}"
        )
    logger.info("The vector index of %s is built.", model)


def drop(model: EmbeddingModel) -> None:
    """Drop the model's index, if it has one; must not run inside a transaction."""
    with _owner():
        execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(model.pk)}")


def _owner() -> AbstractContextManager[None]:
    return as_owner("vector indexes")


def size_bytes(model: EmbeddingModel) -> int:
    statement = "SELECT coalesce(pg_relation_size(to_regclass(%s)), 0)"
    return int(execute(statement, [index_name(model.pk)])[0][0])


def is_ready(model: EmbeddingModel) -> bool:
    name = {"index": index_name(model.pk)}
    return bool(execute(f"SELECT {INDEX_IS_READY}", name)[0][0])
