"""The REST API of self-calibration and of drift readings."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_202_ACCEPTED

from accounts import rest
from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAdmin, caller
from jobs.api import JobSerializer
from kb.documents.models import KnowledgeBase
from kb.exceptions import KnowledgeBaseNotFoundError
from kb.interface.api import AgentReadsAdminWrites
from qa.calibration.models import DriftReading, SelfCalibrationSettings
from qa.calibration.self_calibration import last_of, set_settings, settings_of
from qa.calibration.self_calibration_jobs import enqueue_calibration, is_due
from qa.policies.api import SelfCalibrationSerializer

_SET = ["wrong_share_target", "calibrates_itself", "uses_evaluations"]


class SelfCalibrationSettingsSerializer(rest.ShownSerializer[SelfCalibrationSettings]):
    """A knowledge base's self-calibration settings and the state of its calibration."""

    is_due = serializers.SerializerMethodField(
        help_text="Whether enough has changed since the last calibration, among what "
        "the caller may see; a job checks every two hours. Always false if the "
        "knowledge base does not calibrate itself."
    )
    last = serializers.SerializerMethodField(
        help_text="The last self-calibration; null if there was none."
    )

    class Meta:
        model = SelfCalibrationSettings
        fields = [*_SET, "is_due", "last"]

    def get_is_due(self, kept: SelfCalibrationSettings) -> bool:
        return is_due(kept.knowledge_base)

    @extend_schema_field(SelfCalibrationSerializer(allow_null=True))
    def get_last(self, kept: SelfCalibrationSettings) -> dict[str, object] | None:
        found = last_of(kept.knowledge_base)
        return SelfCalibrationSerializer(found).data if found else None


class SelfCalibrationChangesSerializer(rest.StrictModelSerializer):
    """The settings to change; omitted ones stay as they are.

    `wrong_share_target` is N where at most 1 in N shown answers may be wrong.
    """

    class Meta:
        model = SelfCalibrationSettings
        fields = _SET


class SelfCalibrationViewSet(rest.ResourceViewSet[KnowledgeBase]):
    """A knowledge base's calibration from its own questions."""

    permission_classes = [AgentReadsAdminWrites]
    queryset = KnowledgeBase.objects.all()
    lookup_field = "slug"
    not_found = KnowledgeBaseNotFoundError

    @extend_schema(
        operation_id="self_calibration_read",
        responses=SelfCalibrationSettingsSerializer,
    )
    def retrieve(self, request: Request, slug: str) -> Response:
        """Read the settings, the last self-calibration, and whether one is due."""
        return self._shown(settings_of(self.get_object()))

    @extend_schema(
        operation_id="self_calibration_change",
        request=SelfCalibrationChangesSerializer,
        responses=SelfCalibrationSettingsSerializer,
    )
    def partial_update(self, request: Request, slug: str) -> Response:
        """Change the given settings; they apply from the next calibration on."""
        kept = settings_of(self.get_object())
        wanted = {name: getattr(kept, name) for name in _SET}
        wanted |= self.validated(SelfCalibrationChangesSerializer)
        return self._shown(set_settings(kept.knowledge_base, **wanted))

    @extend_schema(
        operation_id="self_calibration_calibrate",
        request=None,
        responses={202: JobSerializer},
    )
    def calibrate(self, request: Request, slug: str) -> Response:
        """Start a self-calibration job now and return it.

        If one is already waiting or running, that job is returned.
        """
        job = enqueue_calibration(self.get_object(), by=caller(request))
        return Response(JobSerializer(job).data, HTTP_202_ACCEPTED)

    def _shown(self, kept: SelfCalibrationSettings) -> Response:
        return Response(SelfCalibrationSettingsSerializer(kept).data)


class DriftSerializer(serializers.Serializer[object]):
    """One signal's distribution, live against labelled."""

    reference = serializers.IntegerField(help_text="Labelled answers at its gate.")
    live = serializers.IntegerField(help_text="Live answers at its gate.")
    distance = serializers.FloatField(
        allow_null=True, help_text="Kolmogorov-Smirnov distance, 0 to 1."
    )
    psi = serializers.FloatField(help_text="Population stability index.")
    p_distance = serializers.FloatField(
        allow_null=True, help_text="Adjusted for all tests made at once."
    )
    p_psi = serializers.FloatField(help_text="Adjusted likewise.")
    has_drifted = serializers.BooleanField()


class DriftReadingSerializer(rest.ShownSerializer[DriftReading]):
    """One check whether live questions still resemble those of the certificate."""

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


class DriftFilter(rest.StrictFilterSet):
    has_drifted = rest.BooleanFilter()


class _LatestCheckFirst(NewestFirstPagination):
    ordering = ("-checked_at", "-pk")


class DriftListView(rest.KnownQueryView, ListAPIView[DriftReading]):
    """Checks whether live questions still resemble those that certificates cover."""

    permission_classes = [IsAdmin]
    throttle_scope = "user"
    serializer_class = DriftReadingSerializer
    pagination_class = _LatestCheckFirst
    filterset_class = DriftFilter

    def get_queryset(self) -> QuerySet[DriftReading]:
        return DriftReading.objects.select_related("certificate")

    def get(self, request: Request) -> Response:
        """List the drift checks, newest first; for the role admin."""
        return self.list(request)
