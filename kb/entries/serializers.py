from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from kb.audiences.models import Audience
from kb.documents.models import REVIEW_INTERVAL_MOST, KnowledgeBase
from kb.entries.due import REASON_CHOICES
from kb.entries.models import Entry, Revision
from kb.entries.values import QUESTION_LIMIT, REASON_LIMIT, TEXT_LIMIT
from kb.interface.api import (
    AudienceField,
    DocumentField,
    KnowledgeBaseField,
    SectionField,
    TagField,
    UserField,
    knowledge_base_of,
)
from kb.tags.models import Tag

WRITABLE_STATES = [
    (state.value, state.label)
    for state in (Entry.State.DRAFT, Entry.State.IN_REVIEW, Entry.State.NEEDS_REVIEW)
]


CONFIDENCE_HELP = "Above 0 and below 1; 1 comes from verifying alone."


def _username(field: str, help_text: str) -> serializers.CharField:
    return serializers.CharField(
        source=f"{field}.username",
        default=None,
        read_only=True,
        allow_null=True,
        help_text=help_text,
    )


class EntrySerializer(serializers.ModelSerializer[Entry]):
    """An entry as it stands; `revision` is the number to send with a change."""

    knowledge_base = serializers.SlugRelatedField[KnowledgeBase](
        slug_field="slug", read_only=True
    )
    audience = serializers.SlugRelatedField[Audience](slug_field="slug", read_only=True)
    document_title = serializers.CharField(
        source="document.title", default="", read_only=True
    )
    section_heading = serializers.CharField(
        source="section.heading", default="", read_only=True
    )
    product_line = serializers.SlugRelatedField[Tag](
        slug_field="slug", read_only=True, allow_null=True
    )
    line_of_business = serializers.SlugRelatedField[Tag](
        slug_field="slug", read_only=True, allow_null=True
    )
    verified = serializers.SerializerMethodField()
    expired = serializers.SerializerMethodField()
    owner = serializers.CharField(
        source="owner.username", default=None, read_only=True, allow_null=True
    )
    verified_by = serializers.CharField(
        source="verified_by.username", default=None, read_only=True, allow_null=True
    )
    review_due = serializers.DateTimeField(
        source="upkeep.review_due",
        read_only=True,
        allow_null=True,
        help_text="When a verified entry is to be verified again.",
    )
    overdue = serializers.SerializerMethodField()
    uses = serializers.IntegerField(
        source="upkeep.uses",
        read_only=True,
        help_text="Answered questions that cited it.",
    )
    revision = serializers.IntegerField(source="revision_number", read_only=True)

    class Meta:
        model = Entry
        fields = [
            "id",
            "knowledge_base",
            "document",
            "document_title",
            "section",
            "section_heading",
            "question",
            "text",
            "state",
            "origin",
            "confidence",
            "audience",
            "language",
            "valid_until",
            "expired",
            "owner",
            "product_line",
            "line_of_business",
            "verified",
            "verified_by",
            "verified_at",
            "review_interval_days",
            "review_due",
            "overdue",
            "uses",
            "revision",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    def get_verified(self, entry: Entry) -> bool:
        """Tell whether a person vouches for it."""
        return entry.state == Entry.State.VERIFIED

    def get_overdue(self, entry: Entry) -> bool:
        """Tell whether its review is overdue; it may still be evidence."""
        return entry.upkeep.is_overdue(timezone.now())

    def get_expired(self, entry: Entry) -> bool:
        """Tell whether it is past its `valid_until`, and never evidence."""
        return entry.valid_until is not None and entry.valid_until <= timezone.now()


class DueReasonSerializer(serializers.Serializer[Any]):
    """Why an entry is due."""

    why = serializers.ChoiceField(
        source="reason", choices=REASON_CHOICES, read_only=True
    )
    since = serializers.DateTimeField(
        read_only=True, help_text="From when on; for an expiry, when it is."
    )


class DueEntrySerializer(EntrySerializer):
    """An entry that is due for review, with the reasons."""

    due_at = serializers.DateTimeField(source="upkeep.due_at", read_only=True)
    due = serializers.SerializerMethodField()
    last_used_at = serializers.DateTimeField(
        source="upkeep.last_used_at", read_only=True, allow_null=True
    )
    up = serializers.IntegerField(source="upkeep.up", read_only=True)
    down = serializers.IntegerField(source="upkeep.down", read_only=True)

    class Meta(EntrySerializer.Meta):
        fields = [
            *EntrySerializer.Meta.fields, "due_at", "due", "last_used_at", "up", "down",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(DueReasonSerializer(many=True))
    def get_due(self, entry: Entry) -> object:
        """Return the reasons, the gravest first."""
        reasons = entry.upkeep.reasons(timezone.now())
        return DueReasonSerializer(reasons, many=True).data


@extend_schema_field(
    {
        "type": "number",
        "format": "double",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 1,
        "exclusiveMaximum": True,
    }
)
class _UnverifiedConfidenceField(StrictFloatField):
    """A number whose range the service checks: a verified entry keeps its 1."""


class OverrideField(StrictCharField):
    """Why what is verified is right, against verified entries that contradict it."""

    def __init__(self) -> None:
        super().__init__(
            max_length=REASON_LIMIT,
            allow_blank=True,
            required=False,
            help_text="Why it is right, against a verified entry that contradicts it: "
            "that one goes to review. Without it, this one does.",
        )


class _EntryFields(StrictSerializer):
    """What creating and changing an entry have in common."""

    text = StrictCharField(max_length=TEXT_LIMIT)
    question = StrictCharField(
        max_length=QUESTION_LIMIT,
        allow_blank=True,
        required=False,
        help_text="One line. Makes it a question-and-answer entry.",
    )
    document = DocumentField(required=False, allow_null=True)
    section = SectionField(required=False, allow_null=True)
    language = serializers.ChoiceField(
        choices=KnowledgeBase.Language.choices, required=False
    )
    valid_until = serializers.DateTimeField(required=False, allow_null=True)
    review_interval_days = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=REVIEW_INTERVAL_MOST,
        help_text="Days between reviews; null: those of the knowledge base.",
    )
    owner = UserField(
        required=False, allow_null=True, help_text="Who looks after it: a user name."
    )
    product_line = TagField(Tag.Facet.PRODUCT_LINE, required=False, allow_null=True)
    line_of_business = TagField(
        Tag.Facet.LINE_OF_BUSINESS, required=False, allow_null=True
    )
    state = serializers.ChoiceField(
        choices=WRITABLE_STATES,
        required=False,
    )
    override = OverrideField()
    confidence = _UnverifiedConfidenceField(required=False, help_text=CONFIDENCE_HELP)
    reason = StrictCharField(
        max_length=REASON_LIMIT,
        allow_blank=True,
        required=False,
        help_text="Kept with the revision.",
    )


class NewEntrySerializer(_EntryFields):
    """An entry to be written."""

    knowledge_base = KnowledgeBaseField(
        required=False,
        help_text="By default the document's, or the only one there is.",
    )
    audience = AudienceField(
        required=False, help_text="By default that of the document."
    )
    origin = serializers.ChoiceField(choices=Entry.Origin.choices, required=False)
    verify = StrictBooleanField(
        required=False, help_text="Vouch for it at once: confidence 1."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "knowledge_base" not in attrs:
            attrs["knowledge_base"] = knowledge_base_of(attrs)
        return attrs


class EntryChangesSerializer(_EntryFields):
    """What to change; what is left out stays."""

    text = StrictCharField(max_length=TEXT_LIMIT, required=False)
    audience = AudienceField(required=False)
    revision = StrictIntegerField(
        required=False,
        min_value=1,
        help_text="The revision it was made on; refused with 409 if there is another.",
    )


class ActionSerializer(StrictSerializer):
    """Why, and on which revision."""

    reason = StrictCharField(
        max_length=REASON_LIMIT, allow_blank=True, required=False, default=""
    )
    revision = StrictIntegerField(required=False, min_value=1)


class VerificationSerializer(ActionSerializer):
    """Why, on which revision, and against what."""

    override = OverrideField()


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    """What an entry was at one time.

    What it belonged to or stood in is null where that is gone or not the caller's to see:
    the context's "audiences" are the ids of the caller's own.
    """

    author = _username("author", "Null for the system, and for a database user.")
    owner = _username("owner", "Who looked after it.")
    verified_by = _username("verified_by", "Who vouched for it.")
    audience = serializers.SerializerMethodField()
    document = serializers.SerializerMethodField()
    section_heading = serializers.SerializerMethodField()

    class Meta:
        model = Revision
        fields = [
            "id",
            "number",
            "question",
            "text",
            "state",
            "confidence",
            "valid_until",
            "language",
            "audience",
            "document",
            "section_heading",
            "owner",
            "verified_by",
            "verified_at",
            "author",
            "reason",
            "database_user",
            "created_at",
        ]
        read_only_fields = fields

    def get_audience(self, revision: Revision) -> str | None:
        """Return the slug of the audience that saw it."""
        audience = revision.audience
        if audience is None or audience.pk not in self.context["audiences"]:
            return None
        return audience.slug

    def get_document(self, revision: Revision) -> int | None:
        """Return the id of the document that it stood in."""
        return revision.document_id if self._may_see_place(revision) else None

    def get_section_heading(self, revision: Revision) -> str | None:
        """Return the heading that it stood under."""
        section = revision.section if self._may_see_place(revision) else None
        return None if section is None else section.heading

    def _may_see_place(self, revision: Revision) -> bool:
        document = revision.document
        return (
            document is not None and document.audience_id in self.context["audiences"]
        )
