"""Follow-ups over REST: asked as standalone questions, of one's own conversation alone."""

from uuid import uuid4

import pytest

from accounts.roles import Role
from qa.models import Answer
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.answer_rows import make_asked_back
from tests.qa.answers.test_event_stream import ask_streamed, parsed
from tests.qa.inference.language_server import completion, running

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GOLD = "What does the Gold card cost?"
BUSINESS = "What does the Business card cost?"
TYPED = "and the Business card?"


@pytest.fixture
def known():
    make_entry("It costs 72 euros a year.", question=GOLD)
    return make_entry("It costs 90 euros a year.", question=BUSINESS)


@pytest.fixture
def client(known):
    return rest_client(make_user())


def ask(client, question, status=200, **more):
    response = client.post("/api/v1/ask", {"question": question, **more}, format="json")
    assert response.status_code == status, response.content
    return response.json()


def test_a_follow_up_is_decided_as_the_standalone_question(client, known):
    first = ask(client, GOLD)

    second = ask(client, TYPED, conversation=first["conversation"])

    assert first["conversation"] == first["id"]
    assert (first["typed"], first["question"]) == (GOLD, GOLD)
    assert second["conversation"] == first["id"]
    assert (second["typed"], second["question"]) == (TYPED, BUSINESS)
    assert second["gate"] == "verbatim"
    assert [each["entry"] for each in second["citations"]] == [known.pk]
    third = ask(client, "is it free?", conversation=first["id"])
    assert third["question"] == "Is the Business card free?"
    kept = Answer.objects.get(pk=second["id"])
    assert (kept.typed, str(kept.conversation)) == (TYPED, first["id"])
    listed = client.get("/api/v1/answers").json()["results"][0]
    assert (listed["id"], listed["typed"]) == (third["id"], "is it free?")


@pytest.mark.parametrize(
    ("count", "asked"), [(2, "What does it cost for the Business card?"), (0, None)]
)
@pytest.mark.usefixtures("known")
def test_a_few_words_say_what_is_meant_where_it_was_asked_back(count, asked):
    typed, asker = "the Business card", make_user()
    refused = make_asked_back(asker, question="What does it cost?", count=count)

    meant = ask(rest_client(asker), typed, conversation=str(refused.pk))

    assert meant["question"] == (asked or typed)
    assert meant["typed"] == typed


def test_it_is_asked_as_it_stands_where_that_is_wanted_or_needed(client):
    first = ask(client, GOLD)["id"]

    plain = ask(client, TYPED, conversation=first, rewrite=False)
    whole = ask(client, "How do I block a lost card?", conversation=first)

    assert plain["question"] == plain["typed"] == TYPED
    assert plain["conversation"] == whole["conversation"] == first
    assert whole["question"] == whole["typed"]
    assert set(Answer.objects.values_list("typed", flat=True)) == {""}


def test_what_was_answered_before_is_no_evidence(client):
    hidden = make_audience("board", groups=["board"])
    make_entry(
        "The Platinum card costs 98765432 euros a year.",
        question="What does the Platinum card cost?",
        audience=hidden,
    )
    first = ask(client, GOLD)

    asked = ask(client, "and the Platinum card?", conversation=first["id"])

    assert asked["question"] == "What does the Platinum card cost?"
    assert "98765432" not in str(asked)  # an id may have 900 in it
    assert not any(each["withheld"] for each in asked["near_misses"])
    assert asked["text"] != first["text"]


def test_a_conversation_of_another_user_looks_like_none(client):
    foreign = ask(rest_client(make_user()), GOLD)["id"]
    own = ask(client, GOLD)["id"]
    later = ask(client, TYPED, conversation=own)["id"]

    for conversation in (foreign, str(uuid4()), later):
        refused = ask(client, TYPED, 404, conversation=conversation)["error"]
        assert refused["code"] == "conversation_not_found"
        assert conversation in refused["message"]
    expert = rest_client(make_user(Role.SME))  # who may read it, and did not ask
    assert ask(expert, TYPED, 404, conversation=own)
    assert ask(client, TYPED, 400, conversation="seven")["error"]["code"] == "invalid"
    assert Answer.objects.count() == 3


def test_questions_of_deleted_users_are_nobodys_conversation(known):
    leaver, reader = make_user(), make_user()
    first = ask(rest_client(leaver), GOLD)["id"]
    leaver.delete()

    assert ask(rest_client(reader), TYPED, 404, conversation=first)


def test_it_stays_in_its_knowledge_base(client):
    make_knowledge_base("aaa-other")
    first = ask(client, GOLD, knowledge_base="cards")["id"]

    stays = ask(client, TYPED, conversation=first)
    leaves = ask(client, TYPED, 400, conversation=first, knowledge_base="aaa-other")

    assert Answer.objects.get(pk=stays["id"]).knowledge_base.slug == "cards"
    assert "begin a new conversation" in leaves["error"]["message"]


@pytest.mark.django_db(transaction=True)
def test_a_stream_says_what_was_asked(client):
    first = ask(client, GOLD)["id"]

    response = ask_streamed(client, TYPED, conversation=first)
    events = parsed(b"".join(response.streaming_content).decode())

    name, whole = events[-1]
    assert (name, whole["question"], whole["typed"]) == ("end", BUSINESS, TYPED)


@pytest.mark.parametrize(
    ("reply", "asked"),
    [
        ({"question": "What does a Business card cost?"}, "What does a Business card cost?"),
        ({"question": "What does the Platinum card cost?"}, BUSINESS),
        ({"question": "x" * 500}, BUSINESS),
        ("not JSON", BUSINESS),
    ],
)  # fmt: skip
def test_a_language_server_writes_it_in_the_askers_words_or_rules_do(
    client, settings, reply, asked
):
    first = ask(client, GOLD)["id"]
    with running(completion(reply)) as server:
        settings.LANGUAGE_SERVER_URL = server.url
        settings.LANGUAGE_SERVER_RETRIES = 0
        settings.LANGUAGE_MODEL = "m"
        row = ask(client, TYPED, conversation=first)

    assert row["question"] == asked
    sent = server.requests[0]
    schema = sent["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["question"]["maxLength"] == 400
    said = sent["messages"][1]["content"]
    assert GOLD in said
    assert TYPED in said
    assert "72 euros" not in said


def test_a_server_that_is_down_leaves_it_to_rules(client, settings):
    first = ask(client, GOLD)["id"]
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:1/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0
    settings.LANGUAGE_MODEL = "m"

    assert ask(client, TYPED, conversation=first)["question"] == BUSINESS
