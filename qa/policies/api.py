"""Policies as JSON: thresholds, their certificate, and whether it still holds."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_201_CREATED, HTTP_202_ACCEPTED

from accounts import rest
from accounts.roles import IsAdmin
from jobs.api import JobSerializer
from kb.interface.api import (
    AgentReadsAdminWrites,
    KnowledgeBaseField,
    KnowledgeBaseFilter,
    find_knowledge_base,
)
from qa.calibration.models import Certificate, SelfCalibration
from qa.calibration.versions import Running, calibration_state, current_fingerprints
from qa.evaluation.activation import (
    CaseCheck,
    CaseState,
    activate_checked,
    ask_cases,
    check_of,
    is_blocked,
)
from qa.exceptions import PolicyNotFoundError
from qa.pipeline.policy import CHOSEN, DECLARED
from qa.pipeline.values import Calibration
from qa.policies import services
from qa.policies.lacking import lacking
from qa.policies.models import Policy


class CertificateSerializer(rest.ShownSerializer[Certificate]):
    """A bound on the share of wrong answers among those shown, and its evidence."""

    promise = serializers.CharField(source="__str__", help_text="In words.")
    run = serializers.IntegerField(
        source="run_id", allow_null=True, help_text="The evaluation that it rests on."
    )
    thresholds = serializers.DictField(child=serializers.FloatField())
    warnings = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Certificate
        fields = [
            "promise", "epsilon", "delta", "method", "run", "labels_source",
            "labels_sha256", "learnt", "labelled", "shown", "wrong", "bound",
            "coverage", "groups", "group_bound", "thresholds", "warnings", "embedder",
            "language_model", "retrieval", "probes", "created_at",
        ]  # fmt: skip


class SelfCalibrationSerializer(rest.ShownSerializer[SelfCalibration]):
    """Thresholds chosen with the knowledge base's own questions; not a certificate."""

    curve = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()),
        help_text="[threshold, share answered, share wrong], the strictest first.",
    )
    notes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = SelfCalibration
        fields = [
            "target", "unanswerable", "min_entry_answer", "is_earned", "entries", "own",
            "foreign", "named", "reviewed", "evaluated", "shown", "wrong", "wrong_share", "wrong_low", "wrong_high",
            "answered_share", "answered_low", "answered_high", "curve", "notes",
            "not_activated", "seed", "verifier", "embedder", "retrieval", "created_at",
        ]  # fmt: skip


class PolicySerializer(rest.ShownSerializer[Policy]):
    """A version of a knowledge base's thresholds; needs `running` in the context."""

    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    calibration = serializers.SerializerMethodField(
        help_text="Whether the thresholds hold for the models in use, and what chose "
        "them: labelled answers (current), own questions (self_calibrated) or a person."
    )
    certificate = serializers.SerializerMethodField(
        help_text="null without a certificate."
    )
    self_calibration = serializers.SerializerMethodField(
        help_text="The latest; null where own questions did not choose the thresholds."
    )

    class Meta:
        model = Policy
        fields = [
            "id", "knowledge_base", "name", "version", "is_active", *DECLARED,
            "calibration", "certificate", "self_calibration", "created_at",
        ]  # fmt: skip

    @extend_schema_field(serializers.ChoiceField([each.value for each in Calibration]))
    def get_calibration(self, policy: Policy) -> str:
        running: Callable[[], Running] = self.context["running"]
        return calibration_state(policy, running()).value

    @extend_schema_field(CertificateSerializer(allow_null=True))
    def get_certificate(self, policy: Policy) -> dict[str, object] | None:
        found = getattr(policy, "certificate", None)
        return CertificateSerializer(found).data if found else None

    @extend_schema_field(SelfCalibrationSerializer(allow_null=True))
    def get_self_calibration(self, policy: Policy) -> dict[str, object] | None:
        found = next(iter(policy.self_calibrations.all()), None)
        return SelfCalibrationSerializer(found).data if found else None


class PolicyFilter(rest.StrictFilterSet):
    is_active = rest.BooleanFilter()
    knowledge_base = KnowledgeBaseFilter()


class NewPolicySerializer(rest.StrictModelSerializer):
    """A version to create; omitted fields are copied from the one it is based on."""

    based_on = rest.StrictPrimaryKeyField(
        queryset=Policy.objects.select_related("knowledge_base"),
        required=False,
        help_text="That version; if omitted, the active one of the knowledge base.",
    )
    knowledge_base = KnowledgeBaseField(
        required=False, help_text="Required if there are several and no `based_on`."
    )

    class Meta:
        model = Policy
        fields = [
            "based_on", "knowledge_base", "name", *CHOSEN, "calibrated_own_knowledge",
        ]  # fmt: skip

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.keys() - {"based_on", "knowledge_base"}:
            raise serializers.ValidationError("Send at least one field to change.")
        source, base = attrs.get("based_on"), attrs.pop("knowledge_base", None)
        if base is None:
            base = source.knowledge_base if source else find_knowledge_base({})
        attrs["based_on"] = found = services.basis(base, source)
        if source not in (None, found):
            said = f"{source} is in {source.knowledge_base.slug}; send one of the two."
            raise serializers.ValidationError({"based_on": [said]})
        return attrs


