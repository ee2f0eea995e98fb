"""Which model embeds, and what: one is active for questions and entries alike."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from kb.embedding.embedder import EmbedderUnavailableError, get_embedder, load_embedder
from kb.embedding.models import EmbeddingModel, EntryEmbedding
from kb.entries.models import Entry
from kb.types import QuestionVector

_last_active: dict[Literal["model"], EmbeddingModel] = {}


def embedding_text(entry: Entry) -> str:
    """Return what of an entry is embedded: the question it answers, or what it states.

    `kb.embedding.switch.EMBEDDED_TEXT_SQL` says the same in SQL.
    """
    return entry.question or entry.text


def text_sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def active_model(*, for_share: bool = False) -> EmbeddingModel:
    """Return the model that answers questions, registering the configured one if none does.

    Args:
        for_share: Lock the row FOR SHARE until the caller's transaction ends, so that
            no switch of models can slip between reading it and writing a vector.
    """
    # A statement that waited for the lock while another model became active finds
    # nothing, and the next one finds the new one.
    model = _find_active(for_share) or _find_active(for_share)
    if model is None:
        register_configured_model()
        model = _find_active(for_share)
    if model is None:
        msg = "The embedding model was switched several times at once; try again."
        raise EmbedderUnavailableError(msg)
    return model


def _find_active(for_share: bool) -> EmbeddingModel | None:
    rows = EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE)
    if not for_share:
        return rows.first()
    # Django knows FOR UPDATE only, which would make writers wait for each other.
    locked = EmbeddingModel.objects.raw(
        "SELECT * FROM kb_embeddingmodel WHERE state = 'active' FOR SHARE"
    )
    return next(iter(locked), None)


def register_configured_model() -> EmbeddingModel:
    """Make the configured model the active one where there is none yet.

    Two processes may both find none: the second one's insert fails at the constraint
    that allows one active model, and it takes the first one's.
    """
    embedder = load_embedder(settings.EMBEDDING_MODEL)
    try:
        with transaction.atomic():
            model, _ = EmbeddingModel.objects.update_or_create(
                fingerprint=embedder.fingerprint,
                defaults={
                    "state": EmbeddingModel.State.ACTIVE,
                    "activated_at": timezone.now(),
                },
                create_defaults={
                    "name": embedder.name,
                    "dimensions": embedder.dimensions,
                    "state": EmbeddingModel.State.ACTIVE,
                    "activated_at": timezone.now(),
                },
            )
    except IntegrityError:
        return EmbeddingModel.objects.get(state=EmbeddingModel.State.ACTIVE)
    return model


def embed_question(text: str, *, reload: bool = False) -> QuestionVector:
    """Embed a question with the active model.

    Which model is active is remembered from the question before: a search under a model
    that is active no longer finds no model, and embeds the question again.
    """
    model = None if reload else _last_active.get("model")
    if model is None:
        model = _last_active["model"] = active_model()
    embedder = get_embedder(model)
    begun = time.perf_counter()
    values = embedder.encode_question(text)
    return QuestionVector(
        text=text,
        values=values,
        model_id=model.pk,
        fingerprint=model.fingerprint,
        milliseconds=(time.perf_counter() - begun) * 1000,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PreparedVectors:
    """Vectors made before the transaction that writes them, by embedded text."""

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
    """
    texts = [embedding_text(entry) for entry in entries]
    vectors = _get_vectors(texts, model, prepared)
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


def _get_vectors(
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
    made = get_embedder(model).encode(missing)
    return {**known, **dict(zip(missing, made, strict=True))}
