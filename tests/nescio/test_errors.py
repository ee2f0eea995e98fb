"""Every error of the interface has one shape, whoever raised it."""

import io
import json
import logging
from logging.config import DictConfigurator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from rest_framework import serializers
from rest_framework.test import APIClient

from accounts.exceptions import ConflictError, UnavailableError
from accounts.rest import StrictSerializer, validated
from accounts.roles import Role
from kb.models import Flag, KnowledgeBase
from nescio.middleware import RequestIdFilter
from qa.answers import asking
from qa.answers.api import AnswerViewSet
from qa.models import Answer
from tests.clients import rest_client
from tests.factories import make_curator, make_entry, make_staff, make_user


@pytest.fixture
def client(db) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(make_user())
    return client


FORMATTERS: Any = settings.LOGGING["formatters"]
HANDLERS: Any = settings.LOGGING["handlers"]
FILTERS: Any = settings.LOGGING["filters"]


def error_of(response):
    assert response["Content-Type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    assert body["error"].keys() <= {"code", "message", "detail"}
    assert body["error"]["code"]
    assert body["error"]["message"]
    return body["error"]


def raising(error: Exception):
    def get_queryset(self):
        raise error

    return get_queryset


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ConflictError("It changed."), 409, "conflict"),
        (UnavailableError("It is down."), 503, "unavailable"),
    ],
)
def test_an_error_of_ours_keeps_its_code_message_and_status(
    client, monkeypatch, error, status, code
):
    monkeypatch.setattr(AnswerViewSet, "get_queryset", raising(error))

    response = client.get("/api/v1/answers")

    assert response.status_code == status
    assert error_of(response) == {"code": code, "message": str(error)}
    assert ("Retry-After" in response) is (status == 503)


def test_what_nobody_foresaw_is_logged_with_the_requests_id_and_told_without_internals(
    client, monkeypatch, caplog
):
    monkeypatch.setattr(AnswerViewSet, "get_queryset", raising(ValueError("secret")))

    with caplog.at_level(logging.ERROR, "django.request"):
        response = client.get("/api/v1/answers", headers={"x-request-id": "seen-7"})

    assert response.status_code == 500
    error = error_of(response)
    assert error["code"] == "internal_error"
    assert error["detail"] == {"request_id": "seen-7"}
    assert "secret" not in response.content.decode()
    assert "secret" in caplog.text
    assert response["X-Request-ID"] == "seen-7"


def test_a_request_gets_an_id_and_a_strange_one_is_not_taken_over(client):
    plain = client.get("/api/v1/answers")
    strange = client.get("/api/v1/answers", headers={"x-request-id": "a\nb" * 50})

    assert len(plain["X-Request-ID"]) == 32
    assert plain["X-Request-ID"] != strange["X-Request-ID"]
    assert "\n" not in strange["X-Request-ID"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/api/v1/answers", "Internal Server Error"),
        ("/api/v1/answers/1", "Not Found"),
        ("/api/v1/gaps", "Forbidden"),
        ("/api/v1/entries?page=none", "Bad Request"),
    ],
)
def test_log_lines_carry_the_requests_id(client, monkeypatch, address, said):
    monkeypatch.setattr(AnswerViewSet, "get_queryset", raising(ValueError("x")))
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    configured = DictConfigurator(settings.LOGGING)
    handler.setFormatter(configured.configure_formatter(dict(FORMATTERS["line"])))
    handler.addFilter(RequestIdFilter())
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)

    try:
        client.get(address, headers={"x-request-id": "seen-8"})
    finally:
        logger.removeHandler(handler)

    assert f"django.request [seen-8]: {said}" in lines.getvalue()


@pytest.mark.parametrize("address", ["/admin/kb/entry/add/", "/"])
def test_a_403_is_one_line_in_the_log_without_a_traceback(db, address):
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    for name in HANDLERS["stderr"]["filters"]:
        configured: Any = DictConfigurator(settings.LOGGING)
        handler.addFilter(configured.configure_filter(dict(FILTERS[name])))
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    page = Client()
    user = make_staff(role=None)
    page.force_login(user)

    try:
        response = page.get(address)
    finally:
        logger.removeHandler(handler)

    assert response.status_code == 403
    assert "Forbidden" in lines.getvalue()
    assert "Traceback" not in lines.getvalue()


