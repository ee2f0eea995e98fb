"""The HNSW index of each embedding model: a partial one over that model's vectors."""

# NULL parameters never reach it: `to_regclass` gives NULL for an index that is not there.
INDEX_IS_READY = """coalesce((SELECT i.indisvalid FROM pg_index i
    WHERE i.indexrelid = to_regclass(%(index)s)), false)"""


def index_name(model_id: int) -> str:
    """Return the name of the index over the vectors of one embedding model."""
    return f"kb_vector_model_{model_id}"
