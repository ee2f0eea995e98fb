"""The Model Context Protocol, by the official SDK's client, over both transports."""

import os
import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from django.conf import settings
from django.utils import timezone
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from accounts.roles import Role
from accounts.services import create_token
from kb.entries.states import retire_entry
from kb.models import Entry
from qa.models import Answer, Vote
from tests.factories import make_audience, make_curator, make_entry, make_user

pytestmark = pytest.mark.slow

FEE = "What does a replacement card cost?"
FAR = "Who won the cup in 1974?"


@asynccontextmanager
async def over_http(url: str, token: str, mode: str = "auto"):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(url: str, token: str):
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["manage.py", "mcp", "--url", url],
        env={**os.environ, "NESCIO_TOKEN": token},
        cwd=settings.BASE_DIR,
    )
    async with Client(stdio_client(parameters)) as client:
        yield client


def called(connect, url, user, *calls):
    """Return the results of tool calls, made one after the other by one client."""
    token = create_token(user=user).secret

    async def run():
        async with connect(url, token) as client:
            return [await client.call_tool(name, given) for name, given in calls]

    return anyio.run(run)


@pytest.fixture
def known(transactional_db):
    return make_entry("It costs 12 euros.", question=FEE)


@pytest.mark.parametrize("connect", [over_http, over_stdio])
def test_a_question_is_answered_or_refused_as_over_rest(known, live_server, connect):
    answered, refused, found, listed, entry = called(
        connect,
        live_server.url,
        make_user(),
        ("ask", {"question": FEE}),
        ("ask", {"question": FAR}),
        ("search", {"question": FEE}),
        ("list_knowledge_bases", {}),
        ("get_entry", {"entry": known.pk}),
    )

    answer = answered.structured_content
    assert answer["text"] == "It costs 12 euros."
    assert [each["entry"] for each in answer["citations"]] == [known.pk]
    assert Answer.objects.get(pk=answer["id"]).channel == Answer.Channel.API
    refusal = refused.structured_content
    assert not refused.is_error
    assert (refusal["answered"], refusal["reason"]) == (False, "nothing_known")
    assert found.structured_content["passes"] is True
    [base] = listed.structured_content["results"]
    assert (base["slug"], base["is_default"], base["role"]) == ("cards", True, "agent")
    assert entry.structured_content["text"] == "It costs 12 euros."
    assert Answer.objects.count() == 2


def test_a_curator_asks_and_searches_as_of_a_moment(known, live_server):
    before = timezone.now().isoformat()
    retire_entry(entry_id=known.pk, by=make_curator())

    given = {"question": FEE, "as_of": before}
    answered, found, now = called(
        over_http,
        live_server.url,
        make_user(Role.CURATOR),
        ("ask", given),
        ("search", given),
        ("ask", {"question": FEE}),
    )

    assert answered.structured_content["text"] == "It costs 12 euros."
    assert answered.structured_content["as_of"] == before.replace("+00:00", "Z")
    assert [e["entry"] for e in found.structured_content["evidence"]] == [known.pk]
    assert not now.structured_content["answered"]
    assert Answer.objects.count() == 1  # the one of now


def test_a_follow_up_is_asked_as_a_question_of_its_own(known, live_server):
    user = make_user()
    [first] = called(over_http, live_server.url, user, ("ask", {"question": FEE}))
    conversation = first.structured_content["conversation"]

    said = {"question": "And for a virtual card?", "conversation": conversation}
    [followed] = called(over_http, live_server.url, user, ("ask", said))

    answer = followed.structured_content
    assert answer["conversation"] == conversation
    assert "virtual" in answer["question"]
    assert Answer.objects.get(pk=answer["id"]).typed == said["question"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_generation_of_the_protocol_lists_the_tools(known, live_server, mode):
    token = create_token(user=make_user()).secret

    async def run():
        async with over_http(live_server.url, token, mode) as client:
            return client.instructions, await client.list_tools()

    instructions, listed = anyio.run(run)

    assert "refuses" in instructions
    assert [tool.name for tool in listed.tools] == [
        "ask", "search", "list_knowledge_bases", "get_entry", "propose_entry", "vote",
    ]  # fmt: skip
    assert all(tool.description for tool in listed.tools)


def test_what_a_curator_proposes_is_a_draft_and_no_evidence(known, live_server):
    question = "Is the hotline free of charge?"
    proposed, asked = called(
        over_http,
        live_server.url,
        make_user(Role.CURATOR),
        (
            "propose_entry",
            {"text": "Yes, always.", "question": question, "audience": "everyone"},
        ),
        ("ask", {"question": question}),
    )

    assert not proposed.is_error, proposed
    entry = Entry.objects.get(pk=proposed.structured_content["id"])
    assert (entry.state, entry.question) == (Entry.State.DRAFT, question)
    assert asked.structured_content["answered"] is False


def test_a_vote_is_kept_and_taken_back(known, live_server):
    user = make_user()
    [asked] = called(over_http, live_server.url, user, ("ask", {"question": FAR}))
    answer = asked.structured_content["id"]

    down = {"answer": answer, "rating": "down", "reasons": ["should_be_known"]}
    [voted] = called(over_http, live_server.url, user, ("vote", down))
    assert not voted.is_error, voted
    assert Vote.objects.get().user == user

    called(
        over_http, live_server.url, user, ("vote", {"answer": answer, "rating": None})
    )
    assert not Vote.objects.exists()


def test_mistakes_are_results_that_say_how_to_correct_them(known, live_server):
    secret = make_entry(
        "Z.", question="Code?", audience=make_audience("x", groups=["x"])
    )
    results = called(
        over_http,
        live_server.url,
        make_user(),
        ("ask", {"question": "?!"}),
        ("ask", {"question": FEE, "knowledge_base": "absent"}),
        ("ask", {"question": FEE, "policy": "mine"}),
        ("get_entry", {"entry": secret.pk}),
        ("get_entry", {"entry": "../tokens"}),
        ("get_entry", {}),
        ("propose_entry", {"text": "x", "audience": "everyone"}),
        ("forget", {}),
    )

    assert all(each.is_error for each in results)
    said = [each.content[0].text for each in results]
    parts = [
        "no words", "available: cards", "no such field", "no entry",
        "nothing at /api/v1/entries/..%2Ftokens", "entry: This argument is required",
        "role curator", "there are: ask, search",
    ]  # fmt: skip
    for part, text in zip(parts, said, strict=True):
        assert part in text, text


@pytest.mark.django_db
def test_nobody_without_a_token_with_a_role_speaks_to_the_server(client):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    client.force_login(make_user(Role.ADMIN))  # a cookie is none

    def post(**headers: str):
        return client.post("/mcp", body, "application/json", headers=headers)

    assert post().status_code == 401
    assert client.get("/mcp").status_code == 401
    nobody = create_token(user=make_user(role=None, username="nobody")).secret
    assert post(authorization=f"Bearer {nobody}").status_code == 403
    agent = create_token(user=make_user(username="agent")).secret
    assert (
        client.get("/mcp", headers={"authorization": f"Bearer {agent}"}).status_code
        == 405
    )
    assert post(authorization=f"Bearer {agent}", accept="text/html").status_code == 406
