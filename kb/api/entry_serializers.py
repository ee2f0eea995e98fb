from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from kb.models import Audience, Entry, KnowledgeBase, Revision
from kb.services.entry_values import QUESTION_LIMIT, REASON_LIMIT, TEXT_LIMIT

from .fields import (
    AudienceField,
    DocumentField,
    KnowledgeBaseField,
    SectionField,
    UserField,
    knowledge_base_of,
)

WRITABLE_STATES = [
    (state.value, state.label)
    for state in (Entry.State.DRAFT, Entry.State.IN_REVIEW, Entry.State.NEEDS_REVIEW)
]


CONFIDENCE_HELP = "Above 0 and below 1; 1 comes from verifying alone."


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
    verified = serializers.SerializerMethodField()
    expired = serializers.SerializerMethodField()
    owner = serializers.CharField(
        source="owner.username", default=None, read_only=True, allow_null=True
    )
    verified_by = serializers.CharField(
        source="verified_by.username", default=None, read_only=True, allow_null=True
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
            "verified",
            "verified_by",
            "verified_at",
            "revision",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    def get_verified(self, entry: Entry) -> bool:
        """Tell whether a person vouches for it."""
        return entry.state == Entry.State.VERIFIED

    def get_expired(self, entry: Entry) -> bool:
        """Tell whether it is past its `valid_until`, and never evidence."""
        return entry.valid_until is not None and entry.valid_until <= timezone.now()


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
    owner = UserField(
        required=False, allow_null=True, help_text="Who looks after it: a user name."
    )
    state = serializers.ChoiceField(
        choices=WRITABLE_STATES,
        required=False,
    )
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
        """Find the knowledge base that was not named."""
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


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    """What an entry said at one time."""

    author = serializers.CharField(
        source="author.username", default=None, read_only=True, allow_null=True
    )

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
            "author",
            "reason",
            "created_at",
        ]
        read_only_fields = fields
