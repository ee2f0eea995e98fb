"""What a caller does wrong gets a clear 4xx and changes no row."""

import json

import pytest
from django.apps import apps
from rest_framework.test import APIClient

from accounts.services import create_token
from nescio.rest import MAX_DEPTH
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def client() -> APIClient:
    make_entry()
    user = make_user()
    make_answer(user)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {create_token(user=user).secret}")
    return client


def row_counts() -> dict[str, int]:
    """Count the rows of every table of ours."""
    ours = ("accounts", "jobs", "kb", "qa")
    return {
        model._meta.label: model._default_manager.count()
        for label in ours
        for model in apps.get_app_config(label).get_models()
    }


def question(text: str) -> bytes:
    return json.dumps({"question": text}).encode()


BODIES = {
    "nothing": (b"", 400),
    "no JSON": (b"question=why", 400),
    "half JSON": (b'{"question": "why', 400),
    "a list": (b"[]", 400),
    "a number": (b"5", 400),
    "null": (b"null", 400),
    "no question": (b"{}", 400),
    "unknown key": (b'{"question": "why?", "qestion": "why?"}', 400),
    "empty": (question(""), 400),
    "blank": (question(" \n\t "), 400),
    "no words": (question("?!"), 400),
    "invisible": (question("\u200b\u200e"), 400),
    "a number as question": (b'{"question": 5}', 400),
    "null as question": (b'{"question": null}', 400),
    "a list as question": (b'{"question": ["why?"]}', 400),
    "true as question": (b'{"question": true}', 400),
    "one character too long": (question("a" * 2_001), 400),
    "100 kB": (question("a" * 100_000), 400),
    "2 MB": (question("a" * 2_000_000), 413),
    "NUL escaped": (b'{"question": "wh\\u0000y?"}', 400),
    "NUL raw": (b'{"question": "wh\x00y?"}', 400),
    "invalid UTF-8": (b'{"question": "wh\xffy?"}', 400),
    "UTF-16": ('{"question": "why?"}'.encode("utf-16"), 400),
    "half a surrogate pair": (b'{"question": "\\ud800"}', 400),
    "NaN": (b'{"question": NaN}', 400),
    "a huge integer": (b'{"question": ' + b"9" * 5_000 + b"}", 400),
    "a huge float": (b'{"question": 1e999}', 400),
    "deep lists": (DEEP.encode(), 400),
    "deep objects": (b'{"question":' * (MAX_DEPTH + 2) + b"1" + b"}" * (MAX_DEPTH + 2), 400),
    "unknown language": (b'{"question": "why?", "language": "fr"}', 400),
    "number as language": (b'{"question": "why?", "language": 5}', 400),
    "unknown knowledge base": (b'{"question": "why?", "knowledge_base": "x"}', 404),
    "number as knowledge base": (b'{"question": "why?", "knowledge_base": 1}', 400),
}  # fmt: skip


@pytest.mark.parametrize("route", ["ask", "search"])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(("body", "status"), BODIES.values(), ids=BODIES.keys())
def test_a_bad_question_is_refused_clearly_and_changes_nothing(
    client, route, accept, body, status
):
    if route == "search" and accept == "text/event-stream":
        status = 406
    before = row_counts()

    response = client.generic(
        "POST", f"/api/v1/{route}", body, "application/json", headers={"accept": accept}
    )

    assert response.status_code == status
    error = response.json()["error"]
    assert error["code"]
    assert len(error["message"]) < 500
    assert row_counts() == before


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "a", ""],
)  # fmt: skip
def test_a_body_that_is_not_declared_json_is_415(client, content_type):
    before = row_counts()

    response = client.generic("POST", "/api/v1/ask", question("why?"), content_type)

    assert response.status_code == 415
    assert response.json()["error"]["code"] == "unsupported_media_type"
    assert row_counts() == before


@pytest.mark.parametrize("charset", ["utf-8", "hex", "nonsense", "utf-16"])
def test_the_declared_charset_changes_nothing(client, charset):
    response = client.generic(
        "POST",
        "/api/v1/search",
        question("why?"),
        f"application/json; charset={charset}",
    )

    assert response.status_code == 200


def test_the_longest_question_is_accepted(client):
    response = client.generic(
        "POST", "/api/v1/search", question("why " * 499 + "why?"), "application/json"
    )

    assert response.status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "answers/0", "answers/x", "answers/00000000-0000-0000-0000-000000000000",
        "answers/%00", "answers/%ff", "answers/99999999999999999999999999",
        "entries/99999999999999999999999999", "entries/-1", "entries/0",
        "documents/99999999999999999999999999", "audiences/x", "nothing/here", "",
        "answers/", "ask/",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_an_unknown_address_is_a_4xx_in_the_one_shape(client, method, path):
    before = row_counts()

    response = client.generic(method, f"/api/v1/{path}", b"{}", "application/json")

    assert response.status_code in {400, 403, 404, 405}
    assert response.json()["error"]["code"]
    assert row_counts() == before
