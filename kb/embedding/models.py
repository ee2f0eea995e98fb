from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField, VectorField

from kb.entries.models import Entry


class EmbeddingModel(models.Model):
    """An embedder by its fingerprint; exactly one is active and answers questions.

    Vectors and thresholds of different fingerprints never meet.
    """

    class State(models.TextChoices):
        CANDIDATE = "candidate", "candidate"
        ACTIVE = "active", "active"
        RETIRED = "retired", "retired"

    name = models.CharField(
        max_length=300, help_text='"bundled", or a sentence-transformers name or path.'
    )
    fingerprint = models.CharField(
        max_length=64, unique=True, help_text="Digest of weights, backend and dtype."
    )
    dimensions = models.PositiveIntegerField()
    state = models.CharField(
        max_length=9, choices=State.choices, default=State.CANDIDATE
    )
    created_at = models.DateTimeField(auto_now_add=True)
    activated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["state"],
                condition=Q(state="active"),
                name="embedding_model_one_active",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint[:12]})"


class EntryEmbedding(models.Model):
    """The vector of one entry under one embedding model: unit length, full precision."""

    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="embeddings"
    )
    model = models.ForeignKey(
        EmbeddingModel, on_delete=models.CASCADE, related_name="embeddings"
    )
    vector = (
        VectorField()
    )  # every model has its own width; see kb/embedding/vector_index.py
    text_sha256 = models.CharField(
        max_length=64,
        help_text="Digest of the embedded text, to detect a stale vector.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "model"], name="entry_embedding_unique"
            )
        ]

    def __str__(self) -> str:
        return f"embedding of entry {self.entry_id} by model {self.model_id}"


class HalfVector(models.Model):
    """An entry's vector rounded to half precision, in rows that are quick to read through.

    Never what decides: search picks by it which full-precision vectors to measure, with
    room for the rounding. A trigger on EntryEmbedding keeps it.
    """

    embedding = models.OneToOneField(
        EntryEmbedding,
        primary_key=True,
        on_delete=models.DO_NOTHING,  # the database's constraint deletes it along
        db_constraint=False,
        related_name="+",
    )
    entry_id = models.BigIntegerField()
    model_id = models.BigIntegerField()
    half = HalfVectorField()

    def __str__(self) -> str:
        return f"half-precision vector of embedding {self.embedding_id}"
