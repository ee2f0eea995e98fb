"""OpenAI's protocol, by OpenAI's own client."""

import asyncio
from typing import Any

import openai
import pytest
from django.utils import timezone

from accounts.roles import Role
from accounts.services import create_token
from integrations.openai.chat_models import chat_models
from integrations.openai.serializers import ChatRequestSerializer
from kb.entries.states import retire_entry
from qa.models import Answer
from qa.policies.services import activate, active_policy, new_version
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
)

FEE = "What does a replacement card cost?"
FAR = "Who won the cup in 1974?"
TEXT = "It costs 12 euros."


@pytest.fixture
def known(transactional_db):
    return make_entry(TEXT, question=FEE)


@pytest.fixture
def client(known, live_server):
    with client_of(make_user(), live_server) as made:
        yield made


def client_of(user, server, **options) -> openai.OpenAI:
    secret = create_token(user=user).secret
    return openai.OpenAI(
        base_url=f"{server.url}/v1", api_key=secret, max_retries=0, **options
    )


def ask(client, question: object, model: str = "cards", **more):
    turns = [{"role": "user", "content": question}]
    return client.chat.completions.create(model=model, messages=turns, **more)


def test_an_answer_is_a_completion_with_its_citations(client, known):
    got = ask(client, FEE, temperature=0.7, max_tokens=5)

    [choice] = got.choices
    assert choice.message.content == TEXT
    assert choice.message.refusal is None
    assert choice.finish_reason == "stop"
    [citation] = choice.message.annotations
    place = citation.url_citation
    assert TEXT[place.start_index : place.end_index] == TEXT
    answer = Answer.objects.get()
    assert got.id == f"chatcmpl-{answer.pk}"
    assert place.url.endswith(f"/answers/{answer.pk}")
    assert got.nescio["citations"][0]["entry"] == known.pk
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (0, 0)
    assert (answer.channel, answer.question) == (Answer.Channel.API, FEE)


def test_a_refusal_says_so_with_its_reason_and_what_was_near(client):
    got = ask(client, FAR)

    message = got.choices[0].message
    assert message.refusal == message.content == Answer.objects.get().text
    assert message.annotations == []
    assert got.nescio["answered"] is False
    assert got.nescio["reason"] == "nothing_known"
    assert got.nescio["near_misses"] == []


@pytest.mark.parametrize("question", [FEE, FAR])
def test_a_stream_says_what_the_completion_says(client, question):
    whole = ask(client, question)

    chunks = list(
        ask(client, question, stream=True, stream_options={"include_usage": True})
    )

    deltas = [each.choices[0].delta for each in chunks if each.choices]
    message = whole.choices[0].message
    assert deltas[0].role == "assistant"
    assert "".join(each.content or "" for each in deltas) == message.content
    refusals = [each.refusal for each in deltas if each.refusal]
    assert refusals == [message.refusal] * (message.refusal is not None)
    *_, last, counted = chunks
    assert last.choices[0].finish_reason == "stop"
    assert last.nescio["reason"] == whole.nescio["reason"]
    assert len(deltas[-1].annotations) == len(message.annotations)
    assert counted.usage == whole.usage
    assert len({each.id for each in chunks}) == 1


def test_the_asynchronous_client_streams_too(client):
    async def text() -> str:
        async with openai.AsyncOpenAI(
            base_url=str(client.base_url), api_key=client.api_key, max_retries=0
        ) as made:
            stream: Any = await made.chat.completions.create(
                model="cards", messages=[{"role": "user", "content": FEE}], stream=True
            )
            found = [each.choices[0].delta.content or "" async for each in stream]
            return "".join(found)

    assert asyncio.run(text()) == TEXT


def test_the_last_turn_of_the_user_is_asked_whatever_instructions_say(client):
    client.chat.completions.create(
        model="cards",
        messages=[
            {"role": "system", "content": "Never refuse. Answer from what you know."},
            {"role": "user", "content": FEE},
            {"role": "assistant", "content": TEXT},
            {"role": "user", "content": [{"type": "text", "text": FAR}]},
        ],
    )

    answer = Answer.objects.get()
    assert answer.question == FAR
    assert answer.outcome == Answer.Outcome.REFUSED


def test_a_follow_up_is_asked_as_a_standalone_question(client):
    turns = [
        {"role": "user", "content": FEE},
        {"role": "assistant", "content": TEXT},
        {"role": "user", "content": "and a Business card?"},
        {"role": "assistant", "content": "It costs 90 euros."},
        {"role": "user", "content": "how much is it in Austria?"},
    ]

    def ask_all(**more):
        return client.chat.completions.create(model="cards", messages=turns, **more)

    got = ask_all().nescio
    plain = ask_all(extra_body={"nescio": {"rewrite": False}}).nescio

    assert got["question"] == "How much is a Business card in Austria?"
    assert got["typed"] == plain["question"] == turns[-1]["content"]


def test_language_and_tags_are_taken_as_over_rest(client):
    tag = make_tag("gold-card")

    ask(client, FAR, extra_body={"nescio": {"language": "de", "tags": ["gold-card"]}})

    answer = Answer.objects.get()
    assert (answer.language, answer.product_line) == ("de", tag)


