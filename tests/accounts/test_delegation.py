"""A service account that asks for named users."""

import logging

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from rest_framework.test import APIClient

from accounts.models import AuditEntry
from accounts.roles import Role
from accounts.services import create_token
from qa.models import Answer
from tests.factories import make_audience, make_entry, make_user

SECRET_QUESTION = "What is the codeword?"


@pytest.fixture
def service(db) -> APIClient:
    make_user(Role.AGENT, username="portal")
    return portal(may_act_for_others=True)


def portal(*, may_act_for_others: bool) -> APIClient:
    owner = User.objects.get(username="portal")
    made = create_token(user=owner, may_act_for_others=may_act_for_others)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.secret}")
    return client


def ask(client: APIClient, name: str | None = None):
    headers = {} if name is None else {"x-nescio-on-behalf-of": name}
    body = {"question": SECRET_QUESTION}
    return client.post("/api/v1/ask", body, format="json", headers=headers)


def test_what_is_asked_for_a_user_is_answered_and_kept_as_theirs(service, caplog):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question=SECRET_QUESTION, audience=vault)
    make_user(Role.AGENT, username="ädä", groups=["vault"])
    make_user(Role.AGENT, username="bob")

    with caplog.at_level(logging.INFO, logger="accounts.delegation"):
        inside = ask(service, "%C3%A4d%C3%A4").json()
    outside, own = ask(service, "bob").json(), ask(service).json()

    assert (inside["answered"], inside["asker"]) == (True, "ädä")
    assert (outside["answered"], outside["asker"]) == (False, "bob")
    assert (own["answered"], own["asker"]) == (False, "portal")
    assert "Zwirbel" not in str(outside) + str(own)
    kept = Answer.objects.get(asker__username="ädä")
    assert kept.service == inside["service"] == "portal"
    assert own["service"] == ""
    used = AuditEntry.objects.filter(kind="question for", actor="portal")
    assert {each.subject for each in used} == {"ädä", "bob"}
    assert used.get(subject="ädä").changes == {"answer": [None, str(kept.pk)]}
    assert "of portal acts for ädä: POST /api/v1/ask" in caplog.text


def test_nobody_is_acted_for_with_more_than_an_agents_role(service):
    make_entry("Zwirbel.", question=SECRET_QUESTION)
    make_user(Role.ADMIN, username="boss")
    User.objects.create_superuser("root")
    make_user(role=None, username="guest")
    for_boss = {"x-nescio-on-behalf-of": "boss"}

    assert ask(service, "boss").status_code == 200
    written = {"text": "x", "audience": "everyone"}
    refused = service.post("/api/v1/entries", written, format="json", headers=for_boss)
    assert refused.status_code == 403
    assert service.get("/api/v1/tokens", headers=for_boss).status_code == 403
    assert service.get("/api/v1/tokens").status_code == 200
    assert ask(service, "guest").status_code == 403
    assert ask(service, "root").status_code == 403
    for name in ("nobody", "", "a%00b"):
        response = ask(service, name)
        assert response.status_code == 400
        assert response.json()["error"]["code"] == "unknown_user"


def test_metrics_and_versions_are_not_shown_for_somebody_else(db):
    admin = make_user(Role.ADMIN, username="operator")
    make_user(Role.AGENT, username="olga")
    made = create_token(user=admin, may_act_for_others=True)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.secret}")

    def seen(name: str | None) -> tuple[int, str]:
        headers = {} if name is None else {"x-nescio-on-behalf-of": name}
        ready = client.get("/healthz", headers=headers).json()
        metrics = client.get("/metrics", headers=headers)
        return metrics.status_code, ready["checks"]["database"]["detail"]

    status, version = seen(None)
    assert status == 200
    for name, refused in (("olga", 403), ("nobody", 400)):
        status, shown = seen(name)
        assert status == refused
        assert shown != version


def test_only_a_token_made_for_it_acts_for_others(service):
    make_user(username="bob")
    plain = ask(portal(may_act_for_others=False), "bob")
    assert plain.status_code == 403
    assert "--acts-for-others" in plain.json()["error"]["message"]

    User.objects.get(username="portal").groups.clear()
    assert ask(service, "bob").status_code == 403


def test_an_operator_makes_such_a_token(service, capsys):
    make_entry("Zwirbel.", question=SECRET_QUESTION)
    call_command("create_token", "portal", "--acts-for-others")

    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {capsys.readouterr().out.strip()}")
    make_user(username="bob")
    assert ask(client, "bob").json()["asker"] == "bob"


@pytest.mark.parametrize(
    ("address", "body"),
    [
        (
            "/v1/chat/completions",
            {
                "model": "cards",
                "messages": [{"role": "user", "content": SECRET_QUESTION}],
            },
        ),
        (
            "/mcp",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "ask", "arguments": {"question": SECRET_QUESTION}},
            },
        ),
    ],
)
def test_every_interface_acts_for_the_user(service, address, body):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question=SECRET_QUESTION, audience=vault)
    make_user(username="ada", groups=["vault"])

    response = service.post(
        address,
        body,
        format="json",
        headers={
            "x-nescio-on-behalf-of": "ada",
            "accept": "application/json, text/event-stream",
        },
    )

    assert response.status_code == 200
    assert "Zwirbel" in response.content.decode()
    assert Answer.objects.get().asker == User.objects.get(username="ada")
