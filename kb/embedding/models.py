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
        max_length=300,
        help_text='"bundled", a sentence-transformers name or path, or "server:" and a name.',
    )
    fingerprint = models.CharField(
        max_length=64, unique=True, help_text="Digest of weights, backend and dtype."
    )
    dimensions = models.PositiveIntegerField()
    sample = VectorField(
        null=True,
        editable=False,
        help_text="What a server made of a text: its model is known by it.",
    )
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
    """One of an entry's vectors under one embedding model: unit length, full precision.

    The least distance of what an entry says decides. Its place (title and heading, with
    all that it says) only puts evidence in order: what stands near a question is not yet
    what answers it.
    """

    class Part(models.IntegerChoices):
        PLACE = 0, "title, heading and all that it says"
        FIRST = 1, "its question, or else its text"
        # Behind the first stands its text, piece by piece.
        WORDINGS = 1_000, "the first of the questions in other words that it answers"

    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="embeddings"
    )
    model = models.ForeignKey(
        EmbeddingModel, on_delete=models.CASCADE, related_name="embeddings"
    )
    part = models.PositiveSmallIntegerField(default=Part.FIRST, db_default=Part.FIRST)
    vector = (
        VectorField()
    )  # every model has its own width; see kb/embedding/vector_index.py
    text_sha256 = models.CharField(
        max_length=64,
        help_text="Digest of all that is embedded of the entry, to detect a stale vector.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "model", "part"], name="entry_embedding_unique"
            )
        ]

    def __str__(self) -> str:
        return f"part {self.part} of entry {self.entry_id} by model {self.model_id}"


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


class FormerVector(models.Model):
    """A vector of what an entry said once, for questions as of a moment.

    Written by a trigger when it is replaced, and by `kb.search.past` where none was kept.
    """

    entry = models.ForeignKey(
        Entry,
        on_delete=models.DO_NOTHING,  # the database's constraint deletes it along
        db_constraint=False,
        db_index=False,  # `former_vector_unique` serves it
        related_name="+",
    )
    model = models.ForeignKey(
        EmbeddingModel,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="+",
    )
    part = models.PositiveSmallIntegerField()
    vector = VectorField()
    text_sha256 = models.CharField(
        max_length=64, help_text="Digest of all that was embedded of the entry."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "model", "text_sha256", "part"],
                name="former_vector_unique",
            )
        ]

    def __str__(self) -> str:
        return f"former part {self.part} of entry {self.entry_id}"