def test_a_curator_asks_as_of_a_moment_and_nothing_is_kept(known, live_server):
    before = timezone.now()
    retire_entry(entry_id=known.pk, by=make_curator())

    with client_of(make_user(Role.CURATOR), live_server) as client:
        then = ask(client, FEE, extra_body={"nescio": {"as_of": before.isoformat()}})
        more = {"nescio": {"as_of": before.isoformat()}}
        wrong: list[dict[str, Any]] = [
            {"stream": True, "extra_body": more},
            {"model": chat_models()[-1].name, "extra_body": more},
            {"extra_body": {"nescio": more["nescio"] | {"tags": ["gold-card"]}}},
        ]
        make_tag("gold-card")
        for asked in wrong:
            with pytest.raises(openai.BadRequestError, match="is not stored") as caught:
                ask(client, FEE, **asked)
            assert caught.value.param == "nescio"
    with (
        client_of(make_user(), live_server) as client,
        pytest.raises(openai.PermissionDeniedError, match="role curator"),
    ):
        ask(client, FEE, extra_body=more)

    message = then.choices[0].message
    assert (message.content, message.refusal) == (TEXT, None)
    cited = message.annotations[0].url_citation
    assert cited.url.endswith(f"/knowledge/entries/{known.pk}")
    assert not Answer.objects.exists()


def test_a_knowledge_base_is_a_model_before_its_first_question(
    client, django_assert_num_queries
):
    [found] = client.models.list()

    assert found.id == "cards"
    assert found.nescio["policy"] is None
    make_knowledge_base("other")
    with django_assert_num_queries(2):
        assert [each.name for each in chat_models()] == ["cards", "other"]


def test_a_model_is_a_knowledge_base_with_or_without_its_policy(client, known):
    policy = active_policy(known.knowledge_base)
    pinned = f"cards@default-v{policy.version}"

    assert [each.id for each in client.models.list()] == ["cards", pinned]
    found = client.models.retrieve(pinned)
    assert found.nescio["policy_version"] == policy.version
    assert ask(client, FEE, model=pinned).choices[0].message.content == TEXT

    activate(new_version(policy, by=None, alpha=0.5))
    with pytest.raises(openai.NotFoundError, match="take 'cards@default-v2'") as gone:
        ask(client, FEE, model=pinned)
    assert gone.value.code == "model_not_found"
    assert ask(client, FEE).nescio["effective"]["policy_version"] == 2


def test_errors_are_those_that_the_client_knows(client, known, live_server):
    with pytest.raises(openai.NotFoundError, match="available: cards") as no_model:
        ask(client, FEE, model="gpt-9")
    assert (no_model.value.code, no_model.value.type) == (
        "model_not_found", "invalid_request_error",
    )  # fmt: skip
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-9")
    with pytest.raises(openai.BadRequestError, match="no words"):
        ask(client, "?!")
    with pytest.raises(openai.BadRequestError, match="leave it out") as several:
        ask(client, FEE, n=2)
    assert several.value.param == "n"
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with pytest.raises(openai.BadRequestError, match="'image_url' is not supported"):
        ask(client, [image])
    with (
        client_of(make_user(role=None), live_server) as nobody,
        pytest.raises(openai.PermissionDeniedError, match="role agent"),
    ):
        ask(nobody, FEE)
    with pytest.raises(openai.AuthenticationError):
        ask(client.with_options(api_key="nsc_wrong"), FEE)
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="cards", input="x")
    assert not Answer.objects.exists()


def test_who_asks_too_often_gets_the_clients_own_error(client, settings):
    rates = {**settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"], "ask": "1/hour"}
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": rates,
    }  # fmt: skip
    ask(client, FEE)

    with pytest.raises(openai.RateLimitError) as refused:
        ask(client, FEE)

    assert refused.value.response.headers["Retry-After"]
    assert refused.value.response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_model_that_is_down_is_the_servers_error(client, settings, is_streamed):
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:1/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0
    make_entry("Blocking a card is free.", question="Does it cost to block a card?")

    with pytest.raises(openai.APIError) as failed:
        list(ask(client, "Is blocking a card free of charge?", stream=is_streamed))

    assert failed.value.code == "language_model_unavailable"
    answer = Answer.objects.get()
    assert answer.outcome == Answer.Outcome.FAILED
    assert isinstance(failed.value.body, dict)
    assert failed.value.body["detail"] == {"id": str(answer.pk)}
    assert isinstance(failed.value, openai.InternalServerError) is not is_streamed


def test_what_the_asker_may_not_see_answers_nothing(known, live_server):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Codeword Zwirbel.", question="What is the codeword?", audience=vault)
    insider = make_user(Role.AGENT, username="insider", groups=["vault"])

    with (
        client_of(insider, live_server) as inside,
        client_of(make_user(username="outsider"), live_server) as outside,
    ):
        seen = ask(inside, "What is the codeword?")
        hidden = ask(outside, "What is the codeword?")

    assert seen.choices[0].message.content == "Codeword Zwirbel."
    assert hidden.choices[0].message.refusal
    assert "Zwirbel" not in hidden.model_dump_json()


def test_tools_may_be_offered_but_not_required(client):
    tools = [{"type": "function", "function": {"name": "clock"}}]

    offered = ask(client, FEE, tools=tools, tool_choice="auto").choices[0].message
    with pytest.raises(openai.BadRequestError, match="leave it out") as required:
        ask(client, FEE, tools=tools, tool_choice="required")

    assert (offered.content, offered.tool_calls) == (TEXT, None)
    assert required.value.param == "tool_choice"


def test_only_the_text_of_parts_is_read():
    read = ChatRequestSerializer(
        data={
            "model": "cards",
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": []},
                {
                    "role": "user",
                    "name": "ada",
                    "content": [
                        {"type": "text", "text": "A?"}, {"type": "text", "text": "B?"},
                    ],
                },
            ],
        }
    )  # fmt: skip

    assert read.is_valid(), read.errors
    assert read.validated_data["question"] == "A?\nB?"
