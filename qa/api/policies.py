from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAgent
from qa.api.filters import PolicyFilter
from qa.models import Policy
from qa.serializers import PolicySerializer


class PolicyListView(ListAPIView[Policy]):
    """The thresholds that questions are decided by; changed in the admin."""

    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = PolicySerializer
    pagination_class = NewestFirstPagination
    filterset_class = PolicyFilter

    def get_queryset(self) -> QuerySet[Policy]:
        """Every version of every knowledge base."""
        return Policy.objects.select_related("knowledge_base")

    @extend_schema(operation_id="policies_list")
    def get(self, request: Request) -> Response:
        """List the versions of every policy, newest first."""
        return self.list(request)
