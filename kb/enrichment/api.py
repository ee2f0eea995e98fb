from typing import Any, get_args

from django.db import transaction
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from accounts import rest
from accounts.roles import IsCuratorSomewhere, caller
from jobs.api import JobSerializer
from kb.enrichment.agents import SAMPLES
from kb.enrichment.background import SEED_LIMIT, checked, start_enrichment
from kb.enrichment.models import Proposal, ProposalQuerySet
from kb.enrichment.proposals import Decision, Plan, decide
from kb.enrichment.services import MAX_PER_SEED, MAX_PROPOSALS, MAX_SAMPLES, MAX_SEEDS
from kb.entries.models import Entry
from kb.entries.values import REASON_LIMIT
from kb.exceptions import ProposalNotFoundError
from kb.interface.api import (
    AudienceField,
    ChoicesFilter,
    KnowledgeBaseField,
    KnowledgeBaseFilter,
)
from kb.text.cleaning import TEXT_LIMIT

_MAX_AT_ONCE = 100


class NearestSerializer(serializers.Serializer[Any]):
    """A visible entry that was close to the proposal when it was made."""

    entry = serializers.IntegerField()
    distance = serializers.FloatField(help_text="Euclidean, of unit vectors, 0 to 2.")


class ProposalSerializer(rest.ShownSerializer[Proposal]):
    """A language model's proposal, and the decision on it."""

    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    audience = serializers.CharField(source="entry.audience.slug")
    decided_by = rest.username_field("decided_by")
    nearest = serializers.SerializerMethodField()

    class Meta:
        model = Proposal
        fields = [
            "id", "knowledge_base", "audience", "entry", "state", "seed_question",
            "question", "answer", "sentence", "confidence", "stated", "agreement",
            "likelihood", "nearest", "model_name", "model_fingerprint",
            "prompt_version", "random_seed", "job", "decided_by", "decided_at",
            "reason", "created_at",
        ]  # fmt: skip

    @extend_schema_field(NearestSerializer(many=True))
    def get_nearest(self, proposal: Proposal) -> list[dict[str, float]]:
        visible: frozenset[int] = self.context["visible"]
        return [
            {"entry": entry, "distance": distance}
            for entry, distance in proposal.nearest
            if entry in visible
        ]


class NewEnrichmentSerializer(rest.StrictSerializer):
    """A request for a model to make proposals."""

    knowledge_base = KnowledgeBaseField()
    audience = AudienceField(help_text="Who may see the proposals.")
    seeds = rest.StrictListField(
        child=rest.StrictCharField(max_length=SEED_LIMIT),
        min_length=1,
        max_length=MAX_SEEDS,
    )
    per_seed = rest.StrictIntegerField(
        min_value=0,
        max_value=MAX_PER_SEED,
        default=3,
        help_text="Questions made from each seed; 0 answers the seeds themselves.",
    )
    count = rest.StrictIntegerField(
        min_value=1, max_value=MAX_PROPOSALS, default=100, help_text="Maximum number."
    )
    samples = rest.StrictIntegerField(
        min_value=1,
        max_value=MAX_SAMPLES,
        default=SAMPLES,
        help_text="Further answers to each question, to see whether they agree.",
    )


class DecisionSerializer(rest.StrictSerializer):
    """A curator's decision on some proposals."""

    ids = rest.StrictListField(
        child=rest.StrictIntegerField(min_value=1),
        min_length=1,
        max_length=_MAX_AT_ONCE,
    )
    decision = serializers.ChoiceField(
        choices=[(name, name) for name in get_args(Decision)],
        help_text="approve puts it in review; verify verifies it in your name.",
    )
    text = rest.StrictCharField(
        max_length=TEXT_LIMIT,
        required=False,
        help_text="The text of the entry instead; for a single proposal only.",
    )
    reason = rest.StrictCharField(max_length=REASON_LIMIT, default="", allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "text" in attrs and (len(attrs["ids"]) > 1 or attrs["decision"] == "reject"):
            raise serializers.ValidationError(
                {"text": ["Only one approved proposal can be reworded at a time."]}
            )
        return attrs


class DecidedSerializer(serializers.Serializer[Any]):
    """The proposals that were decided."""

    decided = serializers.ListField(child=serializers.IntegerField())


class ProposalFilter(rest.StrictFilterSet):
    """The filters of a list of proposals."""

    knowledge_base = KnowledgeBaseFilter()
    state = ChoicesFilter(Proposal.State)


@extend_schema_view(
    list=extend_schema(summary="List proposals"),
    retrieve=extend_schema(summary="Read a proposal"),
)
class ProposalViewSet(RetrieveModelMixin, rest.RowViewSet[Proposal]):
    """The proposals of language models, newest first; for curators."""

    permission_classes = [IsCuratorSomewhere]
    serializer_class = ProposalSerializer
    filterset_class = ProposalFilter
    not_found = ProposalNotFoundError
    lookup_url_kwarg = "proposal_id"

    def get_queryset(self) -> ProposalQuerySet:
        return Proposal.objects.visible_to(self.request.user).select_related(
            "knowledge_base", "entry__audience", "decided_by"
        )

    def get_serializer(self, *rows: Any, **options: Any) -> BaseSerializer[Any]:
        if not rows:  # for the schema
            return super().get_serializer(**options)
        shown = rows[0] if options.get("many") else rows
        near = {entry for proposal in shown for entry, _ in proposal.nearest}
        visible = Entry.objects.visible_to(self.request.user).filter(pk__in=near)
        context = {
            **self.get_serializer_context(),
            "visible": frozenset(visible.order_by().values_list("pk", flat=True)),
        }
        return ProposalSerializer(*rows, context=context, **options)

    @extend_schema(
        summary="Let a language model propose knowledge",
        request=NewEnrichmentSerializer,
        responses={202: JobSerializer},
    )
    def create(self, request: Request) -> Response:
        """Start a background job that makes proposals from seed questions."""
        plan = checked(Plan(**self.validated(NewEnrichmentSerializer)))
        job = start_enrichment(plan, by=caller(request))
        return Response(JobSerializer(job).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Approve, verify or reject proposals",
        request=DecisionSerializer,
        responses={
            200: DecidedSerializer,
            404: "One does not exist, or you may not see it.",
            409: "One is already decided.",
        },
    )
    @action(detail=False, methods=["post"])
    def decide(self, request: Request) -> Response:
        """Decide on all of the given proposals, or on none if one fails."""
        given = self.validated(DecisionSerializer)
        ids = sorted(set(given.pop("ids")))
        visible = self.get_queryset().filter(pk__in=ids).values_list("pk", flat=True)
        missing = sorted(set(ids) - set(visible))
        if missing:
            raise ProposalNotFoundError(
                f"There is no proposal {missing[0]} that you may see."
            )
        with transaction.atomic():
            for number in ids:
                decide(proposal_id=number, by=caller(request), **given)
        return Response({"decided": ids})
