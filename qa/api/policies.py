from functools import cache
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAdmin, IsAgent
from qa.api.filters import DriftFilter, PolicyFilter
from qa.exceptions import PolicyNotFoundError
from qa.models import DriftReading, Policy
from qa.policy_serializers import DriftReadingSerializer, PolicySerializer
from qa.services.running import what_runs


class _Policies(GenericAPIView[Policy]):
    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = PolicySerializer

    def get_queryset(self) -> QuerySet[Policy]:
        """Every version of every knowledge base, with its promise."""
        return Policy.objects.select_related("knowledge_base", "certificate")

    def get_serializer_context(self) -> dict[str, Any]:
        """Look up what runs once for all that is shown; a schema shows nothing."""
        return {**super().get_serializer_context(), "running": cache(what_runs)}


class PolicyListView(_Policies, ListAPIView[Policy]):
    """The thresholds that questions are decided by; changed in the admin."""

    pagination_class = NewestFirstPagination
    filterset_class = PolicyFilter

    @extend_schema(operation_id="policies_list")
    def get(self, request: Request) -> Response:
        """List the versions of every policy, newest first, with their certificates."""
        return self.list(request)


class PolicyView(_Policies):
    """One version."""

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


class DriftListView(ListAPIView[DriftReading]):
    """Whether live questions are still those that certificates speak of."""

    permission_classes = [IsAdmin]
    throttle_scope = "user"
    serializer_class = DriftReadingSerializer
    pagination_class = _LatestCheckFirst
    filterset_class = DriftFilter

    def get_queryset(self) -> QuerySet[DriftReading]:
        """Every check of every certificate."""
        return DriftReading.objects.select_related("certificate")

    @extend_schema(operation_id="drift_list")
    def get(self, request: Request) -> Response:
        """List the checks for drift, newest first; for the role admin."""
        return self.list(request)
