"""Admin pages of webhook endpoints and their deliveries."""

import json
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.admin_parts import (
    ListFilter,
    ReadOnlyAdmin,
    act_on_row,
    change_each,
    confirmed,
    field_errors,
    secret_page,
    switch_off,
)
from accounts.base_admin import (
    BaseAdmin,
    Fieldsets,
    action,
    badge,
    column,
    display,
    holders_of,
)
from accounts.exceptions import NescioError
from accounts.roles import Role, caller
from integrations.events import services
from integrations.events.models import MEANINGS, TEST, Delivery, Endpoint, EventType
from integrations.events.payloads import body_for
from integrations.events.posting import checked_url

_STATE_COLOURS = {
    Delivery.State.PENDING: "info",
    Delivery.State.DELIVERED: "success",
    Delivery.State.FAILED: "danger",
}


_CONDITION_COLOURS = {
    "works": "success",
    "failing": "warning",
    "off": "info",
    "switched off": "danger",
    "owner gone": "danger",
}


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    types = forms.MultipleChoiceField(
        label="Events",
        choices=[(kind.value, f"{kind}: {said}") for kind, said in MEANINGS.items()],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = Endpoint
        fields = ("name", "url", "knowledge_base", "types", "is_active")

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        with field_errors():
            checked_url(url)
        return url


class ConditionFilter(ListFilter):
    title = "condition"
    parameter_name = "condition"
    choices_by_value = {
        "works": "works",
        "failing": "failing",
        "switched_off": "switched off after failures",
        "off": "off",
    }

    def narrow(
        self, rows: QuerySet[Endpoint], value: str, request: HttpRequest
    ) -> QuerySet[Endpoint]:
        endpoints: Any = rows  # of the model's own class
        found: QuerySet[Endpoint] = {
            "works": endpoints.working,
            "failing": endpoints.failing,
            "switched_off": endpoints.switched_off,
            "off": partial(endpoints.filter, is_active=False),
        }[value]()
        return found


@admin.register(Endpoint)
class EndpointAdmin(BaseAdmin):
    """Every admin sees all and may switch off any; only its owner changes the rest."""

    form = EndpointForm
    list_display: ClassVar = [
        "name", "url", "knowledge_base", "owner", "condition",
    ]  # fmt: skip
    list_filter: ClassVar = [ConditionFilter, "knowledge_base"]
    list_select_related: ClassVar = ["knowledge_base", "owner"]
    search_fields: ClassVar = ["name", "url"]
    actions: ClassVar = [switch_off]
    actions_detail: ClassVar = ["test_this", "open_deliveries", "rotate_this"]
    readonly_fields: ClassVar = ["owner", "described", "created_at"]
    fieldsets: ClassVar = [
        (None, {"fields": ["name", "url", "knowledge_base", "types", "is_active"]}),
        ("Record", {"fields": ["owner", "described", "created_at"]}),
    ]
    has_steer_permission = holders_of(Role.ADMIN)

    def get_fieldsets(
        self, request: HttpRequest, obj: Endpoint | None = None
    ) -> Fieldsets:
        return self.fieldsets if obj else self.fieldsets[:1]

    def may_touch(self, request: HttpRequest, row: Endpoint) -> bool:
        return Endpoint.objects.editable_by(request.user).filter(pk=row.pk).exists()

    def save_model(
        self,
        request: HttpRequest,
        obj: Endpoint,
        form: "forms.ModelForm[Endpoint]",
        change: bool,
    ) -> None:
        given, by = form.cleaned_data, caller(request)
        if change:
            changes = {name: given[name] for name in form.changed_data}
            services.edit_endpoint(obj.pk, by=by, **changes)
        else:
            obj.pk = services.create_endpoint(by=by, **given).pk
        obj.refresh_from_db()

    def response_add(
        self, request: HttpRequest, obj: Endpoint, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret, only this once."""
        return self._secret_page(request, obj, "The endpoint was made.")

    @display(description="condition", label=_CONDITION_COLOURS)
    def condition(self, endpoint: Endpoint) -> str:
        return endpoint.condition

    @admin.display(description="condition")
    def described(self, endpoint: Endpoint) -> str:
        said = endpoint.condition
        if said == "owner gone":
            return "It sends nothing: its owner's account is gone or not active."
        if said == "switched off":
            return f"Switched off by itself: {endpoint.switched_off_reason}"
        if endpoint.is_active and endpoint.failing_since:
            since = f"{endpoint.failing_since:%Y-%m-%d %H:%M} UTC"
            return f"Failing since {since}, {endpoint.failures} attempts."
        return said

    @action(description="Send a test", icon="send", permissions=["steer"])
    @confirmed("Send a test event now?")
    def test_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def send() -> str:
            sent = services.send_test(int(object_id), by=caller(request))
            if sent.state == Delivery.State.FAILED:
                raise NescioError(f"The test failed: {sent.error}")
            return f"Accepted with {sent.status} in {sent.milliseconds} ms."

        return act_on_row(self, request, object_id, send)

    @action(description="Deliveries", icon="list", permissions=["steer"])
    def open_deliveries(self, request: HttpRequest, object_id: str) -> HttpResponse:
        endpoint = self.found(request, object_id)
        page = reverse("admin:integrations_delivery_changelist")
        return redirect(f"{page}?endpoint__id__exact={endpoint.pk}")

    @action(description="New secret", icon="key", permissions=["steer"])
    @confirmed(
        "Create a new secret? For 24 hours events are signed with the former one, too."
    )
    def rotate_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        try:
            endpoint = services.rotate_secret(int(object_id), by=caller(request))
        except NescioError as error:
            self.message_user(request, str(error), messages.ERROR)
            return redirect("admin:integrations_endpoint_change", object_id)
        return self._secret_page(request, endpoint, "The secret was replaced.")

    def _secret_page(
        self, request: HttpRequest, endpoint: Endpoint, said: str
    ) -> HttpResponse:
        return secret_page(
            self,
            request,
            endpoint,
            title=f"Secret of {endpoint}",
            said=said,
            use="The receiver verifies messages with this secret.",
            secret=endpoint.secret,
        )


class TypeFilter(ListFilter):
    title = "event"
    parameter_name = "type"
    choices_by_value = {str(kind): str(kind) for kind in (*EventType, TEST)}

    def narrow(
        self, rows: QuerySet[Delivery], value: str, request: HttpRequest
    ) -> QuerySet[Delivery]:
        return rows.filter(event__type=value)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    """Deliveries to one's own endpoints: sent, pending or given up."""

    when_empty = "Messages to your endpoints are listed here."
    list_display: ClassVar = [
        "kind", "endpoint", "about", "shown_state", "attempts", "status",
        "last_attempt_at", "next_attempt_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["state", "endpoint", TypeFilter]
    list_select_related: ClassVar = ["endpoint", "event"]
    actions: ClassVar = ["replay_chosen"]
    actions_detail: ClassVar = ["replay_this"]
    has_steer_permission = holders_of(Role.ADMIN)
    shown_state = badge("state", _STATE_COLOURS)
    fieldsets: ClassVar = [
        (None, {"fields": ["kind", "message_id", "endpoint", "state"]}),
        ("Last attempt", {"fields": [
            "last_attempt_at", "attempts", "status", "milliseconds", "error",
            "response", "next_attempt_at",
        ]}),
        ("Sent", {"fields": ["body"]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        rows: Any = super().get_queryset(request)
        visible: QuerySet[Delivery] = rows.visible_to(request.user)
        return visible.select_related("event__knowledge_base", "endpoint__owner")

    kind = column("event", lambda delivery: delivery.event.type, ordering="event__type")
    message_id = column("webhook-id", lambda delivery: delivery.event.message_id)

    @admin.display(description="about")
    def about(self, delivery: Delivery) -> str:
        data = delivery.event.data
        return ", ".join(f"{name} {value}" for name, value in data.items())[:80]

    @admin.display(description="body, as it would be sent now")
    def body(self, delivery: Delivery) -> SafeString:
        sent = body_for(delivery.event, delivery.endpoint.owner)
        if sent is None:
            return SafeString("Nothing: the endpoint's owner may no longer see it.")
        shown = json.dumps(json.loads(sent), indent=2, ensure_ascii=False)
        return format_html('<pre class="overflow-x-auto text-xs">{}</pre>', shown)

    @admin.action(description="Replay", permissions=["steer"])
    def replay_chosen(self, request: HttpRequest, chosen: QuerySet[Delivery]) -> None:
        by = caller(request)
        change_each(
            self,
            request,
            chosen,
            lambda key: services.replay(key, by=by),
            "will be sent again",
            "delivery",
        )

    @action(description="Replay", icon="replay", permissions=["steer"])
    @confirmed("Send it again, by the same webhook-id?")
    def replay_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def send() -> str:
            services.replay(int(object_id), by=caller(request))
            return "It will be sent again within seconds."

        return act_on_row(self, request, object_id, send)
