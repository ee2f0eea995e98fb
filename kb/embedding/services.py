"""Which model embeds, and what: one is active for questions and entries alike."""

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
from kb.embedding.parts import embedded
from kb.entries.models import Entry
from kb.types import QuestionVector

_last_active: dict[Literal["model"], EmbeddingModel] = {}


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


def prepare_vectors(texts: Sequence[str], model: EmbeddingModel) -> PreparedVectors:
    distinct = list(dict.fromkeys(texts))
    made = get_embedder(model).encode(distinct) if distinct else ()
    return PreparedVectors(model.fingerprint, dict(zip(distinct, made, strict=True)))


def write_vectors(
    entries: Sequence[Entry],
    *,
    model: EmbeddingModel,
    prepared: PreparedVectors | None = None,
) -> None:
    """Embed all parts of `entries` under `model`, and drop parts that are no longer.

    What other models made of an older text stays; its digest tells that it is stale.
    """
    said = embedded(entries)
    texts = [text for each in said for text in each.parts.values()]
    vectors = _get_vectors(texts, model, prepared)
    rows = [
        EntryEmbedding(
            entry=entry,
            model=model,
            part=part,
            vector=vectors[text],
            text_sha256=each.digest,
        )
        for entry, each in zip(entries, said, strict=True)
        for part, text in each.parts.items()
    ]
    EntryEmbedding.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["entry", "model", "part"],
        update_fields=["vector", "text_sha256"],
    )
    kept = [row.pk for row in rows]
    EntryEmbedding.objects.filter(entry__in=entries, model=model).exclude(
        pk__in=kept
    ).delete()


def _get_vectors(
    texts: Sequence[str], model: EmbeddingModel, prepared: PreparedVectors | None
) -> Mapping[str, np.ndarray]:
    known = (
        prepared.by_text
        if prepared is not None and prepared.fingerprint == model.fingerprint
        else {}
    )
    missing = [text for text in texts if text not in known]
    return {**known, **prepare_vectors(missing, model).by_text} if missing else known
