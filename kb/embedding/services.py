"""The active embedding model, and the parts of an entry that are embedded.

An embedder cuts off text beyond its window, and the vector of many sentences is close
to none of them; so a longer text gets a vector for each piece. Title and heading supply
the subject of a sentence that does not name it.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

from kb.embedding.embedder import BUNDLED, get_embedder, load_embedder
from kb.embedding.models import EmbeddingModel, EntryEmbedding
from kb.entries.models import Entry
from kb.exceptions import EmbedderUnavailableError
from kb.text.words import sentences
from kb.types import QuestionVector

_Part = EntryEmbedding.Part
_PIECE_LETTERS = 200  # short sentences are joined up to this length
_MAX_PIECES = 64  # of a longer text, the rest goes into the last piece

# For an entry `e`: `Embedded.digest`, and the tables it needs. The title of a document
# of another audience is left out: readers of the entry may not see it.
PLACE_SQL = """
    LEFT JOIN kb_document d ON d.id = e.document_id AND d.audience_id = e.audience_id
    LEFT JOIN kb_section s ON s.id = e.section_id AND s.document_id = d.id
"""
DIGEST_SQL = """encode(sha256(convert_to(concat_ws(E'\\n',
    coalesce(d.title, ''), coalesce(s.heading, ''), e.question, e.text), 'UTF8')), 'hex')"""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The content of an entry that is embedded; all but the text may be empty.

    Wordings, the alternative questions, are not part of the digest.
    """

    title: str
    heading: str
    question: str
    text: str
    wordings: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return 64 hex digits over all but the wordings, as `DIGEST_SQL` does."""
        said = "\n".join((self.title, self.heading, self.question, self.text))
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def parts(self) -> Mapping[int, str]:
        """Return the texts to embed, by part, each only once."""
        first = self.question or self.text
        pieces = list(_pieces(self.text))
        if not self.question and len(pieces) == 1:
            pieces = []
        said = f"{self.question} {self.text}".strip()
        place = " > ".join(filter(None, (self.title, self.heading)))
        parts = dict(enumerate((first, *pieces), _Part.FIRST))
        if place or said != first:
            parts[_Part.PLACE] = f"{place}\n{said}".strip()
        return parts | dict(enumerate(self.wordings, _Part.WORDINGS))


def embedded(entries: Sequence[Entry]) -> list[Embedded]:
    """Return what is embedded of each entry, in at most three queries."""
    prefetch_related_objects(list(entries), "document", "section")
    wordings = defaultdict[int, list[str]](list)  # read anew: the rows may be outdated
    rows = Entry.objects.filter(pk__in=[entry.pk for entry in entries])
    said = rows.filter(wordings__answers=True).order_by("wordings__pk")
    for pk, text in said.values_list("pk", "wordings__text"):
        wordings[pk].append(text)
    return [_embedded(entry, tuple(wordings[entry.pk])) for entry in entries]


def _embedded(entry: Entry, wordings: tuple[str, ...]) -> Embedded:
    document = entry.document
    said = entry.question, entry.text, wordings
    if document is None or document.audience_id != entry.audience_id:
        return Embedded("", "", *said)
    heading = entry.section.heading if entry.section else ""
    return Embedded(document.title, heading, *said)


def _pieces(text: str) -> Iterator[str]:
    piece, number = "", 1
    for sentence in sentences(text):
        is_full = len(piece) + len(sentence) >= _PIECE_LETTERS
        if piece and is_full and number < _MAX_PIECES:
            yield piece
            piece, number = "", number + 1
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece


_last_active: dict[Literal["model"], EmbeddingModel] = {}


def active_model(*, for_share: bool = False) -> EmbeddingModel:
    """Return the active model, registering the configured one if there is none.

    Args:
        for_share: Lock the row FOR SHARE until the caller's transaction ends, so that
            the model cannot be switched between reading it and writing a vector.
    """
    # A statement that waited for the lock while another model became active finds
    # nothing; the next one finds the new model.
    model = _find_active(for_share) or _find_active(for_share)
    if model is None:
        register_configured_model()
        model = _find_active(for_share)
    if model is None:
        raise EmbedderUnavailableError(
            "The embedding model was switched several times at once; try again."
        )
    return model


def _find_active(for_share: bool) -> EmbeddingModel | None:
    rows = EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE)
    if not for_share:
        return rows.first()
    # Django only supports FOR UPDATE, which would make writers wait for each other.
    locked = EmbeddingModel.objects.raw(
        "SELECT * FROM kb_embeddingmodel WHERE state = 'active' FOR SHARE"
    )
    return next(iter(locked), None)


def reads(language: str) -> bool:
    """Return whether the active model supports a knowledge base's language.

    The bundled one supports English; any other was chosen deliberately.
    """
    return language == "en" or active_model().name != BUNDLED


def register_configured_model() -> EmbeddingModel:
    """Make the configured model the active one if there is none yet.

    If two processes both find none, the second one's insert fails at the constraint
    that allows only one active model, and it uses the first one's.
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
                    "sample": embedder.sample,
                    "state": EmbeddingModel.State.ACTIVE,
                    "activated_at": timezone.now(),
                },
            )
    except IntegrityError:
        return EmbeddingModel.objects.get(state=EmbeddingModel.State.ACTIVE)
    return model


def embed_question(text: str, *, reload: bool = False) -> QuestionVector:
    """Embed a question with the active model.

    The active model is cached from the previous question. If it is no longer active,
    the search finds no such model and embeds the question again.
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
    """Vectors by text, computed before the transaction that writes them."""

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
    """Embed all parts of `entries` with `model`, and delete parts that no longer exist.

    Vectors of an older text by other models stay; their digest shows that they are
    stale.
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
