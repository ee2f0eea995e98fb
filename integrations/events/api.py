"""Webhook endpoints and their deliveries over REST, for admins."""

import django_filters
from django.db.models import QuerySet
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsAdmin
from integrations.events import services
from integrations.events.models import TEST, Delivery, Endpoint, EventType
from kb.interface.api import KnowledgeBaseField, ReferringSerializer

_TYPES = [(kind.value, kind.value) for kind in EventType]


class EndpointSerializer(ReferringSerializer):
    """A webhook endpoint, without its secret."""

    types = serializers.ListField(child=serializers.ChoiceField(choices=_TYPES))
    condition = serializers.CharField(
        help_text="works, failing, off, switched off (after failures) or owner gone."
    )

    class Meta:
        model = Endpoint
        fields = [
            "id", "name", "url", "owner", "knowledge_base", "types", "is_active",
            "condition", "failures", "failing_since", "switched_off_at",
            "switched_off_reason", "rotated_at", "created_at",
        ]  # fmt: skip


class EndpointSecretSerializer(EndpointSerializer):
    """An endpoint with its secret, which is shown only this once."""

    secret = serializers.CharField(
        help_text="Verifies messages at the receiver; can't be shown again."
    )

    class Meta(EndpointSerializer.Meta):
        fields = [*EndpointSerializer.Meta.fields, "secret"]


class WrittenEndpointSerializer(rest.StrictModelSerializer):
    """The writable fields of an endpoint."""

    name = rest.StrictCharField(max_length=100)
    types = rest.StrictListField(
        child=serializers.ChoiceField(choices=_TYPES),
        min_length=1,
        max_length=len(_TYPES),
    )
    knowledge_base = KnowledgeBaseField(
        required=False,
        allow_null=True,
        help_text="Sends only its events; null: all, also those of no knowledge base.",
    )

    class Meta:
        model = Endpoint
        fields = ["name", "url", "knowledge_base", "types", "is_active"]


class DeliverySerializer(rest.ShownSerializer[Delivery]):
    """One event for one endpoint, with the outcome of the last attempt."""

    webhook_id = serializers.CharField(source="event.message_id")
    type = serializers.CharField(source="event.type")
    endpoint = serializers.IntegerField(source="endpoint_id")
    data = serializers.DictField(  # type: ignore[assignment]  # a field, not the property
        source="event.data", help_text="Ids and states, as they were then."
    )
    created_at = serializers.DateTimeField(source="event.created_at")

    class Meta:
        model = Delivery
        fields = [
            "id", "webhook_id", "type", "endpoint", "data", "state", "attempts",
            "status", "milliseconds", "response", "error", "last_attempt_at",
            "next_attempt_at", "created_at",
        ]  # fmt: skip


@extend_schema_view(
    list=extend_schema(summary="List webhook endpoints"),
    retrieve=extend_schema(summary="Read a webhook endpoint"),
)
class EndpointViewSet(RetrieveModelMixin, rest.RowViewSet[Endpoint]):
    """Webhook endpoints by name: every admin sees all and changes only their own."""

    permission_classes = [IsAdmin]
    serializer_class = EndpointSerializer
    ordering = ("name",)
    filter_backends = []
    lookup_url_kwarg = "endpoint_id"

    def get_queryset(self) -> QuerySet[Endpoint]:
        return Endpoint.objects.select_related("owner", "knowledge_base")

    @extend_schema(
        summary="Create a webhook endpoint",
        request=WrittenEndpointSerializer,
        responses={201: EndpointSecretSerializer},
    )
    def create(self, request: Request) -> Response:
        """Create an endpoint that gets what its creator may see; show its secret once."""
        made = services.create_endpoint(
            by=self.user, **self.validated(WrittenEndpointSerializer)
        )
        shown = EndpointSecretSerializer(made).data
        return Response(shown, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a webhook endpoint", request=WrittenEndpointSerializer
    )
    def partial_update(self, request: Request, endpoint_id: int) -> Response:
        """Change the given fields of one's own endpoint.

        Any admin may switch off any endpoint by sending `is_active` false alone. An
        endpoint that is active afterwards starts afresh: its failures are cleared.
        """
        changes = self.validated(WrittenEndpointSerializer)
        services.edit_endpoint(endpoint_id, by=self.user, **changes)
        return self.row_response()

    @extend_schema(summary="Delete a webhook endpoint")
    def destroy(self, request: Request, endpoint_id: int) -> Response:
        """Delete one's own endpoint and its deliveries."""
        services.delete_endpoint(endpoint_id, by=self.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses=DeliverySerializer)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, endpoint_id: int) -> Response:
        """Post a test event now, once, and return the receiver's response."""
        sent = services.send_test(endpoint_id, by=self.user)
        return Response(DeliverySerializer(sent).data)

    @extend_schema(request=None, responses=EndpointSecretSerializer)
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, endpoint_id: int) -> Response:
        """Give it a new secret, shown once; for 24 hours the former one signs too."""
        rotated = services.rotate_secret(endpoint_id, by=self.user)
        return Response(EndpointSecretSerializer(rotated).data)


def _own_endpoints(request: HttpRequest) -> QuerySet[Endpoint]:
    return Endpoint.objects.editable_by(request.user)


class DeliveryFilter(rest.StrictFilterSet):
    endpoint = django_filters.ModelChoiceFilter(queryset=_own_endpoints)  # type: ignore[arg-type]  # the stubs know no callable
    state = django_filters.ChoiceFilter(choices=Delivery.State.choices)
    type = django_filters.ChoiceFilter("event__type", choices=[*_TYPES, (TEST, TEST)])


@extend_schema_view(
    list=extend_schema(summary="List webhook deliveries"),
    retrieve=extend_schema(summary="Read a webhook delivery"),
)
class DeliveryViewSet(RetrieveModelMixin, rest.RowViewSet[Delivery]):
    """Deliveries to one's own endpoints: sent, pending or given up; newest first."""

    permission_classes = [IsAdmin]
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilter
    ordering = ("-pk",)
    lookup_url_kwarg = "delivery_id"

    def get_queryset(self) -> QuerySet[Delivery]:
        return Delivery.objects.visible_to(self.request.user).select_related("event")

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, delivery_id: int) -> Response:
        """Post it again within seconds, with the same webhook-id."""
        return self.row_response(services.replay(delivery_id, by=self.user))
