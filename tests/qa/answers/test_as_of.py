"""Asking and searching as of a moment: by REST and from the command line."""

import json
from contextlib import ExitStack
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.roles import Role
from kb.documents.models import Section
from kb.documents.services import edit_document
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry, verify_entry
from kb.search.past import one_of_few
from qa.models import Answer
from qa.policies.services import activate, active_policy, new_version
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
)

pytestmark = pytest.mark.django_db

BLOCK = "How do I block a card?"


@pytest.fixture
def client() -> APIClient:
    return rest_client(make_user(Role.CURATOR))


@pytest.fixture
def before():
    """Return a moment after which the entry was changed and retired."""
    entry = make_entry("Open Cards, Block.", question=BLOCK)
    moment = timezone.now()
    curator = make_curator()
    edit_entry(
        entry_id=entry.pk, author=curator, may_verify=True, text="Call the desk."
    )
    retire_entry(entry_id=entry.pk, by=curator)
    return moment


def ask(client, address="ask", *, status=200, **fields):
    body = {"question": BLOCK, **fields}
    response = client.post(f"/api/v1/{address}", body, format="json")
    assert response.status_code == status, response.content
    return response.json()


def message(client, *, status=400, **fields) -> str:
    return str(ask(client, status=status, **fields)["error"])


def test_an_answer_as_of_a_moment_is_what_would_have_been_said_and_is_not_kept(
    client, before
):
    then, now = ask(client, as_of=before.isoformat()), ask(client)

    assert (then["text"], then["gate"]) == ("Open Cards, Block.", "verbatim")
    assert [piece["text"] for piece in then["citations"]] == ["Open Cards, Block."]
    assert then["as_of"] == before.isoformat().replace("+00:00", "Z")
    assert (now["answered"], now["as_of"]) == (False, None)
    assert str(Answer.objects.get().pk) == now["id"]


def test_evidence_stands_where_it_stood_and_was_verified_then(client):
    document = make_document("Prices of 2026")
    section = Section.objects.create(document=document, heading="Cards", position=0)
    entry = make_entry("Open Cards, Block.", question=BLOCK, section=section)
    moment = timezone.now()
    was = ask(client, as_of=moment)["citations"][0]
    edit_document(document_id=document.pk, title="Prices of 2027")
    Section.objects.update(heading="Cards and phones")
    verify_entry(entry_id=entry.pk, by=make_curator())

    (piece,) = ask(client, as_of=moment)["citations"]

    assert (piece["document"], piece["section"]) == ("Prices of 2026", "Cards")
    assert piece["verified_at"] == was["verified_at"]
    now = ask(client)["citations"][0]
    assert (now["document"], now["section"]) == ("Prices of 2027", "Cards and phones")


@pytest.mark.parametrize("by_command", [False, True])
def test_a_document_that_was_hidden_since_is_not_named(client, by_command):
    document = make_document("Secret prices")
    make_entry("Open Cards, Block.", question=BLOCK, document=document)
    moment = timezone.now()
    document.audience = make_audience("vault", groups=["vault"])
    document.save()

    if by_command:
        out, name = StringIO(), make_user(Role.CURATOR).username
        at = moment.isoformat()
        call_command("ask", BLOCK, "--as", name, "--as-of", at, "--json", stdout=out)
        found = json.loads(out.getvalue())
    else:
        found = ask(client, as_of=moment)

    (piece,) = found["citations"]
    assert (piece["text"], piece["document"]) == ("Open Cards, Block.", None)


def test_a_search_as_of_a_moment_finds_what_was_there(client, before):
    then, now = ask(client, "search", as_of=before), ask(client, "search")

    assert [piece["text"] for piece in then["evidence"]] == ["Open Cards, Block."]
    assert (now["evidence"], now["as_of"]) == ([], None)


