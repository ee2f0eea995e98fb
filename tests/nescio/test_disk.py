"""No room to store: whoever writes gets 503, whoever reads is served, health says so."""

import errno

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from rest_framework.test import APIClient

from accounts.acting import as_owner
from nescio import disk
from qa.answers.api import AnswerViewSet
from qa.models import Answer
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forgets(monkeypatch):
    monkeypatch.setattr(disk._Refusal, "at", float("-inf"))


@pytest.fixture
def client():
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(make_curator())
    return client


def assert_full(response):
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert response.json()["error"]["code"] == "disk_full"


def write(client, what):
    make_knowledge_base(), make_audience()
    body = {"question": "Why is the sky blue?"}
    entry = {"text": "It costs 12 euros.", "audience": "all"}
    file = SimpleUploadedFile("rules.csv", b"text\nIt costs 12 euros.\n")
    return {
        "ask": lambda: client.post("/api/v1/ask", body, format="json"),
        "entry": lambda: client.post("/api/v1/entries", entry, format="json"),
        "import": lambda: client.post(
            "/api/v1/imports", {"file": file}, format="multipart"
        ),
    }[what]()


@pytest.mark.parametrize("what", ["ask", "entry", "import"])
def test_what_writes_is_refused_before_the_reserve_is_used_up(client, settings, what):
    settings.DISK_RESERVE_MIB = 10**9

    response = write(client, what)

    assert_full(response)
    assert "NESCIO_DISK_RESERVE_MIB" in response.json()["error"]["message"]
    assert client.get("/api/v1/answers").status_code == 200


def test_pages_are_refused_too_and_health_says_why(client, settings):
    settings.DISK_RESERVE_MIB = 10**9

    page = client.post("/login", {"username": "a", "password": "b"})
    health = client.get("/healthz")

    assert (page.status_code, page["Content-Type"][:10]) == (503, "text/plain")
    assert health.status_code == 503
    assert "MiB are left" in health.json()["checks"]["disk"]["detail"]


@pytest.fixture
def _full_database():
    """Let the database refuse new answers as it does on a disk without space."""
    with as_owner("tests"), connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END$$;"
            "CREATE TRIGGER full_disk BEFORE INSERT ON qa_answer"
            " EXECUTE FUNCTION full_disk()"
        )
        yield
        cursor.execute("DROP FUNCTION full_disk CASCADE")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_full_database")
def test_a_database_without_space_is_told_as_it_is_and_nothing_is_stored(client):
    make_entry("It costs 12 euros.")

    assert_full(write(client, "ask"))
    assert not Answer.objects.exists()
    assert not client.get("/healthz").json()["checks"]["disk"]["ok"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full"),
        (OperationalError("the connection is closed"), "unavailable"),
    ],
)
def test_what_may_pass_is_503_and_not_500(client, monkeypatch, caplog, error, code):
    def broken(self):
        raise error

    monkeypatch.setattr(AnswerViewSet, "get_queryset", broken)

    response = client.get("/api/v1/answers")

    assert (response.status_code, response.json()["error"]["code"]) == (503, code)
    assert int(response["Retry-After"]) > 0
    assert str(error) in caplog.text
    assert str(error) not in response.content.decode()
