"""The dashboard's figures over REST."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.replica import reads_replica
from accounts.rest import KnownQueryView, StrictSlugField, validated
from accounts.roles import IsSMESomewhere, caller
from kb.documents.models import KnowledgeBase
from kb.tags.models import Tag
from qa.dashboard.services import base_shown_to, read_dashboard
from qa.dashboard.traffic import MAX_DAYS, make_scope


class DashboardQuerySerializer(serializers.Serializer[object]):
    """The filters of the figures."""

    days = serializers.IntegerField(
        default=30, min_value=1, max_value=MAX_DAYS, help_text="Up to today, in UTC."
    )
    knowledge_base = StrictSlugField(
        slug_field="slug",
        queryset=KnowledgeBase.objects.all(),
        required=False,
        help_text="All by default; with roles in single ones, the first of these.",
    )
    tag = StrictSlugField(slug_field="slug", queryset=Tag.objects.all(), required=False)


class PercentilesSerializer(serializers.Serializer[object]):
    """Percentiles of the time taken, in milliseconds."""

    p50 = serializers.FloatField()
    p95 = serializers.FloatField()
    p99 = serializers.FloatField()


class DecidedShareSerializer(serializers.Serializer[object]):
    """How many questions had the same outcome, gate and reason."""

    outcome = serializers.CharField()
    gate = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    answers = serializers.IntegerField()


class StepSerializer(serializers.Serializer[object]):
    """A day, or a week if the period has more than 35 days."""

    begin = serializers.DateField()
    answered = serializers.IntegerField()
    refused = serializers.IntegerField()
    failed = serializers.IntegerField()
    up = serializers.IntegerField(help_text="Votes on questions asked in this step.")
    down = serializers.IntegerField()
    latency = PercentilesSerializer(allow_null=True)


class TrafficSerializer(serializers.Serializer[object]):
    """How many questions were asked; those of evaluations are not counted."""

    questions = serializers.IntegerField()
    answered = serializers.IntegerField()
    refused = serializers.IntegerField()
    failed = serializers.IntegerField()
    up = serializers.IntegerField()
    down = serializers.IntegerField()
    decided = DecidedShareSerializer(many=True)
    latency = serializers.DictField(
        child=PercentilesSerializer(), help_text='By outcome; "" is for all together.'
    )
    steps = StepSerializer(many=True)


class EstimateSerializer(serializers.Serializer[object]):
    """A share in [0, 1] with its 95 % interval, corrected for stratified sampling."""

    share = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    reviewed = serializers.IntegerField()
    population = serializers.IntegerField()
    covered = serializers.IntegerField(
        help_text="Answers in strata with at least one review."
    )


class KappaSerializer(serializers.Serializer[object]):
    """Agreement of two reviewers: Cohen's kappa with its 95 % interval."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    observed = serializers.FloatField(help_text="Share of equal judgements.")
    pairs = serializers.IntegerField()


class QualitySerializer(serializers.Serializer[object]):
    """Quality as estimated from reviews; null where nothing was reviewed."""

    false_answers = EstimateSerializer(allow_null=True)
    false_refusals = EstimateSerializer(allow_null=True)
    agreement = KappaSerializer()


class ShadowGateSerializer(serializers.Serializer[object]):
    """A shadow gate: how many answers it judged, and how many it would have refused."""

    gate = serializers.CharField()
    answers = serializers.IntegerField(help_text="Answers shown that it judged.")
    refused = serializers.IntegerField(
        help_text="How many of these it would have refused."
    )
    share = serializers.FloatField(help_text="refused / answers, in [0, 1].")
    right = serializers.IntegerField(
        help_text="Of those that it would have refused, right according to reviews."
    )
    wrong = serializers.IntegerField(
        help_text="Of those that it would have refused, wrong according to reviews."
    )
    up = serializers.IntegerField(
        help_text="Votes on those that it would have refused."
    )
    down = serializers.IntegerField()


class ModelUseSerializer(serializers.Serializer[object]):
    """How much a model was used, by its fingerprint."""

    kind = serializers.CharField(
        help_text="embedder, verifier, language_model or own_knowledge."
    )
    fingerprint = serializers.CharField()
    name = serializers.CharField(
        allow_blank=True, help_text="Empty where only the fingerprint is known."
    )
    answers = serializers.IntegerField(help_text="Answers and refusals it worked on.")
    latency = PercentilesSerializer()
    tokens_read = serializers.IntegerField()
    tokens_written = serializers.IntegerField()
    cost = serializers.FloatField(
        allow_null=True,
        help_text="Cost of its tokens at NESCIO_TOKEN_PRICES; null without a price.",
    )


class SignalDriftSerializer(serializers.Serializer[object]):
    """How far a signal has moved since its policy was certified."""

    policy = serializers.CharField()
    signal = serializers.CharField()
    live = serializers.IntegerField()
    distance = serializers.FloatField(allow_null=True)
    psi = serializers.FloatField()
    has_drifted = serializers.BooleanField()


class DashboardSerializer(serializers.Serializer[object]):
    """All figures of one period."""

    first = serializers.DateField(source="scope.period.first")
    last = serializers.DateField(source="scope.period.last")
    counted_at = serializers.DateTimeField(allow_null=True)
    traffic = TrafficSerializer()
    quality = QualitySerializer()
    shadows = ShadowGateSerializer(many=True)
    models = ModelUseSerializer(many=True)
    drift = SignalDriftSerializer(
        many=True, allow_null=True, help_text="Null below the role admin."
    )
    open_gaps = serializers.IntegerField(source="waiting.gaps")
    waiting_escalations = serializers.IntegerField(source="waiting.escalations")


class DashboardView(KnownQueryView, GenericAPIView[Any]):
    """How much was asked, how it was decided, how fast and how well."""

    permission_classes = [IsSMESomewhere]
    throttle_scope = "user"
    serializer_class = DashboardSerializer
    pagination_class = None
    filter_backends = ()

    @extend_schema(operation_id="dashboard_read", parameters=[DashboardQuerySerializer])
    @reads_replica
    def get(self, request: Request) -> Response:
        """Read the figures of the last days, for all or one knowledge base or tag."""
        # A plain dictionary: an empty field of form data would count as omitted.
        query = validated(DashboardQuerySerializer, request.query_params.dict())
        reader = caller(request)
        query["knowledge_base"] = base_shown_to(reader, query.get("knowledge_base"))
        shown = read_dashboard(make_scope(**query), reader=reader)
        return Response(DashboardSerializer(shown).data)
