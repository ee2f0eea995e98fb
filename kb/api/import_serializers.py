from typing import Any

from rest_framework import serializers

from kb.models import Audience, Import, KnowledgeBase, Tag
from kb.services.documents import SOURCE_LIMIT, TITLE_LIMIT
from kb.services.imports import Upload

from .fields import AudienceField, KnowledgeBaseField, TagField, knowledge_base_of


class ExampleSerializer(serializers.Serializer[dict[str, str]]):
    """One of the facts that were counted."""

    text = serializers.CharField()
    place = serializers.CharField(required=False)
    question = serializers.CharField(required=False)
    before = serializers.CharField(
        required=False, help_text="What the entry says now, where it is to be changed."
    )


class BadRowSerializer(serializers.Serializer[dict[str, str]]):
    """What could not be read, and why."""

    place = serializers.CharField(help_text="Such as line 7.")
    reason = serializers.CharField()


class ImportSerializer(serializers.ModelSerializer[Import]):
    """An import: how it is to be read, and what came or would come of it."""

    knowledge_base = serializers.SlugRelatedField[KnowledgeBase](
        slug_field="slug", read_only=True
    )
    audience = serializers.SlugRelatedField[Audience](slug_field="slug", read_only=True)
    job = serializers.UUIDField(
        source="job_id",
        read_only=True,
        allow_null=True,
        help_text="The job that plans or applies it: progress, cancel, retry.",
    )
    verify = serializers.SerializerMethodField(
        help_text="Whether who imports it vouches for what it says."
    )
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        read_only=True,
        help_text="read, created, changed, restored, retired, unchanged, repeated, bad.",
    )
    examples = serializers.DictField(
        child=ExampleSerializer(many=True), read_only=True, help_text="By count."
    )
    bad_rows = BadRowSerializer(many=True, read_only=True, help_text="The first 100.")
    notes = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Import
        fields = [
            "id", "state", "error", "job", "file_name", "format", "knowledge_base",
            "audience", "source", "document_title", "verify", "counts", "examples",
            "bad_rows", "notes", "created_at", "applied_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_verify(self, row: Import) -> bool:
        """Tell whether somebody vouches."""
        return row.verify_as_id is not None


class NewImportSerializer(serializers.Serializer[Upload]):
    """A file to be imported, as a form with a file."""

    file = serializers.FileField(max_length=200)
    audience = AudienceField(help_text="Who may see what it brings.")
    knowledge_base = KnowledgeBaseField(
        required=False, help_text="By default the only one there is."
    )
    source = serializers.CharField(  # type: ignore[assignment]  # the document's
        max_length=SOURCE_LIMIT,
        required=False,
        default="",
        help_text="Names the document for later versions; by default the file's name.",
    )
    title = serializers.CharField(max_length=TITLE_LIMIT, required=False, default="")
    product_line = TagField(Tag.Facet.PRODUCT_LINE, default=None, allow_null=True)
    line_of_business = TagField(
        Tag.Facet.LINE_OF_BUSINESS, default=None, allow_null=True
    )
    verify = serializers.BooleanField(
        default=False, help_text="You vouch for all that it says."
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only plan it; it may be applied afterwards."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Find the knowledge base that was not named."""
        if "knowledge_base" not in attrs:
            attrs["knowledge_base"] = knowledge_base_of({})
        return attrs

    def upload(self) -> Upload:
        """Return the validated file with its options."""
        values = dict(self.validated_data)
        file: Any = values.pop("file")
        del values["dry_run"]
        return Upload(file=file.file, name=file.name or "", **values)
