"""A POST that is sent again with its `Idempotency-Key` is answered again, and done once."""

import threading
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import idempotency
from accounts.idempotency import prune_replies
from accounts.models import KeptReply
from accounts.roles import Role
from accounts.services import create_token, revoke_token
from kb.entries.services import create_entry
from kb.models import Entry, Import
from qa.models import Answer
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

ENTRIES, ASK = "/api/v1/entries", "/api/v1/ask"
SAID = "A card costs 12 euros."
FACT = {"text": SAID, "audience": "everyone", "verify": True}
QUESTION = {"question": "What does a card cost?"}


@pytest.fixture
def curator():
    make_knowledge_base()
    make_audience()
    return rest_client(make_curator())


def client_of(user, **options) -> APIClient:
    client = APIClient()
    made = create_token(user=user, **options)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.secret}")
    return client


def send(client, body, key: str = "k1", address: str = ENTRIES, **headers: str):
    return client.post(
        address, body, format="json", headers={"Idempotency-Key": key, **headers}
    )


def code(response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def test_what_is_sent_again_is_answered_again_and_done_once(curator):
    first = send(curator, FACT)
    again = send(curator, FACT)

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert [again[name] for name in ("Location", "ETag", "Content-Type")] == [
        first[name] for name in ("Location", "ETag", "Content-Type")
    ]
    assert Entry.objects.count() == 1


def test_another_key_or_none_does_it_again(curator):
    send(curator, FACT)
    send(curator, FACT, "k2")
    curator.post(ENTRIES, FACT, format="json")

    assert Entry.objects.count() == 3
    assert KeptReply.objects.count() == 2


def test_a_request_without_a_key_asks_nothing_about_it(
    curator, django_assert_max_num_queries
):
    with django_assert_max_num_queries(200) as made:
        curator.post(ENTRIES, FACT, format="json")

    assert not [each for each in made if "keptreply" in each["sql"]]


@pytest.mark.parametrize(
    ("address", "body"),
    [
        (ENTRIES, {**FACT, "text": "A card costs 15 euros."}),
        (f"{ENTRIES}/bulk", {"ids": [1], "action": "verify"}),
    ],
)
def test_a_key_of_another_request_is_refused(curator, address, body):
    send(curator, FACT)

    assert code(send(curator, body, address=address)) == (422, "idempotency_key_reused")
    assert Entry.objects.count() == 1


def test_the_order_of_a_bodys_fields_is_no_other_request(curator):
    send(curator, FACT)
    send(curator, dict(reversed(FACT.items())))

    assert Entry.objects.count() == 1


@pytest.mark.parametrize("key", ["", " ", "ключ", "a" * 256, "a\x7f"])
def test_what_is_no_key_is_refused(curator, key):
    response = curator.post(ENTRIES, FACT, format="json", HTTP_IDEMPOTENCY_KEY=key)

    assert code(response) == (400, "invalid_idempotency_key")
    assert not Entry.objects.exists()


def test_the_longest_key_is_one(curator):
    assert send(curator, FACT, "a" * 255).status_code == 201


def test_an_error_of_the_callers_is_answered_again(curator):
    refused = send(curator, {**FACT, "audience": "nobody"})
    make_audience("nobody")
    again = send(curator, {**FACT, "audience": "nobody"})

    assert refused.status_code == 400
    assert again.content == refused.content


def test_what_may_pass_is_not_kept(curator, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("broken")

    curator.raise_request_exception = False
    with monkeypatch.context() as broken:
        broken.setattr("kb.entries.api.create_entry", fail)
        assert send(curator, FACT).status_code == 500

    assert not KeptReply.objects.exists()
    assert send(curator, FACT).status_code == 201


def test_who_may_not_do_it_any_more_is_not_answered_again(curator):
    user = make_user(Role.CURATOR, username="olga")
    client = client_of(user)
    assert send(client, FACT).status_code == 201
    user.groups.clear()

    assert send(client, FACT).status_code == 403


def test_a_key_is_its_callers_alone(curator):
    olga, vera = (make_user(Role.CURATOR, username=name) for name in ("olga", "vera"))
    one, other = client_of(olga), client_of(olga)

    for client in (one, other, client_of(vera), curator):
        assert "Idempotency-Replayed" not in send(client, FACT)

    assert Entry.objects.count() == 4
    revoke_token(token_id=olga.auth_token_set.earliest("created").pk, by=olga)
    assert KeptReply.objects.count() == 3


def test_for_whom_a_service_acts_tells_its_keys_apart():
    make_entry(SAID, question=QUESTION["question"])
    portal = client_of(
        make_user(Role.AGENT, username="portal"), may_act_for_others=True
    )
    for name in ("ada", "bob"):
        make_user(Role.AGENT, username=name)
        for _ in range(2):
            asked = send(
                portal, QUESTION, address=ASK, **{"X-Nescio-On-Behalf-Of": name}
            )
            assert asked.json()["asker"] == name

    assert Answer.objects.count() == 2


def test_a_question_is_asked_once():
    make_entry(SAID, question=QUESTION["question"])
    client = client_of(make_user())

    first, again = (send(client, QUESTION, address=ASK) for _ in range(2))

    assert first.json()["answered"]
    assert first.content == again.content
    assert Answer.objects.count() == 1


@pytest.mark.parametrize(
    ("address", "body", "headers"),
    [
        (ASK, QUESTION, {"Accept": "text/event-stream"}),
        (
            "/v1/chat/completions",
            {
                "model": "cards",
                "messages": [{"role": "user", "content": "Why?"}],
                "stream": True,
            },
            {},
        ),
    ],
)
def test_a_stream_is_refused(address, body, headers):
    make_entry()

    response = send(client_of(make_user()), body, address=address, **headers)

    assert response.status_code == 400
    assert "text/event-stream" not in response["Content-Type"]
    assert not Answer.objects.exists()
    assert not KeptReply.objects.exists()


def test_a_file_is_uploaded_once(curator, import_directory):
    def upload(text: str):
        file = SimpleUploadedFile("cards.csv", text.encode())
        given = {"file": file, "audience": "everyone", "dry_run": "true"}
        return curator.post(
            "/api/v1/imports",
            given,
            format="multipart",
            headers={"Idempotency-Key": "f"},
        )

    first, again = upload("text\nOne.\n"), upload("text\nOne.\n")

    assert first.status_code == 202, first.content
    assert first.content == again.content
    assert code(upload("text\nTwo.\n")) == (422, "idempotency_key_reused")
    assert Import.objects.count() == 1


def test_a_token_is_never_kept(db):
    make_user(username="ada").set_password("x")

    response = send(
        APIClient(), {"username": "ada", "password": "x"}, address="/api/v1/tokens"
    )

    assert code(response) == (400, "invalid_idempotency_key")
    assert not KeptReply.objects.exists()


def test_mcp_numbers_its_own_messages():
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepted = {"Accept": "application/json, text/event-stream"}

    response = send(client_of(make_user()), body, address="/mcp", **accepted)

    assert response.status_code == 200, response.content
    assert not KeptReply.objects.exists()


def test_a_reply_that_is_too_large_is_not_done_again(curator, monkeypatch):
    monkeypatch.setattr(idempotency, "_MAX_REPLY_LENGTH", 100)
    assert send(curator, FACT).status_code == 201

    assert code(send(curator, FACT)) == (409, "reply_not_kept")
    assert Entry.objects.count() == 1
    assert KeptReply.objects.get().body == ""


def test_after_a_day_a_key_is_free(curator):
    send(curator, FACT)
    KeptReply.objects.update(created_at=timezone.now() - timedelta(hours=25))

    assert "Idempotency-Replayed" not in send(curator, FACT)
    assert Entry.objects.count() == 2
    assert prune_replies() == 0
    KeptReply.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert prune_replies() == 1


def test_a_request_that_was_killed_may_be_sent_again(curator):
    send(curator, FACT)
    KeptReply.objects.update(status=None)
    assert code(send(curator, FACT)) == (409, "idempotency_key_in_use")

    KeptReply.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    assert send(curator, FACT).status_code == 201
    assert KeptReply.objects.get().status == 201


@pytest.mark.django_db(transaction=True)
def test_of_two_at_the_same_time_one_is_done_and_the_other_told_so(
    curator, monkeypatch
):
    begun, may_go = threading.Event(), threading.Event()
    replies = []

    def slow(**fields):
        begun.set()
        assert may_go.wait(60)
        return create_entry(**fields)

    def first():
        replies.append(send(curator, FACT))
        connection.close()

    monkeypatch.setattr("kb.entries.api.create_entry", slow)
    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    meanwhile = send(rest_client(make_curator()), FACT)
    may_go.set()
    thread.join(60)

    assert code(meanwhile) == (409, "idempotency_key_in_use")
    assert meanwhile["Retry-After"] == "1"
    assert replies[0].status_code == 201
    assert Entry.objects.count() == 1
