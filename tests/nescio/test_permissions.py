"""No address answers strangers unless it is listed here."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver
from rest_framework.permissions import BasePermission
from rest_framework.views import APIView

from tests.clients import rest_client
from tests.factories import make_entry, make_user
from tests.nescio.routes import routes

OPEN = {
    "api/v1/tokens",  # POST signs in; GET is for who is signed in, see below
    "api/v1/schema",
    "api/v1/docs",
    "healthz",
    "healthz/live",
    "login",
    "logout",
    "widget/<slug:slug>/token",  # for pages of the widget's origins
}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_EXAMPLES = {
    "int": "1",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "slug": "everyone",
    "str": "x",
    "path": "x",
}


ALL = [
    (address, pattern)
    for address, pattern in routes(get_resolver().url_patterns)
    if not address.startswith("admin/")
]
VIEWS = [
    (address, getattr(callback, "cls", getattr(callback, "view_class", object)))
    for address, callback in ((address, pattern.callback) for address, pattern in ALL)
]
API = [(address, view) for address, view in VIEWS if issubclass(view, APIView)]
REST = {address for address, _ in API}
INTEGRATIONS = {
    "slack/actions", "slack/commands", "slack/events", "teams/messages",
    "dify/retrieval", "mcp", "metrics", "v1/chat/completions", "v1/models",
    "v1/models/<path:model>", "widget/<slug:slug>/ask", "widget/<slug:slug>/token",
    "widget/<slug:slug>/answers/<uuid:answer_id>/choice",
    "widget/<slug:slug>/answers/<uuid:answer_id>/vote",
}  # fmt: skip


def example(address: str) -> str:
    """Fill in a route's parameters."""
    parts = []
    for part in address.split("/"):
        if part.startswith("<"):
            converter = part[1:-1].split(":")[0] if ":" in part else "str"
            parts.append(_EXAMPLES[converter])
        else:
            parts.append(part)
    return "/" + "/".join(parts)


def test_the_walk_finds_the_routes():
    addresses = {address for address, _ in ALL}

    assert {"api/v1/ask", "api/v1/entries", "api/v1/jobs", "", "healthz"} <= addresses
    assert {a for a, _ in ALL if a.startswith("api/")} == REST - INTEGRATIONS
    assert REST >= INTEGRATIONS


@pytest.mark.parametrize("address", [a for a, _ in ALL if a not in OPEN])
def test_strangers_are_sent_away(db, address):
    make_entry()
    client = Client()

    for method in METHODS:
        response = client.generic(method, example(address), b"{}", "application/json")
        if address in REST:
            assert response.status_code in {401, 405}, method
        else:
            to_login = response.status_code == 302 and "/login" in response["Location"]
            assert to_login or response.status_code in {401, 403, 405}, method


def test_listing_tokens_is_for_who_is_signed_in(db):
    assert Client().get("/api/v1/tokens").status_code == 401


@pytest.mark.parametrize("address", [a for a in sorted(REST) if a not in OPEN])
def test_a_user_without_a_role_gets_nothing_but_their_own_tokens(db, address):
    make_entry()
    client = rest_client(make_user(role=None))

    statuses = {
        method: client.generic(
            method, example(address), "{}", "application/json"
        ).status_code
        for method in METHODS
    }

    allowed = {404, 405} if address.startswith("api/v1/tokens") else {403, 405}
    assert set(statuses.values()) <= allowed


@pytest.mark.parametrize(("address", "view"), API)
def test_every_view_names_its_permissions_and_a_known_throttle_scope(address, view):
    is_library = view.__module__.startswith("drf_spectacular")
    permissions = [c for c in view.__mro__ if "permission_classes" in vars(c)]

    assert is_library or permissions[0] is not APIView
    assert all(issubclass(each, BasePermission) for each in view.permission_classes)
    scope = getattr(view, "throttle_scope", "user")
    assert scope in settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]
    assert is_library or hasattr(view, "throttle_scope") or not view.throttle_classes


def test_the_admin_sends_strangers_to_sign_in(db):
    response = Client().get("/admin/qa/answer/")

    assert response.status_code == 302
    assert "/admin/login/" in response["Location"]
