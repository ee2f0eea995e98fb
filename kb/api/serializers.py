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
from kb.models import Audience, Document, Entry, KnowledgeBase, Revision
from kb.services import audiences, documents, entries

from .fields import (
    AudienceField,
    DocumentField,
    KnowledgeBaseField,
    SectionField,
    UserField,
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

    text = StrictCharField(max_length=entries.TEXT_LIMIT)
    question = StrictCharField(
        max_length=entries.QUESTION_LIMIT,
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
        max_length=entries.REASON_LIMIT,
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
            attrs["knowledge_base"] = _knowledge_base_of(attrs)
        return attrs


class EntryChangesSerializer(_EntryFields):
    """What to change; what is left out stays."""

    text = StrictCharField(max_length=entries.TEXT_LIMIT, required=False)
    audience = AudienceField(required=False)
    revision = StrictIntegerField(
        required=False,
        min_value=1,
        help_text="The revision it was made on; refused with 409 if there is another.",
    )


class ActionSerializer(StrictSerializer):
    """Why, and on which revision."""

    reason = StrictCharField(
        max_length=entries.REASON_LIMIT, allow_blank=True, required=False, default=""
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


class SectionSerializer(serializers.Serializer[documents.SectionNode]):
    """A heading with what stands below it, in order."""

    id = serializers.IntegerField()
    heading = serializers.CharField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add the sections below, which have the same shape."""
        fields = super().get_fields()
        fields["sections"] = SectionSerializer(many=True, source="children")
        return fields


class SectionNodeSerializer(StrictSerializer):
    """A heading to be written; with the `id` of a section it is, or without for a new one."""

    id = StrictIntegerField(required=False, min_value=1)
    heading = StrictCharField(max_length=documents.HEADING_LIMIT)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add the sections below, which have the same shape."""
        fields = super().get_fields()
        fields["sections"] = SectionNodeSerializer(many=True, required=False)
        return fields


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """A document without its sections."""

    knowledge_base = serializers.SlugRelatedField[KnowledgeBase](
        slug_field="slug", read_only=True
    )
    audience = serializers.SlugRelatedField[Audience](slug_field="slug", read_only=True)
    created_by = serializers.CharField(
        source="created_by.username", default=None, read_only=True, allow_null=True
    )

    class Meta:
        model = Document
        fields = [
            "id",
            "knowledge_base",
            "title",
            "source",
            "audience",
            "created_by",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class DocumentDetailSerializer(DocumentSerializer):
    """A document with the tree of its sections."""

    sections = serializers.SerializerMethodField()

    class Meta(DocumentSerializer.Meta):
        fields = [*DocumentSerializer.Meta.fields, "sections"]
        read_only_fields = fields

    @extend_schema_field(SectionSerializer(many=True))
    def get_sections(self, document: Document) -> Any:  # noqa: ANN401  # JSON
        """Return the tree, from one query."""
        tree = documents.section_tree(list(document.sections.all()))
        return [SectionSerializer().to_representation(node) for node in tree]


class DocumentChangesSerializer(StrictSerializer):
    """What to change; what is left out stays. `sections` is the whole tree."""

    title = StrictCharField(max_length=documents.TITLE_LIMIT, required=False)
    source = StrictCharField(  # type: ignore[assignment]  # the document's, no field's
        max_length=documents.SOURCE_LIMIT, allow_blank=True, required=False
    )
    audience = AudienceField(required=False)
    sections = SectionNodeSerializer(
        many=True,
        required=False,
        help_text="The whole tree: sections it does not name go, their entries stay.",
    )

    def validate_sections(
        self, value: list[dict[str, Any]]
    ) -> tuple[documents.SectionNode, ...]:
        """Turn the parsed tree into nodes."""
        return tuple(_node(each) for each in value)


class NewDocumentSerializer(DocumentChangesSerializer):
    """A document to be written."""

    title = StrictCharField(max_length=documents.TITLE_LIMIT)
    audience = AudienceField(help_text="The audience that its new entries get.")
    knowledge_base = KnowledgeBaseField(
        required=False, help_text="By default the only one there is."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Find the knowledge base that was not named."""
        if "knowledge_base" not in attrs:
            attrs["knowledge_base"] = _knowledge_base_of(attrs)
        return attrs


class AudienceSerializer(serializers.ModelSerializer[Audience]):
    """Who may see what."""

    groups = serializers.SlugRelatedField[Any](
        slug_field="name", many=True, read_only=True
    )

    class Meta:
        model = Audience
        fields = ["slug", "name", "everyone", "groups"]
        read_only_fields = fields


class AudienceChangesSerializer(StrictSerializer):
    """What to change; what is left out stays."""

    name = StrictCharField(max_length=audiences.NAME_LIMIT, required=False)
    everyone = StrictBooleanField(
        required=False, help_text="Every signed-in user belongs to it."
    )
    groups = serializers.ListField(
        child=StrictCharField(max_length=150),
        required=False,
        max_length=1000,
        help_text="Names of groups whose members belong to it.",
    )


class NewAudienceSerializer(AudienceChangesSerializer):
    """An audience to be made."""

    slug = StrictCharField(max_length=audiences.SLUG_LIMIT)
    name = StrictCharField(max_length=audiences.NAME_LIMIT)


def _node(parsed: dict[str, Any]) -> documents.SectionNode:
    return documents.SectionNode(
        heading=parsed["heading"],
        children=tuple(_node(each) for each in parsed.get("sections", [])),
        id=parsed.get("id"),
    )


def _knowledge_base_of(attrs: dict[str, Any]) -> KnowledgeBase:
    section = attrs.get("section")
    document = attrs.get("document") or (section.document if section else None)
    if document is not None:
        return document.knowledge_base  # type: ignore[no-any-return]  # a Document's
    found = list(KnowledgeBase.objects.all()[:2])
    if len(found) != 1:
        said = "There are several" if found else "There is none"
        raise serializers.ValidationError(
            {"knowledge_base": [f"{said}; name the one it belongs to."]}
        )
    return found[0]
