import re
from datetime import datetime
from typing import Any, Self

from django.contrib.auth.models import User
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector, SearchVectorField
from django.db import models
from django.db.models import (
    Case,
    Exists,
    GeneratedField,
    OuterRef,
    Q,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.utils.text import Truncator

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import Role, bases_of_role
from kb.audiences.models import Audience
from kb.documents.models import (
    REVIEW_INTERVAL_LIMITS,
    Document,
    KnowledgeBase,
    Section,
    of_base_in_use,
)
from kb.entries.due import EXPIRY_NOTICE, Place, Reason
from kb.tags.models import Tag, tag_of

SAID_LIMIT = 120
# Up to this many entries with the words are looked up one by one; if there are more, a
# list in another order soon meets enough of them. The planner cannot tell, because it
# only knows the frequencies of common words.
_FEW = 5_000
_WORD = re.compile(r"\w+")
# Matches the definition of the column `search_vector`.
SEARCH_CONFIGURATIONS = {"en": "english", "de": "german", "xx": "simple"}


def _words(config: str) -> SearchVector:
    question = Coalesce("question", Value(""))
    return SearchVector(question, "text", config=Value(config))


class EntryQuerySet(models.QuerySet["Entry"]):
    def current(self, at: datetime) -> Self:
        return self.filter(Q(valid_until__isnull=True) | Q(valid_until__gt=at))

    def expired(self, at: datetime) -> Self:
        return self.filter(valid_until__lte=at)

    def visible_to(self, user: AnyUser) -> Self:
        return self.filter(audience__in=Audience.objects.visible_to(user))

    def always_visible_to(self, user: AnyUser) -> Self:
        """Entries whose present and former revisions the user may all see.

        For texts written from an entry at some time, such as a proposal or a reply.
        """
        hidden = RevisionOutline.objects.outside_of(user).filter(
            entry_id=OuterRef("pk")
        )
        return self.visible_to(user).filter(~Exists(hidden))

    def readable_by(self, user: AnyUser) -> Self:
        """Entries to look up: drafts and retired entries are only shown to curators."""
        entries, bases = self.visible_to(user), bases_of_role(user, Role.CURATOR)
        if bases is None:
            return entries
        curated = Q(knowledge_base__in=bases) if bases else Q()
        return entries.filter(curated | Q(state__in=SERVED_STATES))

    def saying(self, words: str, *, or_beginning: bool = False) -> Self:
        """Entries whose question or text has all of `words`, by stem (one query).

        Quoted words form a phrase and a minus excludes a word, as in a web search.

        Args:
            or_beginning: Also match entries with words that begin with these.
        """
        begun = " & ".join(f"{word}:*" for word in _WORD.findall(words))
        asked = [("websearch", words)]
        asked += [("raw", begun)] if or_beginning and begun else []
        wanted = Q()
        for language, config in SEARCH_CONFIGURATIONS.items():
            for kind, text in asked:
                query = SearchQuery(text, config=config, search_type=kind)
                wanted |= Q(language=language, search_vector=query)
        found = EntryWords.objects.filter(wanted).values_list("pk", flat=True)
        few = list(found[: _FEW + 1])
        return self.filter(pk__in=few if len(few) <= _FEW else found)

    def locked(self) -> Self:
        """Lock the rows, not those they refer to; search vectors are deferred."""
        return self.select_for_update(of=("self",), no_key=True).defer("search_vector")

    def with_revision_number(self) -> Self:
        newest = Revision.objects.filter(entry=OuterRef("pk")).order_by("-number")
        return self.annotate(revision_number=Subquery(newest.values("number")[:1]))

    def due(self, at: datetime) -> Self:
        return self.filter(of_base_in_use(), upkeep__due_at__lte=at)

    def due_for(self, reason: Reason, at: datetime) -> Self:
        expired_before = at - EXPIRY_NOTICE
        conditions = {
            Reason.EXPIRED: Q(upkeep__expiry_notice_at__lte=expired_before),
            Reason.FLAGGED: Q(upkeep__flagged_since__lte=at),
            Reason.VOTED_DOWN: Q(upkeep__doubted_since__lte=at),
            Reason.OVERDUE: Q(upkeep__review_due__lte=at),
            Reason.EXPIRING: Q(
                upkeep__expiry_notice_at__lte=at,
                upkeep__expiry_notice_at__gt=expired_before,
            ),
            Reason.NEEDS_REVIEW: Q(state=Entry.State.NEEDS_REVIEW),
            Reason.IN_REVIEW: Q(state=Entry.State.IN_REVIEW),
        }
        return self.filter(conditions[reason])

    def in_queue_order(self) -> Self:
        """Order by most used, then longest due; an index has this order."""
        return self.order_by("-upkeep__uses", "upkeep__due_at", "pk")

    def after(self, place: Place) -> Self:
        later = Q(upkeep__due_at__gt=place.due_at) | Q(
            upkeep__due_at=place.due_at, pk__gt=place.entry_id
        )
        return self.filter(upkeep__uses__lte=place.uses).filter(
            Q(upkeep__uses__lt=place.uses) | later
        )

    def not_compared(self) -> Self:
        """Entries whose current words the conflict check has not read.

        A draft or retired entry that was read does not count, as it is compared with
        nothing.
        """
        read = Revision.objects.filter(
            entry=OuterRef("pk"),
            number=OuterRef("judged__revision"),
            question=OuterRef("question"),
            text=OuterRef("text"),
        ).exclude(state__in=[Entry.State.DRAFT, Entry.State.RETIRED])
        return self.exclude(state__in=[Entry.State.DRAFT, Entry.State.RETIRED]).filter(
            ~Exists(read)
        )

    def servable(self) -> Self:
        return self.filter(state__in=SERVED_STATES)


class Entry(models.Model):
    """One fact: a sentence or short paragraph, or a question with its exact answer.

    Written only through services, which keep the revision, the embedding and the
    verification in step within one transaction.
    """

    class State(models.TextChoices):
        DRAFT = "draft", "draft"
        PROPOSED = "proposed", "proposed by a model"
        IN_REVIEW = "in_review", "in review"
        VERIFIED = "verified", "verified"
        NEEDS_REVIEW = "needs_review", "needs review"
        RETIRED = "retired", "retired"

    class Origin(models.TextChoices):
        MANUAL = "manual", "written by hand"
        IMPORTED = "imported", "imported"
        ENRICHED = "enriched", "proposed by a language model"
        REVIEW = "review", "from an expert's review"

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="entries"
    )
    document = optional_row(Document, "entries", blank=True, on_delete=models.PROTECT)
    section = optional_row(Section, "entries", blank=True)
    place = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="Place of an imported entry in its source, such as a page or a line.",
    )
    own_key = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="Id of the row in the system that the entry was imported from.",
    )
    source_key = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Digest that identifies it within its source.",
    )
    source_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Digest of its text in the latest version of the source; empty if it is no longer there.",
    )
    question = models.CharField(
        max_length=1000,
        blank=True,
        help_text="Set for a question-and-answer entry, whose text is shown word for word.",
    )
    text = models.TextField(max_length=8000)
    state = models.CharField(max_length=12, choices=State.choices, default=State.DRAFT)
    origin = models.CharField(
        max_length=8, choices=Origin.choices, default=Origin.MANUAL
    )
    confidence = models.FloatField(
        help_text="In (0, 1]; 1 if and only if a person verified it."
    )
    audience = models.ForeignKey(
        Audience, on_delete=models.PROTECT, related_name="entries"
    )
    language = models.CharField(
        max_length=2,
        choices=KnowledgeBase.Language.choices,
        default=KnowledgeBase.Language.ENGLISH,
    )
    valid_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="From this time on it is never used as evidence.",
    )
    owner = optional_user("owned_entries", blank=True)
    product_line = tag_of(Tag.Facet.PRODUCT_LINE, "entries_of_product_line")
    line_of_business = tag_of(Tag.Facet.LINE_OF_BUSINESS, "entries_of_line_of_business")
    verified_by = optional_user(
        "verified_entries", blank=True, on_delete=models.PROTECT
    )
    verified_at = models.DateTimeField(null=True, blank=True)
    review_interval_days = models.PositiveIntegerField(
        "review interval",
        null=True,
        blank=True,
        validators=REVIEW_INTERVAL_LIMITS,
        help_text="Days between verifications; empty: the knowledge base's interval.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    search_vector = GeneratedField(
        expression=Case(
            *(
                When(language=language, then=_words(config))
                for language, config in SEARCH_CONFIGURATIONS.items()
                if language != "xx"
            ),
            default=_words(SEARCH_CONFIGURATIONS["xx"]),
        ),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    objects = EntryQuerySet.as_manager()

    revision_number: int  # from `with_revision_number`

    class Meta:
        ordering = ["-updated_at", "-pk"]
        verbose_name_plural = "entries"
        indexes = [
            GinIndex(fields=["search_vector"], name="entry_search_vector"),
            models.Index(fields=["-created_at", "-id"], name="entry_newest"),
            models.Index(fields=["-updated_at", "-id"], name="entry_changed"),
            # Covers the fields that search checks for every entry, so that the visible
            # ones can be counted without reading the rows.
            models.Index(
                fields=["knowledge_base", "audience", "state"],
                include=["id", "confidence", "valid_until"],
                name="entry_visibility",
            ),
            # Before a refusal, search looks for expired entries among the current ones.
            models.Index(
                fields=["knowledge_base", "valid_until"],
                condition=Q(valid_until__isnull=False),
                name="entry_ends",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(confidence__gt=0) & Q(confidence__lte=1),
                name="entry_confidence_in_range",
            ),
            models.CheckConstraint(
                condition=(
                    Q(
                        state="verified",
                        confidence=1,
                        verified_by__isnull=False,
                        verified_at__isnull=False,
                    )
                    | ~Q(state="verified") & Q(confidence__lt=1)
                    | Q(state="retired")
                ),
                name="entry_certain_only_when_verified",
            ),
            models.CheckConstraint(condition=~Q(text=""), name="entry_has_text"),
            models.UniqueConstraint(
                fields=["document", "source_key"],
                condition=~Q(source_key=""),
                name="entry_once_in_its_source",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:80]

    @property
    def said(self) -> str:
        """The question, if any, and the start of the text: at most 120 characters."""
        return Truncator(f"{self.question} {self.text}".lstrip()).chars(SAID_LIMIT)

    def has_expired(self, at: datetime) -> bool:
        return self.valid_until is not None and self.valid_until <= at


SERVED_STATES = (Entry.State.IN_REVIEW, Entry.State.VERIFIED, Entry.State.NEEDS_REVIEW)


class EntryWords(models.Model):
    """A view of the full-text vectors of the entries that the reader may see.

    Unlike a query under a row-level policy, it can use the full-text index.
    """

    language = models.CharField(max_length=2)
    search_vector = SearchVectorField()

    class Meta:
        managed = False
        db_table = "kb_entrywords"

    def __str__(self) -> str:
        return f"words of entry {self.pk}"


class RevisionOutlineQuerySet(models.QuerySet["RevisionOutline"]):
    def outside_of(self, user: AnyUser) -> Self:
        """Outlines with an audience that the user is not in, or that is deleted."""
        if isinstance(user, User) and user.is_active and user.is_superuser:
            return self.none()
        mine = Audience.objects.visible_to(user).order_by().values("pk")
        return self.exclude(audience_id__in=mine, audience_id__isnull=False)


class RevisionOutline(models.Model):
    """A view of each revision's audience, without its words or a row-level policy.

    It answers for many rows whether someone may read their revisions; the policy would
    search all uses of each hidden revision.
    """

    entry_id = models.BigIntegerField()
    number = models.PositiveIntegerField()
    audience_id = models.BigIntegerField(null=True)

    objects = RevisionOutlineQuerySet.as_manager()

    class Meta:
        managed = False
        db_table = "kb_revisionoutline"

    def __str__(self) -> str:
        return f"entry {self.entry_id} revision {self.number}"


# The row referred to may be deleted later; the id stays.
_DETACHED: dict[str, Any] = {
    "on_delete": models.DO_NOTHING,
    "db_constraint": False,
    "db_index": False,
}


class RevisionQuerySet(models.QuerySet["Revision"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Revisions in the user's audiences, of entries that the user may see now."""
        hidden = RevisionOutline.objects.outside_of(user).filter(pk=OuterRef("pk"))
        return self.filter(
            ~Exists(hidden), entry__audience__in=Audience.objects.visible_to(user)
        )


class Revision(models.Model):
    """An entry at one time; immutable (enforced by a trigger), cited by answers.

    Every column but the number, author, reason, time and `database_user` has a namesake
    in Entry: by these names a trigger checks at each commit that the newest revision
    equals the entry, and writes the one that is missing. A new column of Entry whose
    history matters only needs a namesake here.

    It keeps its own audience: opening an entry to others does not open its past.
    """

    entry = models.ForeignKey(
        Entry,
        on_delete=models.CASCADE,
        related_name="revisions",
        db_index=False,  # covered by `revision_audience`
    )
    number = models.PositiveIntegerField(help_text="1-based, without gaps.")
    question = models.CharField(max_length=1000, blank=True)
    text = models.TextField(max_length=8000)
    state = models.CharField(max_length=12, choices=Entry.State.choices)
    confidence = models.FloatField()
    valid_until = models.DateTimeField(null=True, blank=True)
    language = models.CharField(
        max_length=2,
        choices=KnowledgeBase.Language.choices,
        default=KnowledgeBase.Language.ENGLISH,
    )
    audience = optional_row(Audience, "+", **_DETACHED)
    document = optional_row(Document, "+", **_DETACHED)
    section = optional_row(Section, "+", **_DETACHED)
    owner = optional_user("+", **_DETACHED)
    product_line = optional_row(Tag, "+", **_DETACHED)
    line_of_business = optional_row(Tag, "+", **_DETACHED)
    verified_by = optional_user(
        "verified_revisions", on_delete=models.PROTECT, db_index=False
    )
    verified_at = models.DateTimeField(null=True, blank=True)
    review_interval_days = models.PositiveIntegerField(null=True, blank=True)
    author = optional_user("revisions", on_delete=models.PROTECT)
    reason = models.CharField(max_length=300, blank=True)
    database_user = models.CharField(
        max_length=63,
        blank=True,
        help_text="Database user who made a change outside of the services.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RevisionQuerySet.as_manager()

    class Meta:
        ordering = ["entry", "-number"]
        indexes = [
            # Shows whether an entry ever had another audience without reading the rows.
            models.Index(fields=["entry", "audience"], name="revision_audience")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "number"], name="revision_number_unique"
            )
        ]

    def __str__(self) -> str:
        return f"entry {self.entry_id} revision {self.number}"
