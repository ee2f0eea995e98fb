from typing import Self

from django.conf import settings
from django.db import models

from kb.models import KnowledgeBase

from .policy import Policy


class PolicyActivationQuerySet(models.QuerySet["PolicyActivation"]):
    """Reads over the history of what decided."""

    def of(self, knowledge_base: KnowledgeBase) -> Self:
        """One knowledge base's history, newest first, with versions and names."""
        rows = self.filter(knowledge_base=knowledge_base)
        return rows.select_related("policy", "replaced", "by")


class PolicyActivation(models.Model):
    """That a version began to decide: append-only (a trigger holds it)."""

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="policy_activations"
    )
    policy = models.ForeignKey(
        Policy, on_delete=models.PROTECT, related_name="activations"
    )
    replaced = models.ForeignKey(
        Policy,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="The version that decided until then, if any did.",
    )
    is_rollback = models.BooleanField(
        default=False, help_text="Was it to undo an activation?"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="policy_activations",
    )
    at = models.DateTimeField(auto_now_add=True)

    objects = PolicyActivationQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.policy} from {self.at:%Y-%m-%d %H:%M} on"
