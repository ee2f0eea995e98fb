"""The vectors of entries, written in the transaction that writes the entries."""

from collections.abc import Sequence

from kb.embedder import embedder_of
from kb.embedding import embedding_text, text_sha256
from kb.models import EmbeddingModel, Entry, EntryEmbedding


def write_vectors(entries: Sequence[Entry], *, model: EmbeddingModel) -> None:
    """Embed `entries` under `model`.

    What other models made of an older text stays; its digest tells that it is stale.

    Args:
        model: The active one, locked for share.

    Raises:
        EmbedderUnavailableError: The model cannot be loaded.
    """
    texts = [embedding_text(entry) for entry in entries]
    vectors = embedder_of(model).encode(texts)
    EntryEmbedding.objects.bulk_create(
        [
            EntryEmbedding(
                entry=entry,
                model=model,
                vector=vector,
                text_sha256=text_sha256(text),
            )
            for entry, text, vector in zip(entries, texts, vectors, strict=True)
        ],
        batch_size=500,
        update_conflicts=True,
        unique_fields=["entry", "model"],
        update_fields=["vector", "text_sha256"],
    )
