"""The vectors of entries, written in the transaction that writes the entries."""

import hashlib
from collections.abc import Sequence

from kb.embedding import active_model, embedding_text, load_embedder
from kb.exceptions import EmbeddingModelBusyError
from kb.models import EmbeddingModel, Entry, EntryEmbedding

_ATTEMPTS = 5


def lock_active_model() -> EmbeddingModel:
    """Return the active embedding model, which stays active until the transaction ends.

    A switch that commits while this waits leaves the waiter with no row (the one it
    waited for is no longer active, the new one is younger than the statement), so it
    looks again.

    Raises:
        EmbeddingModelBusyError: Switches followed each other too fast.
    """
    active_model()  # registers the configured one where there is none
    for _ in range(_ATTEMPTS):
        found = EmbeddingModel.objects.raw(
            "SELECT * FROM kb_embeddingmodel WHERE state = 'active' FOR SHARE"
        )
        for model in found:
            return model
    raise EmbeddingModelBusyError(
        "The embedding model is being switched; try again in a moment."
    )


def write_vectors(entries: Sequence[Entry], *, model: EmbeddingModel) -> None:
    """Embed `entries` under `model` and drop what other models made of older texts."""
    texts = [embedding_text(entry) for entry in entries]
    vectors = load_embedder(model.name).encode(texts)
    EntryEmbedding.objects.bulk_create(
        [
            EntryEmbedding(
                entry=entry,
                model=model,
                vector=vector,
                text_sha256=hashlib.sha256(text.encode()).hexdigest(),
            )
            for entry, text, vector in zip(entries, texts, vectors, strict=True)
        ],
        batch_size=500,
        update_conflicts=True,
        unique_fields=["entry", "model"],
        update_fields=["vector", "text_sha256"],
    )
    EntryEmbedding.objects.filter(entry__in=entries).exclude(model=model).delete()
