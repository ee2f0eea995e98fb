from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField, VectorField

from kb.entries.models import Entry


class EmbeddingModel(models.Model):
    """An embedder identified by its fingerprint; exactly one is active.

    The active one embeds questions. Vectors and thresholds of different fingerprints
    are never mixed.
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
        help_text="A server's vector of a sample text, which identifies the server's "
        "model.",
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
    """One of an entry's vectors by one embedding model: unit length, full precision.

    The least distance among the parts of the entry's own content decides. Its place
    (title and heading, with the content) only ranks evidence: an entry close to a
    question does not necessarily answer it.
    """

    class Part(models.IntegerChoices):
        PLACE = 0, "title, heading and its whole content"
        FIRST = 1, "its question, or its text if it has none"
        # The pieces of its text follow the first part.
        WORDINGS = 1_000, "the first of its alternative questions"

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
        help_text="Digest of all embedded texts of the entry, to detect a stale "
        "vector.",
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
    """An entry's vector in half precision, in rows that are fast to scan.

    It never decides: search uses it to preselect full-precision vectors, with a margin
    for the rounding. A trigger on EntryEmbedding keeps it up to date.
    """

    embedding = models.OneToOneField(
        EntryEmbedding,
        primary_key=True,
        on_delete=models.DO_NOTHING,  # the database's constraint deletes it too
        db_constraint=False,
        related_name="+",
    )
    entry_id = models.BigIntegerField()
    model_id = models.BigIntegerField()
    half = HalfVectorField()

    def __str__(self) -> str:
        return f"half-precision vector of embedding {self.embedding_id}"


class FormerVector(models.Model):
    """A vector of an entry's former content, for questions as of a past moment.

    Written by a trigger when the vector is replaced, and by `kb.search.past` where none
    was kept.
    """

    entry = models.ForeignKey(
        Entry,
        on_delete=models.DO_NOTHING,  # the database's constraint deletes it too
        db_constraint=False,
        db_index=False,  # covered by `former_vector_unique`
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
        max_length=64, help_text="Digest of all embedded texts of the entry."
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
