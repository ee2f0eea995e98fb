from collections.abc import Sequence
from typing import Self

from django.db import models
from pgvector.django import L2Distance, VectorField

from kb.documents.models import KnowledgeBase
from kb.embedding.models import EmbeddingModel

from .models import Answer


class PastQuestionQuerySet(models.QuerySet["PastQuestion"]):
    def nearest_to(self, vector: Sequence[float], **values: object) -> Self:
        """Filter by values; order by `distance` (Euclidean, in [0, 2]), ascending."""
        rows = self.filter(**values).annotate(distance=L2Distance("vector", vector))
        return rows.order_by("distance", "pk")


class PastQuestion(models.Model):
    """A question that experts judged: an example for later questions (DH-ICL).

    Created, changed and deleted with its reviews; absent if they disagree. It has no
    text of its own: whether it may be shown depends on its answer.
    """

    answer = models.OneToOneField(
        Answer, primary_key=True, on_delete=models.CASCADE, related_name="past_question"
    )
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="past_questions"
    )
    embedding_model = models.ForeignKey(
        EmbeddingModel, on_delete=models.CASCADE, related_name="+"
    )
    vector = VectorField(help_text="Embedding of the question, unit length.")
    language_model = models.CharField(
        max_length=200, help_text="Fingerprint of the model that gave the verdict."
    )
    verdict = models.FloatField(
        null=True,
        help_text="The model's verdict: probability that the question can be answered.",
    )
    can_be_answered = models.BooleanField(
        help_text="Experts' judgement: the answer was right, or the refusal was false."
    )
    is_known = models.BooleanField(
        null=True,
        help_text="Whether the language model answers it correctly without evidence; "
        "empty if no right answer is known.",
    )
    own_model = models.CharField(
        max_length=64,
        blank=True,
        help_text="Fingerprint of the model and prompt form that measured `is_known`.",
    )
    labelled_at = models.DateTimeField(help_text="Time of the latest judgement.")

    objects = PastQuestionQuerySet.as_manager()

    distance: float  # from `nearest_to`

    class Meta:
        indexes = [
            models.Index(
                fields=["knowledge_base", "embedding_model", "language_model"],
                name="past_question_scope",
            ),
            models.Index(
                fields=["knowledge_base", "embedding_model", "own_model"],
                name="past_question_known",
                condition=models.Q(is_known__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"past question {self.answer_id}"
