from typing import Self

from django.conf import settings
from django.contrib.auth.models import User
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

from accounts.models import optional_user
from accounts.people import AnyUser
from accounts.roles import Role, refuse_elsewhere, where_role
from kb.audiences.models import Audience
from kb.exceptions import KnowledgeBaseArchivedError

MAX_REVIEW_INTERVAL = 3_650  # days; the longest interval between two reviews, ten years
NO_DEFAULT = "none"  # setting: among several knowledge bases, one must be named
REVIEW_INTERVAL_LIMITS = (MinValueValidator(1), MaxValueValidator(MAX_REVIEW_INTERVAL))


class KnowledgeBaseQuerySet(models.QuerySet["KnowledgeBase"]):
    def of_role(self, user: AnyUser, least: Role) -> Self:
        """Return the knowledge bases in which a user has at least the role `least`."""
        return self.filter(where_role(user, least, "pk"))

    def in_use(self) -> Self:
        """Exclude archived knowledge bases, which are read-only."""
        return self.filter(archived_at=None)

    def archived(self) -> Self:
        return self.exclude(archived_at=None)

    def with_default(self) -> Self:
        """Annotate `is_default`: whether it is asked when a question names none."""
        asked = KnowledgeBase.objects.asked_by_default().values("pk")[:1]
        default = Coalesce(Exact(F("pk"), Subquery(asked)), Value(False))
        return self.annotate(is_default=default)

    def asked_by_default(self) -> Self:
        """Return those in use, the default one first; empty if there is no default."""
        by, rows = settings.DEFAULT_KNOWLEDGE_BASE, self.in_use()
        if by == NO_DEFAULT:
            others = KnowledgeBase.objects.in_use().exclude(pk=OuterRef("pk"))
            return rows.filter(~Exists(others))
        return rows.filter(slug=by) if by else rows.order_by("pk")


class KnowledgeBase(models.Model):
    class Language(models.TextChoices):
        ENGLISH = "en", "English"
        GERMAN = "de", "German"
        OTHER = "xx", "other (no stemming)"

    class Overdue(models.TextChoices):
        MARK = "mark", "stays verified and is marked as overdue"
        DOUBT = "doubt", "needs review once the grace period is over"

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    language = models.CharField(
        max_length=2, choices=Language.choices, default=Language.ENGLISH
    )
    review_interval_days = models.PositiveIntegerField(
        "review interval",
        null=True,
        blank=True,
        default=180,
        validators=REVIEW_INTERVAL_LIMITS,
        help_text="Days after which a verified entry must be verified again; empty: "
        "entries never become due by age alone.",
    )
    when_overdue = models.CharField(
        "overdue entries", max_length=5, choices=Overdue.choices, default=Overdue.MARK
    )
    overdue_grace_days = models.PositiveIntegerField(
        "grace period",
        default=30,
        validators=[MaxValueValidator(MAX_REVIEW_INTERVAL)],
        help_text="Days after a review became due before the entry needs review.",
    )
    keep_texts_days = models.PositiveIntegerField(
        "keep questions for",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_REVIEW_INTERVAL)],
        help_text="Days after which a nightly job erases the words of questions, "
        "answers and comments on them; empty: never. Counts and grades are kept.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When it was archived; since then it is read-only and cannot be "
        "asked.",
    )

    objects = KnowledgeBaseQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        verbose_name = "knowledge base"

    def __str__(self) -> str:
        return self.name

    def check_in_use(self) -> None:
        """Raise `KnowledgeBaseArchivedError` if it is archived."""
        if self.archived_at is not None:
            raise KnowledgeBaseArchivedError(
                f"The knowledge base {self.name} is archived and read-only; have an "
                "admin unarchive it first, or use another one."
            )


def of_base_in_use(path: str = "knowledge_base") -> Q:
    """Return the condition that a row belongs to a knowledge base in use.

    Args:
        path: Lookup path from the row to its knowledge base.
    """
    # Excludes the few archived ones: a join with those in use would lose the order of
    # an index, and sort again.
    return ~Q(**{f"{path}__in": KnowledgeBase.objects.archived()})


def check_writable(
    user: User | None, knowledge_base_id: int, least: Role = Role.CURATOR
) -> None:
    """Raise if the user may not write to the knowledge base, or if it is archived."""
    refuse_elsewhere(user, knowledge_base_id, least)
    KnowledgeBase.objects.get(pk=knowledge_base_id).check_in_use()


class DocumentQuerySet(models.QuerySet["Document"]):
    def visible_to(self, user: AnyUser) -> Self:
        return self.filter(audience__in=Audience.objects.visible_to(user))


class Document(models.Model):
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="documents"
    )
    title = models.CharField(max_length=300)
    source = models.CharField(
        max_length=500,
        blank=True,
        help_text="Where it comes from: an address, a file name, a contract number.",
    )
    audience = models.ForeignKey(
        Audience,
        on_delete=models.PROTECT,
        related_name="documents",
        help_text="The audience of entries that are added to it.",
    )
    created_by = optional_user("documents")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        ordering = ["title", "pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(title=""), name="document_has_title")
        ]

    def __str__(self) -> str:
        return self.title


class Section(models.Model):
    document = models.ForeignKey(
        Document, on_delete=models.CASCADE, related_name="sections"
    )
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    heading = models.CharField(max_length=300)
    position = models.PositiveIntegerField(
        help_text="0-based position among its siblings."
    )

    class Meta:
        ordering = ["document", "parent_id", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["document", "parent", "position"],
                nulls_distinct=False,
                name="section_position_unique",
            )
        ]

    def __str__(self) -> str:
        return self.heading