@pytest.mark.parametrize("address", ["answers", "nothing", "schema", "docs", "tokens"])
def test_no_cache_keeps_an_answer_of_the_interface(client, address):
    response = client.get(f"/api/v1/{address}")

    assert response["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "not_found"),
        ("GET", "/api/v2/ask", 404, "not_found"),
        ("POST", "/api/v1/ask/", 404, "not_found"),
        ("GET", "/api/v1/ask", 405, "method_not_allowed"),
        ("PATCH", "/api/v1/answers", 405, "method_not_allowed"),
        ("GET", "/api/v1/answers?format=xml", 406, "not_acceptable"),
    ],
)
def test_errors_of_routing_have_the_same_shape(client, method, path, status, code):
    response = client.generic(method, path)

    assert response.status_code == status
    assert error_of(response)["code"] == code


def test_a_405_names_what_is_allowed(client):
    assert client.get("/api/v1/ask")["Allow"] == "POST, OPTIONS"


@pytest.mark.parametrize(
    "path", ["ask", "answers", "answers/00000000-0000-0000-0000-000000000000/vote"]
)
def test_options_tell_the_methods(client, path):
    response = client.options(f"/api/v1/{path}")

    assert response.status_code == 200
    assert response.json() == {"allow": response["Allow"].split(", ")}


@pytest.mark.parametrize("header", [None, "Bearer nsc_wrong", "Token", "Token a b"])
@pytest.mark.parametrize("address", ["/api/v1/entries", "/v1/models", "/metrics"])
def test_a_401_says_how_to_sign_in(db, address, header):
    sent = {} if header is None else {"authorization": header}

    response = Client().get(address, headers=sent)

    assert response.status_code == 401
    message = response.json()["error"]["message"]
    assert "`Authorization: Bearer nsc_...`" in message
    assert "/tokens" in message


def test_a_401_of_another_scheme_does_not_name_ours(db):
    response = Client().post("/slack/events", {}, "application/json")

    assert response.status_code == 401
    assert "Bearer" not in response.json()["error"]["message"]


@pytest.mark.parametrize("sent", ["text/plain", ""])
@pytest.mark.parametrize(
    ("address", "accepted"),
    [("/api/v1/ask", "application/json"), ("/api/v1/imports", "multipart/form-data")],
)
def test_a_415_says_what_is_accepted(db, address, accepted, sent):
    client = Client()
    client.force_login(make_user(Role.CURATOR))

    response = client.generic("POST", address, b"x", sent)

    assert response.status_code == 415
    error = error_of(response)
    assert error["code"] == "unsupported_media_type"
    assert f"Send the body as {accepted}, " in error["message"]


def test_a_media_type_that_is_not_offered_is_406(client):
    response = client.get("/api/v1/answers", headers={"accept": "application/xml"})

    assert response.status_code == 406
    assert error_of(response)["code"] == "not_acceptable"


def test_a_format_that_is_not_offered_is_406_and_those_that_are_are_named(client):
    response = client.generic("POST", "/api/v1/ask?format=xml")

    assert response.status_code == 406
    said = "There is no format 'xml'; there are: event-stream, json."
    assert error_of(response)["message"] == said


def test_an_unknown_host_is_400_in_the_same_shape(db):
    response = Client(raise_request_exception=False).get(
        "/api/v1/answers", headers={"host": "evil.example"}
    )

    assert response.status_code == 400
    assert error_of(response)["code"] == "bad_request"


def test_pages_get_pages_for_errors(db):
    response = Client().get("/nothing")

    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


def test_a_session_needs_the_csrf_token_to_write(db):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(make_user())

    response = client.post("/api/v1/ask", {"question": "Why?"}, format="json")

    assert response.status_code == 403
    assert "CSRF" in error_of(response)["message"]


