from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.storage import Storage, storages
from django.db import models
from django.db.models import Q

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import where_not_elsewhere
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry, Revision
from kb.imports.readers.formats import Format
from kb.tags.models import Tag, tag_of


def import_storage() -> Storage:
    return storages["imports"]


class ImportQuerySet(models.QuerySet["Import"]):
    def visible_to(self, user: AnyUser) -> Self:
        """The user's own imports, or all for a superuser; none of a followed source.

        None of a knowledge base in which the user has no role any more: examples quote
        entries that the importer could see at the time.
        """
        rows = self.filter(
            audience__in=Audience.objects.visible_to(user), followed=None
        )
        if isinstance(user, User) and user.is_superuser:
            return rows
        return rows.filter(where_not_elsewhere(user), created_by_id=user.pk)


class Import(models.Model):
    """A file of knowledge with the settings and the progress of its import.

    Counts, cursor and the entries of a batch are written in one transaction, so that
    a run resumed after a kill does nothing twice.
    """

    class State(models.TextChoices):
        UPLOADED = "uploaded", "uploaded"
        PLANNED = "planned", "planned"
        APPLYING = "applying", "applying"
        APPLIED = "applied", "applied"
        FAILED = "failed", "failed"

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="imports"
    )
    audience = models.ForeignKey(
        Audience,
        on_delete=models.PROTECT,
        related_name="imports",
        help_text="The audience of new documents and entries.",
    )
    product_line = tag_of(
        Tag.Facet.PRODUCT_LINE, "+", "The product line of new entries."
    )
    line_of_business = tag_of(
        Tag.Facet.LINE_OF_BUSINESS, "+", "The line of business of new entries."
    )
    file = models.FileField(upload_to="%Y/%m/", storage=import_storage, max_length=300)
    file_name = models.CharField(max_length=200)
    file_sha256 = models.CharField(max_length=64)
    format = models.CharField(max_length=8, choices=Format.choices)
    source = models.CharField(
        max_length=500,
        help_text="Identifies the document: a new version has the same source.",
    )
    document_title = models.CharField(
        max_length=300,
        blank=True,
        help_text="If empty: the title in the file, or the file's name.",
    )
    verify_as = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Curator who verifies the imported entries; empty: they stay in review.",
    )
    created_by = optional_user("imports", blank=True)
    followed = models.ForeignKey(
        "kb.FollowedSource",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="imports",
        help_text="The followed source of the document: entries that it no longer has "
        "are only proposed for retirement.",
    )
    state = models.CharField(
        max_length=8, choices=State.choices, default=State.UPLOADED
    )
    job_id = models.UUIDField(
        null=True, blank=True, help_text="The latest job that planned or applied it."
    )
    cursor = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    examples = models.JSONField(default=dict)
    bad_rows = models.JSONField(default=list, help_text="The first invalid rows.")
    error = models.TextField(blank=True, help_text="Why the file could not be read.")
    notes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    planned_at = models.DateTimeField(
        null=True, blank=True, help_text="When planning began."
    )
    applied_at = models.DateTimeField(null=True, blank=True)

    objects = ImportQuerySet.as_manager()

    seen_examples: dict[str, list[dict[str, Any]]]  # from `decisions.examples_for`

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"import {self.pk} of {self.file_name}"

    @property
    def is_unreadable(self) -> bool:
        """Whether it is planned and all of its rows are bad: it would do nothing."""
        is_planned = self.state == self.State.PLANNED
        return is_planned and self.counts.get("read") == self.counts.get("bad", 0)

    @property
    def is_overtaken(self) -> bool:
        """Whether its document was imported, or a planned entry changed, since the plan.

        Applying it would do something else than the plan shows.
        """
        if self.state != self.State.PLANNED:
            return False
        if self.planned_at is None:  # planned by a version that did not record the time
            return True
        imports = Import.objects.filter(
            knowledge_base=self.knowledge_base_id,
            audience=self.audience_id,
            source=self.source,
            applied_at__gt=self.planned_at,
        )
        changes = Revision.objects.filter(
            entry__in=self.planned.values("entry"), created_at__gt=self.planned_at
        )
        return imports.exists() or changes.exists()


class ImportedKey(models.Model):
    """A fact read by an import, kept until the import ends.

    Reveals repeated facts and facts that are no longer in the file, without holding all
    of a file's facts in memory.
    """

    import_run = models.ForeignKey(
        Import, on_delete=models.CASCADE, related_name="keys"
    )
    source = models.CharField(max_length=500)
    key = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["import_run", "source", "key"], name="imported_key_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.key[:12]}"


# The database deletes them too: who deletes an import may not see all of its plan.
_GOES_WITH_IT: dict[str, Any] = {"on_delete": models.CASCADE, "db_constraint": False}


class PlannedEntryQuerySet(models.QuerySet["PlannedEntry"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Those without an entry, or with one that the user may see: they quote it."""
        return self.filter(Q(entry=None) | Q(entry__in=Entry.objects.visible_to(user)))


class PlannedEntry(models.Model):
    """What a planned import would do to one entry, kept until it is applied.

    Shows all of it; `Import.examples` holds the first few of each kind. A database
    policy shows it only to users who may see the entry.
    """

    import_run = models.ForeignKey(Import, related_name="planned", **_GOES_WITH_IT)
    entry = optional_row(
        Entry,
        "+",
        "Empty if the entry would be created.",
        blank=True,
        db_index=False,  # `planned_entry_by_entry` serves it
        **_GOES_WITH_IT,
    )
    action = models.CharField(max_length=16)
    place = models.CharField(max_length=200, blank=True)
    own_key = models.CharField(max_length=200, blank=True, db_default="")
    section = models.TextField(
        blank=True,
        db_default="",
        help_text="The headings above it, outermost first.",
    )
    question = models.TextField(blank=True)
    text = models.TextField()
    also_asked = models.TextField(blank=True)
    before = models.TextField(
        blank=True, help_text="The entry's present text, if it would be changed."
    )

    is_edited = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether a person has edited the entry since it was last imported.",
    )

    objects = PlannedEntryQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "planned entries"
        indexes = [models.Index(fields=["entry"], name="planned_entry_by_entry")]

    def __str__(self) -> str:
        return f"{self.action} {self.place}".strip()