class ActivationSerializer(rest.StrictSerializer):
    """Why a version is activated."""

    reason = rest.StrictCharField(
        max_length=1000,
        default="",
        allow_blank=True,
        help_text="Required if test cases fail or were not asked.",
    )


class ActivatedPolicySerializer(PolicySerializer):
    """A version that was activated."""

    lacking = serializers.SerializerMethodField(
        help_text="What it requires that is missing, in words; empty if nothing is."
    )

    class Meta(PolicySerializer.Meta):
        fields = [*PolicySerializer.Meta.fields, "lacking"]

    def get_lacking(self, policy: Policy) -> str:
        return lacking(policy)


class CaseCheckSerializer(serializers.Serializer[CaseCheck]):
    """The results of the test cases under a version, including hidden ones."""

    state = serializers.ChoiceField(choices=[each.value for each in CaseState])
    in_words = serializers.CharField()
    total = serializers.IntegerField()
    asked = serializers.IntegerField()
    failed = serializers.IntegerField()
    is_outdated = serializers.BooleanField(
        help_text="Entries have changed since they were asked."
    )
    needs_reason = serializers.BooleanField()
    is_blocked = serializers.SerializerMethodField(
        help_text="Whether they must pass first: a reason is not enough for activation."
    )

    def get_is_blocked(self, check: CaseCheck) -> bool:
        return is_blocked(self.context["policy"], check)


@extend_schema_view(
    list=extend_schema(
        description="List the versions of every policy, newest first, with their "
        "certificates."
    ),
    retrieve=extend_schema(
        description="Read a version with its certificate, and whether it holds for the "
        "models in use."
    ),
)
class PolicyViewSet(RetrieveModelMixin, rest.RowViewSet[Policy]):
    """The versions of the thresholds that decide questions; a version never changes."""

    permission_classes = [AgentReadsAdminWrites]
    serializer_class = PolicySerializer
    filterset_class = PolicyFilter
    lookup_url_kwarg = "policy_id"
    not_found = PolicyNotFoundError

    def get_queryset(self) -> QuerySet[Policy]:
        rows = Policy.objects.select_related("knowledge_base", "certificate")
        return rows.prefetch_related("self_calibrations")

    def get_serializer_context(self) -> dict[str, Any]:
        """Look up the models in use once for all rows, and never for the schema."""
        return {
            **super().get_serializer_context(),
            "running": cache(current_fingerprints),
        }

    @extend_schema(request=NewPolicySerializer, responses={201: PolicySerializer})
    def create(self, request: Request) -> Response:
        """Create a version with some values changed.

        It decides nothing until it is activated, and has no certificate.
        """
        changes = self.validated(NewPolicySerializer)
        source = changes.pop("based_on")
        made = services.new_version(
            source, by=self.user, is_calibrated=False, **changes
        )
        shown = self.get_queryset().get(pk=made.pk)
        return self.row_response(shown, HTTP_201_CREATED)

    @extend_schema(request=ActivationSerializer, responses=ActivatedPolicySerializer)
    @action(detail=True, methods=["post"])
    def activate(self, request: Request, policy_id: int) -> Response:
        """Activate a version, which then decides every question of its knowledge base.

        A reason is required if a test case fails or was not asked; if the policy
        requires test cases to pass, a reason is not enough.
        """
        given = self.validated(ActivationSerializer)
        activate_checked(self.get_object(), by=self.user, reason=given["reason"])
        shown = ActivatedPolicySerializer(
            self.get_object(), context=self.get_serializer_context()
        )
        return Response(shown.data)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], url_path="roll-back")
    def roll_back(self, request: Request, policy_id: int) -> Response:
        """Roll back from this version, which is active, to the one active before it."""
        before = services.roll_back(self.get_object(), by=self.user)
        return self.row_response(self.get_queryset().get(pk=before.pk))

    @extend_schema(responses=CaseCheckSerializer)
    @action(detail=True, url_path="test-cases", permission_classes=[IsAdmin])
    def test_cases(self, request: Request, policy_id: int) -> Response:
        """Read whether the test cases pass under a version, before it is activated."""
        policy = self.get_object()
        shown = CaseCheckSerializer(check_of(policy), context={"policy": policy})
        return Response(shown.data)

    @extend_schema(request=None, responses={202: JobSerializer})
    @test_cases.mapping.post
    def ask_test_cases(self, request: Request, policy_id: int) -> Response:
        """Start a job that asks the test cases under a version; return the job."""
        job = ask_cases(self.get_object(), by=self.user)
        return Response(JobSerializer(job).data, HTTP_202_ACCEPTED)
