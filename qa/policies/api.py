"""Policies as JSON: thresholds, the promise they carry, and whether it still holds."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.rest import BooleanFilter, KnownQueryView, StrictFilterSet
from accounts.roles import IsAdmin, IsAgent
from qa.calibration.models import Certificate, DriftReading, SelfCalibration
from qa.calibration.versions import Running, calibration_state, current_fingerprints
from qa.exceptions import PolicyNotFoundError
from qa.pipeline.policy import DECLARED
from qa.pipeline.values import Calibration
from qa.policies.models import Policy

_CALIBRATIONS = [each.value for each in Calibration]


class CertificateSerializer(serializers.ModelSerializer[Certificate]):
    """That at most so much of what is shown is wrong, and how that is known."""

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
        read_only_fields = fields


class SelfCalibrationSerializer(serializers.ModelSerializer[SelfCalibration]):
    """What the knowledge base's own questions chose; no certificate."""

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
        read_only_fields = fields


class PolicySerializer(serializers.ModelSerializer[Policy]):
    """A version of a knowledge base's thresholds; the context's `running` tells what runs."""

    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    calibration = serializers.SerializerMethodField(
        help_text="Whether the thresholds hold for what runs now."
    )
    certificate = serializers.SerializerMethodField(
        help_text="null where no promise was earned."
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
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(_CALIBRATIONS))
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


class DriftSerializer(serializers.Serializer[object]):
    """One signal, live against labelled."""

    reference = serializers.IntegerField(help_text="Labelled answers at its gate.")
    live = serializers.IntegerField(help_text="Live answers at its gate.")
    distance = serializers.FloatField(
        allow_null=True, help_text="Kolmogorov-Smirnov distance, 0 to 1."
    )
    psi = serializers.FloatField(help_text="Population stability index.")
    p_distance = serializers.FloatField(
        allow_null=True, help_text="Adjusted for all that was tested at once."
    )
    p_psi = serializers.FloatField(help_text="Adjusted likewise.")
    has_drifted = serializers.BooleanField()


class DriftReadingSerializer(serializers.ModelSerializer[DriftReading]):
    """One look at whether live questions are still those of the certificate."""

    policy = serializers.IntegerField(source="certificate.policy_id")
    signals = serializers.DictField(
        child=DriftSerializer(),
        help_text="By name; empty where there were too few answers to compare.",
    )

    class Meta:
        model = DriftReading
        fields = [
            "id", "policy", "answers", "first_at", "last_at", "has_drifted", "signals",
            "checked_at",
        ]  # fmt: skip
        read_only_fields = fields


class PolicyFilter(StrictFilterSet):
    is_active = BooleanFilter()


class DriftFilter(StrictFilterSet):
    has_drifted = BooleanFilter()


class _Policies(KnownQueryView, GenericAPIView[Policy]):
    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = PolicySerializer

    def get_queryset(self) -> QuerySet[Policy]:
        rows = Policy.objects.select_related("knowledge_base", "certificate")
        return rows.prefetch_related("self_calibrations")

    def get_serializer_context(self) -> dict[str, Any]:
        """Look up what runs once for all that is shown; a schema shows nothing."""
        return {
            **super().get_serializer_context(),
            "running": cache(current_fingerprints),
        }


class PolicyListView(_Policies, ListAPIView[Policy]):
    """The thresholds that questions are decided by; changed in the admin."""

    pagination_class = NewestFirstPagination
    filterset_class = PolicyFilter

    @extend_schema(operation_id="policies_list")
    def get(self, request: Request) -> Response:
        """List the versions of every policy, newest first, with their certificates."""
        return self.list(request)


class PolicyView(_Policies):
    @extend_schema(operation_id="policies_read")
    def get(self, request: Request, policy_id: int) -> Response:
        """Read a version with its certificate, and whether it holds for what runs."""
        policy = self.get_queryset().filter(pk=policy_id).first()
        if policy is None:
            msg = f"There is no policy version {policy_id}."
            raise PolicyNotFoundError(msg)
        return Response(self.get_serializer(policy).data)


class _LatestCheckFirst(NewestFirstPagination):
    ordering = ("-checked_at", "-pk")


class DriftListView(KnownQueryView, ListAPIView[DriftReading]):
    """Whether live questions are still those that certificates speak of."""

    permission_classes = [IsAdmin]
    throttle_scope = "user"
    serializer_class = DriftReadingSerializer
    pagination_class = _LatestCheckFirst
    filterset_class = DriftFilter

    def get_queryset(self) -> QuerySet[DriftReading]:
        return DriftReading.objects.select_related("certificate")

    @extend_schema(operation_id="drift_list")
    def get(self, request: Request) -> Response:
        """List the checks for drift, newest first; for the role admin."""
        return self.list(request)
