"""The playground: a question run up to hard refusal by the real code, not stored."""

from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.people import AnyUser
from accounts.rest import KnownQueryView
from accounts.roles import IsAgent
from kb.documents.models import KnowledgeBase
from kb.search.past import one_of_few
from kb.types import Evidence
from qa.answers.api import EXAMPLE, QuestionSerializer, read_question
from qa.answers.models import Answer
from qa.answers.serializers import SignalSerializer
from qa.pipeline import finish
from qa.pipeline.gates import Decision, Gate, Reason
from qa.pipeline.staleness import current_calibration
from qa.pipeline.values import Calibration, Trace
from qa.policies.models import Policy
from qa.policies.services import active_policy

from .asking import look, sources_for
from .past import prepare
from .questions import new_question


@dataclass(frozen=True, slots=True)
class Preview:
    trace: Trace
    decision: Decision
    policy: Policy
    calibration: Calibration
    as_of: datetime | None = None


def preview(
    text: str,
    *,
    asker: AnyUser,
    knowledge_base: KnowledgeBase | None = None,
    language: str | None = None,
    as_of: datetime | None = None,
) -> Preview:
    """Run a question up to hard refusal, as of a past moment if one is given.

    Evidence is retrieved whatever the policy's retrieval timing; no model is asked.
    """
    row = new_question(
        text,
        asker=asker,
        channel=Answer.Channel.API,
        knowledge_base=knowledge_base,
        language=language,
    )
    if as_of:
        policy, frozen, scope = prepare(row.knowledge_base, asker=asker, at=as_of)
    else:
        policy = active_policy(row.knowledge_base)
        frozen, scope = policy.as_value(), None
    sources = replace(sources_for(row, frozen, scope=scope), closed_book=None)
    trace = finish(look(row, sources, frozen))
    return Preview(
        trace=trace,
        decision=trace.decisions[0],
        policy=policy,
        calibration=current_calibration(frozen, trace.retrieval),
        as_of=as_of,
    )


class FoundSerializer(serializers.Serializer[Evidence]):
    """An entry that the search found, with its scores; the best is first."""

    entry = serializers.IntegerField(source="entry_id")
    revision = serializers.IntegerField(source="revision_id")
    text = serializers.CharField()
    question = serializers.CharField(allow_blank=True)
    document = serializers.CharField(source="document_title", allow_blank=True)
    section = serializers.CharField(allow_blank=True)
    distance = serializers.FloatField(help_text="Euclidean, of unit vectors, 0 to 2.")
    confidence = serializers.FloatField(help_text="In (0, 1]; 1 when verified.")
    ratio = serializers.FloatField()
    verified = serializers.BooleanField(source="is_verified")
    verified_at = serializers.DateTimeField(allow_null=True)
    valid_until = serializers.DateTimeField(allow_null=True)
    vector_rank = serializers.IntegerField(
        allow_null=True,
        help_text="By the nearest of all its vectors; null if only the words matched.",
    )
    text_rank = serializers.IntegerField(
        allow_null=True, help_text="By words; null if only the meaning matched."
    )
    score = serializers.FloatField(
        help_text="Combines nearness and words; used for the order, never to decide."
    )


class PlaygroundSerializer(serializers.Serializer[Preview]):
    """What a question would find, and whether hard refusal would let it pass."""

    question = serializers.CharField(source="trace.question.text")
    passes = serializers.SerializerMethodField(
        help_text="Whether hard refusal would let it pass."
    )
    reason = serializers.ChoiceField(
        [each.value for each in Reason],
        source="decision.shown_reason",
        allow_null=True,
        help_text="Why it would not pass, as far as you may know.",
    )
    verbatim = serializers.SerializerMethodField(
        help_text="Whether a verified entry would be the answer, word for word."
    )
    entry = serializers.SerializerMethodField(
        help_text="The verified entry that would be the answer by itself, if any."
    )
    route = serializers.ChoiceField(["exact", "hnsw"], source="trace.retrieval.route")
    deep = serializers.BooleanField(
        source="trace.retrieval.deep",
        help_text="Whether a deeper search was needed.",
    )
    visible = serializers.IntegerField(
        source="trace.retrieval.visible",
        help_text="Number of entries that you may see, up to a limit.",
    )
    evidence = serializers.SerializerMethodField()
    signals = serializers.SerializerMethodField()
    policy = serializers.CharField(source="policy.name")
    policy_version = serializers.IntegerField(source="policy.version")
    alpha = serializers.FloatField(source="policy.alpha")
    calibration = serializers.ChoiceField([each.value for each in Calibration])
    embedder = serializers.CharField(source="trace.retrieval.embedder")
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="The moment that was searched; null: now."
    )
    milliseconds = serializers.SerializerMethodField()

    def get_passes(self, found: Preview) -> bool:
        return not found.decision.refused

    def get_verbatim(self, found: Preview) -> bool:
        return self.get_passes(found) and found.trace.verbatim.evidence is not None

    def get_entry(self, found: Preview) -> int | None:
        return next((piece.entry_id for piece in found.trace.entries), None)

    @extend_schema_field(FoundSerializer(many=True))
    def get_evidence(self, found: Preview) -> list[dict[str, Any]]:
        one = FoundSerializer()
        return [
            one.to_representation(piece) for piece in found.trace.retrieval.evidence
        ]

    @extend_schema_field(SignalSerializer(many=True))
    def get_signals(self, found: Preview) -> list[dict[str, Any]]:
        # Whether sources agree is not part of the search result.
        measured = (s for s in found.trace.signals if s.gate is not Gate.AGREEMENT)
        return [asdict(signal) for signal in measured]

    def get_milliseconds(self, found: Preview) -> dict[str, float]:
        looked = found.trace.retrieval
        return {"embed": looked.embed_milliseconds, "sql": looked.sql_milliseconds}


class SearchView(KnownQueryView):
    """The playground."""

    permission_classes = [IsAgent]
    throttle_scope = "ask"

    @extend_schema(
        operation_id="search",
        request=QuestionSerializer,
        examples=[
            OpenApiExample("A question", {"question": EXAMPLE}, request_only=True)
        ],
        responses={
            200: PlaygroundSerializer,
            404: "There is no such knowledge base.",
            409: "Too many entries of that moment have to be embedded first.",
        },
    )
    def post(self, request: Request) -> Response:
        """Run a question up to hard refusal by the code that answers; store nothing."""
        question = read_question(request)
        with one_of_few() if "as_of" in question else nullcontext():
            found = preview(**question)
        return Response(PlaygroundSerializer(found).data)
