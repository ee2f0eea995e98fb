import uuid
from typing import Any, Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Coalesce, Now
from knox.models import AbstractAuthToken, AuthTokenManager

from accounts.people import AnyUser

_Row = TypeVar("_Row", bound=models.Model)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def owned_by(self, user: AnyUser) -> Self:
        return self.filter(user_id=user.pk)

    def live(self) -> Self:
        return self.filter(models.Q(expiry__isnull=True) | models.Q(expiry__gt=Now()))


class ApiTokenManager(AuthTokenManager.from_queryset(ApiTokenQuerySet)):  # type: ignore[misc]  # knox ships no types
    """Knox's manager, with the methods of `ApiTokenQuerySet`."""


class ApiToken(AbstractAuthToken):  # type: ignore[misc]  # knox ships no types
    """A user's credential; only the SHA-512 of the token is stored."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    digest = models.CharField(max_length=128, unique=True, editable=False)
    name = models.CharField(
        max_length=100, blank=True, help_text="What the token is used for."
    )
    may_act_for_others = models.BooleanField(
        default=False,
        help_text="Its requests may name another user, whose entitlement then applies.",
    )
    may_manage_users = models.BooleanField(
        default=False,
        db_default=False,
        help_text="It may create, change and close accounts over REST, if its user is "
        "an admin.",
    )

    objects = ApiTokenManager()

    class Meta:
        verbose_name = "API token"
        verbose_name_plural = "API tokens"
        ordering = ["-created", "id"]
        indexes = [models.Index(fields=["user", "-created"], name="api_token_by_user")]

    def __str__(self) -> str:
        return self.name or f"{self.token_key}…"


class KeptReply(models.Model):
    """The reply to a POST with an `Idempotency-Key`, kept for repeated requests.

    Keys are separate for each caller: a user, by one token or by a session; for a
    delegating service, the user for whom it acts. Deleted after a day.
    """

    user = models.ForeignKey(
        User, models.CASCADE, db_index=False, related_name="kept_replies"
    )
    token = models.ForeignKey(
        ApiToken, models.CASCADE, null=True, related_name="kept_replies"
    )
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64, help_text="Digest of the request.")
    status = models.PositiveSmallIntegerField(
        null=True, help_text="Empty while the request is being processed."
    )
    headers = models.JSONField(default=dict)
    body = models.TextField(
        blank=True, help_text="JSON; empty if it was too large to store."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "kept replies"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "token", "key"],
                name="kept_reply_once_a_key",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return self.key


def configured_issuer() -> str:
    issuer: str = settings.OIDC_ISSUER
    return issuer


class ProviderAccount(models.Model):
    """The link to a user's account at the identity provider, by its subject alone."""

    user = models.OneToOneField(User, models.CASCADE, related_name="provider_account")
    issuer = models.CharField(
        max_length=500,
        default=configured_issuer,
        help_text="The provider, as named in NESCIO_OIDC_ISSUER.",
    )
    subject = models.CharField(
        max_length=255, help_text="The claim sub: the person's id at the provider."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["issuer", "subject"], name="provider_account_by_subject"
            )
        ]

    def __str__(self) -> str:
        return self.subject


class Preferences(models.Model):
    """A user's own settings; a user who changed nothing has no row."""

    class Language(models.TextChoices):
        """The languages in which refusals are worded."""

        ENGLISH = "en", "English"
        GERMAN = "de", "German"

    class Alert(models.TextChoices):
        """The alerts that those who run or own a knowledge base may be mailed."""

        FAILURES = "failures", "background work, followed sources or webhooks fail"
        DRIFT = (
            "drift",
            "live questions drift away from those that thresholds were certified on",
        )
        ESCALATIONS = "escalations", "questions wait for an expert"
        GAPS = "gaps", "new gaps are found (once a day)"

    user = models.OneToOneField(
        User, models.CASCADE, primary_key=True, related_name="preferences"
    )
    language = models.CharField(
        "language of refusals", max_length=2, blank=True, choices=Language.choices
    )
    mails_notices = models.BooleanField(
        "send my notices by e-mail as well", default=True, db_default=True
    )
    alerts = ArrayField(
        models.CharField(max_length=11, choices=Alert.choices),
        null=True,
        help_text="Empty: the defaults of the user's roles, see `alerts_of`.",
    )

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return str(self.user)