def test_the_policy_of_then_decides(client, before):
    base = make_knowledge_base()
    made = new_version(active_policy(base), by=None, verbatim_distance=0.0)
    activate(made)

    assert ask(client, as_of=before)["effective"]["policy_version"] == 1
    later = ask(client, as_of=timezone.now())
    assert later["effective"]["policy_version"] == 2


def test_a_moment_that_has_nothing_is_refused_with_the_remedy(client, before):
    tomorrow = timezone.now() + timedelta(days=1)

    assert "in the future; name a past moment" in message(client, as_of=tomorrow)
    assert "had no entry that you may see: its first entry is of" in message(
        client, as_of=before - timedelta(days=1)
    )
    for wrong in ("yesterday", 7, "9999-12-31T23:59:59-10:00"):
        assert "as_of" in message(client, as_of=wrong)


@pytest.mark.parametrize("address", ["ask", "search", "entries.csv"])
def test_the_past_is_looked_at_by_few_at_a_time(client, before, address):
    moment = before.isoformat()

    def post():
        if address == "entries.csv":
            return client.get(f"/api/v1/{address}", {"as_of": moment})
        body = {"question": BLOCK, "as_of": moment}
        return client.post(f"/api/v1/{address}", body, format="json")

    with ExitStack() as places:
        for _ in range(max(1, settings.WEB_THREADS // 8)):
            places.enter_context(one_of_few())
        refused = post()

    assert (refused.status_code, int(refused["Retry-After"]) > 0) == (503, True)
    assert "the most allowed at once" in refused.json()["error"]["message"]
    assert post().status_code == 200
    assert ask(client)["as_of"] is None


def test_agents_do_not_ask_as_of_a_moment(before):
    client = rest_client(make_user())

    assert "needs the role curator" in message(client, status=403, as_of=before)


def test_what_goes_with_what_is_kept_is_refused(client, before):
    kept = ask(client)["conversation"]

    for more in ({"tags": [make_tag().slug]}, {"conversation": kept}):
        assert "is not stored: ask it without" in message(client, as_of=before, **more)


def test_nobody_sees_as_of_a_moment_what_was_kept_from_them_since(client):
    make_entry("Support answers the phone from 8 to 20.")
    entry = make_entry("Open Cards, Block.", question=BLOCK)
    before = timezone.now()
    vault = make_audience("vault", groups=["vault"])
    edit_entry(
        entry_id=entry.pk, author=make_curator(), may_verify=True, audience=vault
    )

    found = ask(client, as_of=before)

    assert (found["answered"], found["reason"]) == (False, "nothing_known")
    assert found["near_misses"] == []


def test_that_there_is_hidden_knowledge_is_told_only_where_it_is_today(client):
    base = make_knowledge_base()
    vault = make_audience("vault", groups=["vault"])
    make_entry("Everybody reads this.")
    make_entry("Open Cards, Block.", question=BLOCK, audience=vault)
    told = new_version(active_policy(base), by=None, reveal_not_entitled=True)
    activate(told)
    before = timezone.now()
    assert (
        ask(client)["reason"] == ask(client, as_of=before)["reason"] == "not_entitled"
    )
    activate(new_version(told, by=None, reveal_not_entitled=False))

    assert ask(client, as_of=before)["reason"] != "not_entitled"


def test_the_command_line_asks_as_of_a_moment(before, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    User.objects.create_superuser("root")
    out = StringIO()

    call_command("ask", BLOCK, "--as-of", before.isoformat(), stdout=out, no_color=True)

    assert "As of 2" in out.getvalue()
    assert "Open Cards, Block." in out.getvalue()
    assert not Answer.objects.exists()
    with pytest.raises(CommandError, match="in the future"):
        call_command("ask", BLOCK, "--as-of", "2999-01-01T00:00")
    with pytest.raises(CommandError, match="is not a moment"):
        call_command("ask", BLOCK, "--as-of", "yesterday")
    both = ("--as-of", before.isoformat(), "--follows", str(uuid4()))
    with pytest.raises(CommandError, match="give --as-of or --follows, not both"):
        call_command("ask", BLOCK, *both)
