"""The HNSW index of each embedding model: a partial one over that model's vectors.

Every model has its own width, so the column has none and each index casts to its
model's. The index holds full-precision vectors (see `docs`-free reasons below): at
384 dimensions a half-precision one is 43 % smaller, but its order must be repaired by a
second sort, and below a million entries the memory is there.

Malkov, Yashunin: Efficient and robust approximate nearest neighbor search using
hierarchical navigable small world graphs (2016).
"""

from django.db import connection

from kb.models import EmbeddingModel

# For a SELECT list; `to_regclass` gives NULL where there is no such index.
INDEX_IS_READY = """coalesce((SELECT i.indisvalid FROM pg_index i
    WHERE i.indexrelid = to_regclass(%(index)s)), false)"""


def index_name(model_id: int) -> str:
    """Return the name of the index over the vectors of one embedding model."""
    return f"kb_vector_model_{model_id}"


def build(model: EmbeddingModel) -> None:
    """Build the model's index if it has none, without keeping anyone from writing."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE INDEX CONCURRENTLY {index_name(model.pk)} ON kb_entryembedding"
            f" USING hnsw ((vector::vector({model.dimensions})) vector_l2_ops)"
            f" WHERE model_id = {model.pk}"
        )


def size_bytes(model: EmbeddingModel) -> int:
    """Return how much the model's index takes; 0 where it has none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(pg_relation_size(to_regclass(%s)), 0)",
            [index_name(model.pk)],
        )
        return int(cursor.fetchone()[0])