def test_a_validation_error_names_the_field_in_words_and_in_detail(client):
    make_entry()

    response = client.put(
        "/api/v1/answers/00000000-0000-0000-0000-000000000000/vote", {}, format="json"
    )

    error = error_of(response)
    assert error["code"] == "invalid"
    assert error["message"] == "rating: It is missing; send one of its values."
    assert error["detail"] == {"rating": ["It is missing; send one of its values."]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"question": None}, "null is not allowed here; send a text."),
        ({"question": 5}, "5 is not a text; send one in quotes."),
        ({"question": ["{0}"]}, '["{0}"] is not a text; send one in quotes.'),
        ({"question": " "}, "It is empty; send a text with something in it."),
        ({}, "It is missing; send a text."),
        ([], "An object, {...}, is expected here, not a list."),
    ],
)
def test_a_wrong_value_is_named_with_what_to_send(client, given, said):
    make_entry()

    response = client.post("/api/v1/ask", given, format="json")

    assert said in error_of(response)["message"]


@pytest.mark.parametrize(
    ("field", "given", "said"),
    [
        (
            "document",
            "five",
            '"five" is not an id; send a whole number, without quotes.',
        ),
        (
            "document",
            987,
            "There is no document 987; send the id of one that you may see.",
        ),
        ("document", None, ""),
        (
            "confidence",
            "x" * 99,
            f'"{"x" * 79} ... is not a number; send one such as 0.5',
        ),
        ("audience", 3, "3 is not a slug; send one in quotes."),
    ],
)
def test_what_an_entry_refers_to_is_refused_by_value(db, field, given, said):
    entry = make_entry()
    client = rest_client(make_curator())

    response = client.patch(
        f"/api/v1/entries/{entry.pk}", {field: given}, format="json"
    )

    assert said in (error_of(response)["message"] if said else response.text)


@pytest.mark.parametrize("wrong", ["meh", "{0}%s", 5, ["up"], "x" * 1_000])
def test_a_wrong_choice_is_answered_with_the_right_ones(client, wrong):
    entry = make_entry()
    flag = f"/api/v1/entries/{entry.pk}/flag"

    asked = client.post(
        "/api/v1/ask", {"question": "x", "language": wrong}, format="json"
    )
    flagged = client.post(flag, {"reasons": [wrong]}, format="json")
    listed = client.get("/api/v1/answers", {"outcome": str(wrong)})

    for response, known in (
        (asked, ", ".join(KnowledgeBase.Language.values)),
        (flagged, ", ".join(Flag.Reason.values)),
        (listed, ", ".join(Answer.Outcome.values)),
    ):
        said = error_of(response)
        assert response.status_code == 400
        assert f"is not a valid choice; there are: {known}." in said["message"]
        assert str(wrong)[:80] in said["message"]
        assert len(said["message"]) < 400


def test_the_choices_that_an_error_lists_are_bounded():
    class ManySerializer(StrictSerializer):
        one = serializers.ChoiceField([f"{{n{number}}}" for number in range(50)])

    with pytest.raises(serializers.ValidationError, match="n19} and 30 more") as raised:
        validated(ManySerializer, {"one": "meh"})

    assert "{n20}" not in str(raised.value)


def test_a_broken_pipeline_is_a_500_without_internals(client, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("secret path /etc")

    make_entry()
    monkeypatch.setattr(asking, "decide", broken)

    response = client.post("/api/v1/ask", {"question": "Why?"}, format="json")

    assert response.status_code == 500
    assert "secret" not in json.dumps(error_of(response))


def test_a_file_in_place_of_a_slug_is_the_callers_mistake(db):
    curator = rest_client(make_curator())
    given = {"audience": io.BytesIO(b"agents"), "file": io.BytesIO(b"Text.")}

    refused = curator.post("/api/v1/imports", given, format="multipart")

    assert refused.status_code == 400
    assert "is not a slug" in str(error_of(refused)["detail"]["audience"])