class ProviderGroup(models.Model):
    """The groups here that a group of the identity provider grants to its members."""

    EVERYONE = "*"

    name = models.CharField(
        max_length=255,
        unique=True,
        help_text="As the provider sends it, often an id; * stands for everyone who "
        "signs in with it.",
    )
    groups = models.ManyToManyField(
        Group, blank=True, related_name="provider_groups", verbose_name="opens"
    )
    is_superuser = models.BooleanField(
        "makes superusers",
        default=False,
        help_text="Its members may see and do everything. Only superusers can set "
        "this.",
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class KnowledgeRole(models.Model):
    """A role of a user, or of each member of a group, in a single knowledge base.

    It adds to the roles that their groups grant everywhere. The role admin can't be
    limited to a knowledge base.
    """

    class Kind(models.TextChoices):
        SME = "sme", "sme: judges and replies"
        CURATOR = "curator", "curator: also writes and verifies"

    # As a string: knowledge bases belong to a higher layer, which can't be imported.
    knowledge_base = models.ForeignKey(
        "kb.KnowledgeBase", models.CASCADE, related_name="roles"
    )
    user = models.ForeignKey(
        User, models.CASCADE, null=True, blank=True, related_name="knowledge_roles"
    )
    group = models.ForeignKey(
        Group, models.CASCADE, null=True, blank=True, related_name="knowledge_roles"
    )
    role = models.CharField(max_length=10, choices=Kind)

    class Meta:
        verbose_name = "role in a knowledge base"
        verbose_name_plural = "roles in single knowledge bases"
        ordering = ["knowledge_base__slug", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(user__isnull=True) ^ models.Q(group__isnull=True),
                name="knowledge_role_of_user_or_group",
                violation_error_message="Name either a user or a group.",
            ),
            models.UniqueConstraint(
                fields=["knowledge_base", "user"], name="knowledge_role_once_a_user"
            ),
            models.UniqueConstraint(
                fields=["knowledge_base", "group"], name="knowledge_role_once_a_group"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.knowledge_base}"


class AuditEntry(models.Model):
    """A change to what somebody may see or do, written by database triggers only.

    The triggers on users, groups, permissions and tokens are in this app, those on
    audiences and policies in their own apps' migrations; see
    `accounts/migrations/audit.sql`. The row outlives its user and its subject, so it
    stores their names.
    """

    class Action(models.TextChoices):
        INSERT = "insert", "added"
        UPDATE = "update", "changed"
        DELETE = "delete", "removed"

    at = models.DateTimeField()
    actor = models.CharField(
        max_length=150,
        blank=True,
        help_text="Empty: the change was not made by a user's request.",
    )
    reader = models.TextField(help_text="On whose behalf the statement ran.")
    kind = models.CharField(max_length=20)
    action = models.CharField(max_length=10, choices=Action)
    subject = models.CharField(max_length=500)
    changes = models.JSONField(
        help_text="Values before and after, by field; no secrets."
    )

    class Meta:
        verbose_name_plural = "audit entries"
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} {self.get_action_display()}"


def optional_user(
    related_name: str, help_text: str = "", **options: Any
) -> "models.ForeignKey[User | None, User | None]":
    """Return a field for a user who may be deleted; see `optional_row`."""
    return optional_row(User, related_name, help_text, **options)


def optional_row(
    model: type[_Row], related_name: str, help_text: str = "", **options: Any
) -> "models.ForeignKey[_Row | None, _Row | None]":
    """Return a nullable foreign key; by default it becomes null if its row is deleted.

    Args:
        options: Further options of the field, such as another `on_delete`.
    """
    return models.ForeignKey(
        model,
        null=True,
        related_name=related_name,
        help_text=help_text,
        **{"on_delete": models.SET_NULL, **options},
    )


def count_of(rows: models.QuerySet[Any], key: str) -> Coalesce:
    """Return an expression for the number of `rows` whose `key` is the outer row.

    The subquery counts only for the rows that are read; with a join, the database would
    group all of `rows`.
    """
    own = rows.filter(**{key: models.OuterRef("pk")}).order_by().values(key)
    counted = own.annotate(count=models.Count("*")).values("count")
    return Coalesce(models.Subquery(counted), 0)
