import re
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts import rest
from kb.entries.due import REASON_CHOICES
from kb.entries.models import Entry, Revision
from kb.entries.values import EDITABLE, MIN_CONFIDENCE, REASON_LIMIT, SHOWN, end_of_day
from kb.entries.values import WRITABLE_STATES as _WRITABLE_STATES
from kb.interface.api import (
    KnowledgeBaseField,
    KnowledgeSerializer,
    ReferringSerializer,
)
from kb.text.cleaning import MAX_WORDINGS, WORDING_LIMIT

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
WRITABLE_STATES = [(state.value, state.label) for state in _WRITABLE_STATES]


class EntrySerializer(ReferringSerializer):
    """An entry as it is now; send `revision` with a change."""

    document_title = serializers.CharField(
        source="document.title", default="", read_only=True
    )
    section_heading = serializers.CharField(
        source="section.heading", default="", read_only=True
    )
    verified = serializers.SerializerMethodField(
        help_text="Whether a person has verified it."
    )
    expired = serializers.SerializerMethodField(
        help_text="Whether it is past its `valid_until`, and never evidence."
    )
    review_due = serializers.DateTimeField(
        source="upkeep.review_due",
        read_only=True,
        allow_null=True,
        help_text="When a verified entry has to be verified again.",
    )
    overdue = serializers.SerializerMethodField(
        help_text="Whether its review is overdue; it may still be evidence."
    )
    uses = serializers.IntegerField(
        source="upkeep.uses",
        read_only=True,
        help_text="Answers that cited it.",
    )
    revision = serializers.IntegerField(source="revision_number", read_only=True)

    class Meta:
        model = Entry
        fields = [
            "id", *SHOWN, "document_title", "section_heading", "verified", "expired",
            "review_due", "overdue", "uses", "revision",
        ]  # fmt: skip

    def get_verified(self, entry: Entry) -> bool:
        return entry.state == Entry.State.VERIFIED

    def get_overdue(self, entry: Entry) -> bool:
        return entry.upkeep.is_overdue(timezone.now())

    def get_expired(self, entry: Entry) -> bool:
        return entry.has_expired(timezone.now())


