"""The playground: a question up to hard refusal, by the code that answers; nothing is kept."""

from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.roles import IsAgent
from kb.documents.models import KnowledgeBase
from kb.types import Evidence
from qa.answers.api import QuestionSerializer, read_question
from qa.answers.models import Answer
from qa.answers.serializers import SignalSerializer
from qa.pipeline.gates import Decision, Reason
from qa.pipeline.language_model import LanguageModel
from qa.pipeline.staleness import calibration_of
from qa.pipeline.values import Calibration, Question, Retrieval, VerbatimMatch
from qa.policies.models import Policy
from qa.policies.services import active_policy

from .asking import new_question, stages_of


@dataclass(frozen=True, slots=True)
class Preview:
    """What hard refusal and the verbatim tier would say, and what they would say it on."""

    question: Question
    retrieval: Retrieval
    verbatim: VerbatimMatch
    decision: Decision
    policy: Policy
    calibration: Calibration


def preview(
    text: str,
    *,
    asker: AbstractBaseUser | AnonymousUser,
    knowledge_base: KnowledgeBase | None = None,
    language: str | None = None,
) -> Preview:
    """Run a question up to hard refusal."""
    row = new_question(text, asker, knowledge_base, language, Answer.Channel.API)
    policy = active_policy(row.knowledge_base)
    stages = stages_of(row, policy, _never)
    question, retrieval, verbatim, decision = (next(stages) for _ in range(4))
    if not (
        isinstance(question, Question)
        and isinstance(retrieval, Retrieval)
        and isinstance(verbatim, VerbatimMatch)
        and isinstance(decision, Decision)
    ):
        msg = f"The pipeline's stages changed: {question}, {retrieval}, {decision}"
        raise TypeError(msg)
    return Preview(
        question=question,
        retrieval=retrieval,
        verbatim=verbatim,
        decision=decision,
        policy=policy,
        calibration=calibration_of(policy.as_value(), retrieval),
    )


def _never() -> LanguageModel:
    msg = "The playground ends before any language model."
    raise RuntimeError(msg)


class FoundSerializer(serializers.Serializer[Evidence]):
    """An entry that was found, with how; best first."""

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
        allow_null=True, help_text="By distance; null if only the words matched."
    )
    text_rank = serializers.IntegerField(
        allow_null=True, help_text="By words; null if only the meaning matched."
    )
    score = serializers.FloatField(help_text="Of both ranks; orders, never decides.")


class PlaygroundSerializer(serializers.Serializer[Preview]):
    """What a question would find, and whether hard refusal would let it pass."""

    question = serializers.CharField(source="question.text")
    passes = serializers.SerializerMethodField(
        help_text="Hard refusal would let it pass."
    )
    reason = serializers.ChoiceField(
        [each.value for each in Reason],
        source="decision.shown_reason",
        allow_null=True,
        help_text="Why not, as far as you may know.",
    )
    verbatim = serializers.SerializerMethodField(
        help_text="A verified entry would be the answer, word for word."
    )
    route = serializers.ChoiceField(["exact", "hnsw"], source="retrieval.route")
    deep = serializers.BooleanField(
        source="retrieval.deep", help_text="It took a second, deeper look."
    )
    visible = serializers.IntegerField(
        source="retrieval.visible", help_text="Entries you may see, up to a limit."
    )
    evidence = serializers.SerializerMethodField()
    signals = serializers.SerializerMethodField()
    policy = serializers.CharField(source="policy.name")
    policy_version = serializers.IntegerField(source="policy.version")
    alpha = serializers.FloatField(source="policy.alpha")
    calibration = serializers.ChoiceField([each.value for each in Calibration])
    embedder = serializers.CharField(source="retrieval.embedder")
    milliseconds = serializers.SerializerMethodField()

    def get_passes(self, found: Preview) -> bool:
        """Tell whether the question would go on to an answer."""
        return not found.decision.refused

    def get_verbatim(self, found: Preview) -> bool:
        """Tell whether the verbatim tier would answer."""
        return self.get_passes(found) and found.verbatim.evidence is not None

    @extend_schema_field(FoundSerializer(many=True))
    def get_evidence(self, found: Preview) -> list[dict[str, Any]]:
        """Return what was found, best first."""
        one = FoundSerializer()
        return [one.to_representation(piece) for piece in found.retrieval.evidence]

    @extend_schema_field(SignalSerializer(many=True))
    def get_signals(self, found: Preview) -> list[dict[str, Any]]:
        measured = (*found.verbatim.signals, *found.decision.signals)
        return [asdict(signal) for signal in measured]

    def get_milliseconds(self, found: Preview) -> dict[str, float]:
        """Return the time of the two parts of a look."""
        looked = found.retrieval
        return {"embed": looked.embed_milliseconds, "sql": looked.sql_milliseconds}


class SearchView(APIView):
    """The playground."""

    permission_classes = [IsAgent]
    throttle_scope = "ask"

    @extend_schema(
        operation_id="search",
        request=QuestionSerializer,
        responses={
            200: PlaygroundSerializer,
            404: OpenApiResponse(description="There is no such knowledge base."),
        },
    )
    def post(self, request: Request) -> Response:
        """Try a question up to hard refusal, by the code that answers; nothing is kept."""
        found = preview(**read_question(request))
        return Response(PlaygroundSerializer(found).data)
