"""Dify's external knowledge API: evidence for a question of an assistant in Dify.

https://docs.dify.ai/en/use-dify/knowledge/external-knowledge-api
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsAgent, caller
from kb.types import Evidence
from qa.answers.playground import preview
from qa.answers.questions import find_knowledge_base

# As Dify suggests: 1002 the key was refused, 2001 the knowledge does not exist.
_CODES = {401: 1002, 403: 1002, 404: 2001}


class RetrievalSettingSerializer(rest.StrictSerializer):
    top_k = rest.StrictIntegerField(min_value=1, help_text="Maximum number of records.")
    score_threshold = rest.StrictFloatField(
        default=0.0, min_value=0.0, max_value=1.0, help_text="0 if it is off in Dify."
    )


class RetrievalSerializer(rest.StrictSerializer):
    """A question from Dify."""

    knowledge_id = rest.StrictCharField(
        max_length=50,
        help_text="A knowledge base's slug: Dify's external knowledge ID.",
    )
    query = rest.StrictCharField()
    retrieval_setting = RetrievalSettingSerializer()
    metadata_condition = serializers.JSONField(
        default=None, allow_null=True, help_text="Must be null."
    )

    def validate_metadata_condition(self, condition: object) -> None:
        if condition is not None:
            raise serializers.ValidationError(
                "Records cannot be filtered by metadata; leave it out."
            )


class MetadataSerializer(serializers.Serializer[Evidence]):
    entry = serializers.IntegerField(source="entry_id")
    revision = serializers.IntegerField(source="revision_id")
    question = serializers.CharField(allow_blank=True)
    section = serializers.CharField(allow_blank=True)
    verified = serializers.BooleanField(source="is_verified")
    confidence = serializers.FloatField(help_text="In (0, 1]; 1 when verified.")
    valid_until = serializers.DateTimeField(allow_null=True)


class RecordSerializer(serializers.Serializer[Evidence]):
    content = serializers.SerializerMethodField(help_text="With its question, if any.")
    score = serializers.SerializerMethodField(
        help_text="Cosine similarity, at least 0."
    )
    title = serializers.CharField(source="document_title", allow_blank=True)
    metadata = MetadataSerializer(source="*")

    def get_content(self, piece: Evidence) -> str:
        return f"{piece.question}\n{piece.text}" if piece.question else piece.text

    def get_score(self, piece: Evidence) -> float:
        return similarity(piece)


class RecordsSerializer(serializers.Serializer[Any]):
    records = RecordSerializer(many=True)


def similarity(piece: Evidence) -> float:
    """Return the cosine of two unit vectors from their distance, at least 0."""
    return max(0.0, 1.0 - piece.distance**2 / 2.0)


_MORE_IN_ERRORS = {
    "type": "object",
    "required": ["error_code", "error_msg"],
    "properties": {
        "error_code": {
            "type": "integer",
            "description": "Dify's: 1002 for 401 and 403, 2001 for 404; else the status.",
        },
        "error_msg": {"type": "string"},
    },
}


class RetrievalView(rest.KnownQueryView, GenericAPIView[Any]):
    permission_classes = [IsAgent]
    takes_idempotency_key = False  # it only reads
    more_in_errors = _MORE_IN_ERRORS
    throttle_scope = "ask"
    serializer_class = RecordsSerializer

    def handle_exception(self, exc: Exception) -> Response:
        response: Response = super().handle_exception(exc)
        response.data = {
            **response.data,
            "error_code": _CODES.get(response.status_code, response.status_code),
            "error_msg": response.data["error"]["message"],
        }
        return response

    @extend_schema(
        operation_id="dify_retrieval",
        request=RetrievalSerializer,
        responses={200: RecordsSerializer, 404: "There is no such knowledge base."},
    )
    def post(self, request: Request) -> Response:
        """Find what Dify's assistants answer from; nothing if no entry is near enough.

        If hard refusal would stop the question there are no records, so that no
        assistant answers from what is merely nearest. Nothing is stored.
        """
        given, asker = (
            rest.validated(RetrievalSerializer, request.data),
            caller(request),
        )
        wanted = given["retrieval_setting"]
        found = preview(
            given["query"],
            asker=asker,
            knowledge_base=find_knowledge_base(given["knowledge_id"], asker=asker),
        )
        evidence = [] if found.decision.refused else found.trace.retrieval.evidence
        shown = RecordSerializer()
        records = [
            shown.to_representation(piece)
            for piece in evidence
            if similarity(piece) >= wanted["score_threshold"]
        ]
        records.sort(key=lambda record: -record["score"])
        return Response({"records": records[: wanted["top_k"]]})