class DueReasonSerializer(serializers.Serializer[Any]):
    """A reason why an entry is due."""

    why = serializers.ChoiceField(
        source="reason", choices=REASON_CHOICES, read_only=True
    )
    since = serializers.DateTimeField(
        read_only=True, help_text="When it began; for an expiry, when it expires."
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

    @extend_schema_field(DueReasonSerializer(many=True))
    def get_due(self, entry: Entry) -> object:
        reasons = entry.upkeep.reasons(timezone.now())
        return DueReasonSerializer(reasons, many=True).data


@extend_schema_field(
    {
        "type": "number",
        "format": "double",
        "minimum": MIN_CONFIDENCE,
        "maximum": 1,
        "exclusiveMaximum": True,
    }
)
class _UnverifiedConfidenceField(rest.StrictFloatField):
    """A number whose range the service checks, because a verified entry keeps its 1."""


class OverrideField(rest.StrictCharField):
    """Why the entry is right although verified entries contradict it."""

    def __init__(self) -> None:
        super().__init__(
            max_length=REASON_LIMIT,
            allow_blank=True,
            required=False,
            help_text="Why it is right although a verified entry contradicts it: that "
            "one then goes to review. Without a reason, this one does.",
        )


class _StateField(serializers.ChoiceField):
    """A writable state; the error for any other explains how to reach it."""

    _WAYS = {
        Entry.State.VERIFIED: "POST /api/v1/entries/ID/verify, or `verify` on creation",
        Entry.State.RETIRED: "POST /api/v1/entries/ID/retire",
    }

    def __init__(self) -> None:
        super().__init__(choices=WRITABLE_STATES, required=False)

    def to_internal_value(self, data: Any) -> Any:
        for state, way in self._WAYS.items():
            if data == state:
                raise serializers.ValidationError(
                    f"An entry becomes {state.value} by {way}."
                )
        return super().to_internal_value(data)


class _ValidityField(rest.StrictMomentField):
    """A moment, or a day, which stands for its end."""

    def to_internal_value(self, value: object) -> datetime:
        if isinstance(value, str) and _DAY.fullmatch(value):
            with suppress(ValueError):  # the library reports what is wrong with it
                return end_of_day(date.fromisoformat(value)).astimezone(UTC)
        return super().to_internal_value(value)


class EntryChangesSerializer(KnowledgeSerializer):
    """Changes to an entry; omitted fields stay as they are."""

    valid_until = _ValidityField(
        allow_null=True,
        required=False,
        help_text="Never evidence after it; a date means the end of that day.",
    )
    state = _StateField()
    override = OverrideField()
    confidence = _UnverifiedConfidenceField(
        required=False, help_text="Above 0 and below 1; only verifying sets it to 1."
    )
    reason = rest.StrictCharField(
        max_length=REASON_LIMIT,
        allow_blank=True,
        required=False,
        help_text="Kept with the revision.",
    )
    revision = rest.StrictIntegerField(
        required=False,
        min_value=1,
        help_text="The revision it is based on; 409 if there is a newer one.",
    )

    class Meta:
        model = Entry
        fields = [*EDITABLE, "state", "confidence", "override", "reason", "revision"]
        extra_kwargs: dict[str, dict[str, Any]] = {
            "question": {
                "help_text": "One line. Makes it a question-and-answer entry."
            },
            "owner": {"help_text": "Who looks after it: a username."},
            "review_interval_days": {
                "help_text": "Days between reviews; null for the knowledge base's."
            },
        }


class NewEntrySerializer(EntryChangesSerializer):
    """A new entry."""

    knowledge_base = KnowledgeBaseField(
        required=False, help_text="By default the document's, or the only one."
    )
    revision = None  # type: ignore[assignment]  # a new entry has none
    verify = rest.StrictBooleanField(
        required=False, help_text="Verify it at once: confidence 1."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        until = attrs.get("valid_until")
        if attrs.get("verify") and until is not None and until <= timezone.now():
            said = "It has passed; a verified entry needs a later end, or none."
            raise serializers.ValidationError({"valid_until": said})
        return attrs

    class Meta(EntryChangesSerializer.Meta):
        fields = [
            *EntryChangesSerializer.Meta.fields[:-1], "knowledge_base", "origin", "verify"
        ]  # fmt: skip
        extra_kwargs = {
            **EntryChangesSerializer.Meta.extra_kwargs,
            "audience": {
                "required": False, "help_text": "By default, the document's audience.",
            },
        }  # fmt: skip


class ActionSerializer(rest.StrictSerializer):
    """The reason for an action, and the revision it is based on."""

    reason = rest.StrictCharField(
        max_length=REASON_LIMIT, allow_blank=True, required=False, default=""
    )
    revision = rest.StrictIntegerField(required=False, min_value=1)


class VerificationSerializer(ActionSerializer):
    """The reason, the revision, and the justification against contradictions."""

    override = OverrideField()


class AlsoAskedSerializer(rest.StrictSerializer):
    """The alternative questions that an entry answers."""

    also_asked = serializers.ListField(
        child=rest.StrictCharField(max_length=WORDING_LIMIT), max_length=MAX_WORDINGS
    )


class RevisionSerializer(ReferringSerializer):
    """An entry at one time.

    References are null if the row is gone or not visible to the caller: the context's
    "audiences" are the ids of the caller's own.
    """

    audience = serializers.SerializerMethodField()
    document = serializers.SerializerMethodField()
    section_heading = serializers.SerializerMethodField()

    class Meta:
        model = Revision
        fields = [
            "id", "number", "question", "text", "state", "confidence", "valid_until",
            "language", "audience", "document", "section_heading", "owner",
            "verified_by", "verified_at", "author", "reason", "database_user",
            "created_at",
        ]  # fmt: skip
        extra_kwargs = {
            "author": {"help_text": "Null for the system, and for a database user."}
        }

    def get_audience(self, revision: Revision) -> str | None:
        audience = revision.audience
        if audience is None or audience.pk not in self.context["audiences"]:
            return None
        return audience.slug

    def get_document(self, revision: Revision) -> int | None:
        return revision.document_id if self._may_see_place(revision) else None

    def get_section_heading(self, revision: Revision) -> str | None:
        section = revision.section if self._may_see_place(revision) else None
        return None if section is None else section.heading

    def _may_see_place(self, revision: Revision) -> bool:
        document = revision.document
        return (
            document is not None and document.audience_id in self.context["audiences"]
        )
