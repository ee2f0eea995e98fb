"""The vectors of entries, written in the transaction that writes the entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kb.embedder import embedder_of
from kb.embedding import embedding_text, text_sha256
from kb.models import EmbeddingModel, Entry, EntryEmbedding


@dataclass(frozen=True, slots=True, eq=False)
class PreparedVectors:
    """Vectors that were made before the transaction which writes them.

    Attributes:
        fingerprint: Of the model that made them; under another one they are worthless.
        by_text: float32 of shape (dimensions,), of unit length, by the embedded text.
    """

    fingerprint: str
    by_text: Mapping[str, np.ndarray]


def write_vectors(
    entries: Sequence[Entry],
    *,
    model: EmbeddingModel,
    prepared: PreparedVectors | None = None,
) -> None:
    """Embed `entries` under `model`.

    What other models made of an older text stays; its digest tells that it is stale.

    Args:
        model: The active one, locked for share.
        prepared: What was embedded beforehand; what it lacks is embedded here.

    Raises:
        EmbedderUnavailableError: The model cannot be loaded.
    """
    texts = [embedding_text(entry) for entry in entries]
    vectors = _vectors_of(texts, model, prepared)
    EntryEmbedding.objects.bulk_create(
        [
            EntryEmbedding(
                entry=entry,
                model=model,
                vector=vectors[text],
                text_sha256=text_sha256(text),
            )
            for entry, text in zip(entries, texts, strict=True)
        ],
        batch_size=500,
        update_conflicts=True,
        unique_fields=["entry", "model"],
        update_fields=["vector", "text_sha256"],
    )


def _vectors_of(
    texts: Sequence[str], model: EmbeddingModel, prepared: PreparedVectors | None
) -> Mapping[str, np.ndarray]:
    known = (
        prepared.by_text
        if prepared is not None and prepared.fingerprint == model.fingerprint
        else {}
    )
    missing = list(dict.fromkeys(text for text in texts if text not in known))
    if not missing:
        return known
    made = embedder_of(model).encode(missing)
    return {**known, **dict(zip(missing, made, strict=True))}
