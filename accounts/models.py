import uuid
from typing import Any, Self, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db import models
from django.db.models.functions import Now
from knox.models import AbstractAuthToken, AuthTokenManager

_Row = TypeVar("_Row", bound=models.Model)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(user_id=user.pk)

    def live(self) -> Self:
        return self.filter(models.Q(expiry__isnull=True) | models.Q(expiry__gt=Now()))


class ApiTokenManager(AuthTokenManager.from_queryset(ApiTokenQuerySet)):  # type: ignore[misc]  # knox ships no types
    """Makes tokens as knox does, and reads them by `ApiTokenQuerySet`."""


class ApiToken(AbstractAuthToken):  # type: ignore[misc]  # knox ships no types
    """One credential of one user; of the token only the SHA-512 is kept."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    digest = models.CharField(max_length=128, unique=True, editable=False)
    name = models.CharField(
        max_length=100, blank=True, help_text="What it is for, in its owner's words."
    )

    objects = ApiTokenManager()

    class Meta:
        verbose_name = "API token"
        verbose_name_plural = "API tokens"
        ordering = ["-created", "id"]
        indexes = [models.Index(fields=["user", "-created"], name="api_token_by_user")]

    def __str__(self) -> str:
        return self.name or f"{self.token_key}…"


def optional_user(
    related_name: str, help_text: str = "", *, blank: bool = False
) -> "models.ForeignKey[User | None, User | None]":
    """Return a field for a user who may be deleted, whom the row outlives."""
    return optional_row(User, related_name, help_text, blank=blank)


def optional_row(
    model: type[_Row],
    related_name: str,
    help_text: str = "",
    **options: Any,  # noqa: ANN401  # those of a ForeignKey
) -> "models.ForeignKey[_Row | None, _Row | None]":
    """Return a field for a row that may be deleted, which the field's own row outlives."""
    return models.ForeignKey(
        model,
        on_delete=models.SET_NULL,
        null=True,
        related_name=related_name,
        help_text=help_text,
        **options,
    )
