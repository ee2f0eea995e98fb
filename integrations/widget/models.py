"""A widget: a question box on pages of other sites, and the account that it asks as."""

import secrets
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.crypto import salted_hmac

from accounts.models import optional_user
from kb.documents.models import KnowledgeBase


def new_seed() -> str:
    return secrets.token_hex(16)


class WidgetQuerySet(models.QuerySet["Widget"]):
    def serving(self) -> Self:
        rows = self.filter(is_active=True, account__is_active=True)
        return rows.select_related("knowledge_base")


class Widget(models.Model):
    """Where it may be embedded, which knowledge base it asks, and as which account."""

    name = models.SlugField(
        unique=True, help_text="Names the widget in the script tag."
    )
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="widgets"
    )
    account = optional_user(
        "widgets",
        "Everyone who can open the page sees what this account may see. Use a separate "
        "account that has only the role agent and the audiences of the page.",
    )
    origins = ArrayField(
        models.CharField(max_length=255),
        help_text="Origins of the pages that may embed it.",
    )
    names_users = models.BooleanField(
        "accepts signed claims",
        default=False,
        help_text="Pages may name their reader in a signed claim; that reader's "
        "entitlement then applies. Only superusers can set this and see the secret.",
    )
    is_active = models.BooleanField("active", default=True)
    secret_seed = models.CharField(max_length=64, default=new_seed, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WidgetQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def secret(self) -> str:
        """The secret that pages sign claims with; only its seed is stored."""
        return salted_hmac(
            "nescio.widget.claim", self.secret_seed, algorithm="sha256"
        ).hexdigest()

    @property
    def token_key(self) -> str:
        return salted_hmac(
            "nescio.widget.token", self.secret_seed, algorithm="sha256"
        ).hexdigest()
