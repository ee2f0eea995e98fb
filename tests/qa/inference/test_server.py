import json
import logging
import math
import socket
import time

import pytest

from qa.exceptions import LanguageModelUnavailableError
from qa.inference.configured import load_language_model
from qa.inference.server import ServerLanguageModel
from qa.pipeline.language_model import Prompt
from tests.qa.inference.language_server import GOOD, Reply, completion, failure, running
from tests.qa.pipeline.values import make_evidence
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PROMPT = Prompt(
    "What does Gold cost?", (make_evidence("Gold costs 72 euros a year."),), "en"
)


def client(url: str, *, timeout: float = 120, retries: int = 2) -> ServerLanguageModel:
    return ServerLanguageModel(
        url=url, key="secret-key", model="m", timeout_seconds=timeout, retries=retries
    )


def test_a_good_reply_becomes_a_generation():
    with running(completion()) as server:
        generation = client(server.url).generate(PROMPT)

    assert generation.cited == (1,)
    assert generation.quotes == ((1, "costs 72 euros a year"),)
    assert generation.reasoning == "Piece 1 names the price."
    assert generation.can_answer
    assert generation.answer == "72 euros a year."
    assert not generation.malformed
    assert not generation.repaired
    assert generation.verdict_probability is None
    assert (generation.prompt_tokens, generation.answer_tokens) == (90, 30)
    assert server.keys == ["Bearer secret-key"]


def test_the_request_asks_for_the_schema_and_carries_the_data():
    with running(completion()) as server:
        client(server.url).generate(PROMPT)

    (request,) = server.requests
    assert request["response_format"]["json_schema"]["strict"] is True
    fields = request["response_format"]["json_schema"]["schema"]["properties"]
    assert fields["evidence"]["items"] == {"type": "integer", "enum": [1]}
    assert fields["evidence"]["maxItems"] == fields["quotes"]["maxItems"] == 1
    assert fields["can_answer"].keys() == {"type", "description"}
    assert {"maxLength"} <= fields["answer"].keys() & fields["reasoning"].keys()
    assert fields["answer"]["minLength"] == 0
    assert request["temperature"] == 0
    sent = json.loads(request["messages"][1]["content"])
    assert sent["question"] == PROMPT.question
    assert sent["evidence"] == [{"number": 1, "text": PROMPT.evidence[0].text}]


def test_probabilities_of_the_reply_become_the_verdicts():
    pieces = ['{"can_answer":', " true", ', "answer": "', "72", '", "evidence": [1], ',
              '"quotes": [], "reasoning": "r"}']  # fmt: skip
    values = [-0.1, math.log(0.75), -0.1, -0.5, -0.5, -0.5]
    tokens = [
        {"token": text, "logprob": value, "top_logprobs": []}
        for text, value in zip(pieces, values, strict=True)
    ]
    tokens[1]["top_logprobs"] = [
        {"token": " true", "logprob": math.log(0.75)},
        {"token": " false", "logprob": math.log(0.25)},
    ]

    with running(
        completion("".join(pieces), logprobs={"content": tokens, "refusal": None})
    ) as server:
        generation = client(server.url).generate(PROMPT)

    assert generation.verdict_probability == pytest.approx(0.75)
    assert generation.log_probability == pytest.approx(-0.5)


@pytest.mark.parametrize("status", [500, 502, 503, 409, 429])
def test_a_failure_in_passing_is_asked_again(status):
    with running(failure(status), completion()) as server:
        generation = client(server.url).generate(PROMPT)

    assert generation.can_answer
    assert len(server.requests) == 2


def test_retry_after_is_waited_for():
    with running(failure(429, retry_after="1"), completion()) as server:
        began = time.monotonic()
        client(server.url).generate(PROMPT)

    assert 1 <= time.monotonic() - began < 60


def test_a_retry_after_beyond_the_deadline_is_not_waited_for():
    with running(failure(429, retry_after="600")) as server:
        began = time.monotonic()
        with pytest.raises(LanguageModelUnavailableError, match="replied 429"):
            client(server.url).generate(PROMPT)

    assert time.monotonic() - began < 60
    assert len(server.requests) == 1


def test_retries_are_bounded():
    with (
        running(failure(500)) as server,
        pytest.raises(LanguageModelUnavailableError, match="replied 500"),
    ):
        client(server.url, retries=1).generate(PROMPT)

    assert len(server.requests) == 2


def test_a_slow_server_is_given_up_at_the_deadline_and_not_asked_again():
    slow = Reply(200, completion().body, after_seconds=120)
    with running(slow) as server:
        began = time.monotonic()
        with pytest.raises(LanguageModelUnavailableError, match="took too long"):
            client(server.url, timeout=0.5).generate(PROMPT)
        waited = time.monotonic() - began
        wait_until(lambda: server.requests)  # its thread may come late

    assert waited < 60
    assert len(server.requests) == 1


def test_a_server_that_is_down_is_unavailable_and_its_cause_logged(caplog):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(
            LanguageModelUnavailableError, match="cannot be reached"
        ) as raised,
    ):
        client(f"http://127.0.0.1:{port}/v1", retries=0).generate(PROMPT)

    assert raised.value.status == 503
    assert "refused" in caplog.text
    assert "secret-key" not in caplog.text


def test_a_wrong_key_is_not_tried_again():
    with (
        running(failure(401)) as server,
        pytest.raises(LanguageModelUnavailableError, match="replied 401"),
    ):
        client(server.url).generate(PROMPT)

    assert len(server.requests) == 1


def test_a_server_without_schemas_is_asked_in_words_from_then_on():
    with running(
        failure(400, "response_format is not supported"), completion(), completion()
    ) as server:
        model = client(server.url)
        first, second = model.generate(PROMPT), model.generate(PROMPT)

    assert first.can_answer
    assert second.can_answer
    assert ["response_format" in request for request in server.requests] == [
        True, False, False,
    ]  # fmt: skip
    assert all("temperature" in request for request in server.requests)


def test_a_server_that_takes_no_bounds_is_sent_the_schema_without():
    refusal = (
        "Invalid schema for response_format 'answer': 'maxLength' is not permitted."
    )
    with running(failure(400, refusal), completion(), completion()) as server:
        model = client(server.url)
        model.generate(PROMPT)
        model.generate(PROMPT)

    bounded = [
        "maxLength" in json.dumps(request["response_format"])
        for request in server.requests
    ]
    assert bounded == [True, False, False]
    schema = server.requests[-1]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == list(schema["properties"])
    assert all("logprobs" in request for request in server.requests)


def test_a_server_that_rejects_everything_is_unavailable_after_few_requests():
    with (
        running(failure(400)) as server,
        pytest.raises(LanguageModelUnavailableError, match="replied 400"),
    ):
        client(server.url).generate(PROMPT)

    assert len(server.requests) == 6


def test_malformed_output_is_repaired_once():
    with running(completion("It costs 72 euros."), completion()) as server:
        generation = client(server.url).generate(PROMPT)

    assert generation.repaired
    assert not generation.malformed
    assert generation.prompt_tokens == 180
    assert generation.raw.startswith("It costs 72 euros.")
    said = server.requests[1]["messages"]
    assert said[2] == {"role": "assistant", "content": "It costs 72 euros."}
    assert "no complete JSON object" in said[3]["content"]


def test_output_that_is_malformed_twice_is_a_value_and_no_error():
    with running(completion("no"), completion('{"can_answer": "maybe"}')) as server:
        generation = client(server.url).generate(PROMPT)

    assert generation.malformed
    assert not generation.can_answer
    assert generation.answer == ""
    assert generation.raw == 'no\n\n{"can_answer": "maybe"}'
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "declined",
    [
        completion("", message={"refusal": "I can't help with that."}),
        completion("", finish_reason="content_filter"),
    ],
    ids=["refusal", "content_filter"],
)
def test_a_servers_own_refusal_is_a_verdict(declined):
    with running(declined) as server:
        generation = client(server.url).generate(PROMPT)

    assert not generation.can_answer
    assert not generation.malformed
    assert generation.reasoning
    assert len(server.requests) == 1


def test_output_cut_for_its_length_is_asked_for_shorter():
    cut = completion(json.dumps(GOOD)[:40], finish_reason="length")
    with running(cut, completion()) as server:
        generation = client(server.url).generate(PROMPT)

    assert generation.repaired
    assert "write less" in server.requests[1]["messages"][3]["content"]


def test_an_empty_reply_is_repaired():
    nothing = completion()
    nothing.body["choices"] = []
    with running(nothing, completion()) as server:
        generation = client(server.url).generate(PROMPT)

    assert generation.repaired


@pytest.mark.parametrize(
    "page",
    [
        Reply(body="<html>It works!</html>", headers={"Content-Type": "text/html"}),
        Reply(body="<html>It works!</html>"),
        Reply(body="[]"),
        Reply(body="null"),
    ],
    ids=["web page", "web page called JSON", "list", "null"],
)
def test_a_reply_that_is_no_completion_is_a_server_that_is_not_there(page):
    with running(page) as server, pytest.raises(LanguageModelUnavailableError):
        client(server.url, retries=0).generate(PROMPT)


@pytest.mark.parametrize("message", [None, "text"])
def test_a_choice_without_a_message_is_repaired(message):
    nothing = completion()
    nothing.body["choices"][0]["message"] = message
    with running(nothing, completion()) as server:
        assert client(server.url).generate(PROMPT).repaired


def test_content_in_parts_is_malformed():
    parts = completion(message={"content": [{"type": "text", "text": "72"}]})
    with running(parts) as server:
        assert client(server.url).generate(PROMPT).malformed


def test_probabilities_without_other_tokens_are_read():
    tokens = [
        {"token": text, "logprob": -0.1, "top_logprobs": None}
        for text in ('{"can_answer":', " true", ', "answer": "', "72", '", "evidence": [1], "quotes": [], "reasoning": "r"}')
    ]  # fmt: skip
    text = "".join(str(token["token"]) for token in tokens)
    with running(completion(text, logprobs={"content": tokens})) as server:
        assert client(server.url).generate(PROMPT).verdict_probability == 1.0


def test_fingerprints_follow_server_and_model_and_hold_no_key():
    one = client("http://user:pass@a.example/v1").fingerprint

    assert one == client("http://a.example/v1").fingerprint
    assert one != client("http://b.example/v1").fingerprint
    assert len(one) == 64


def test_settings_choose_the_server_and_its_only_model(settings):
    listing = Reply(
        body={"object": "list", "data": [{"id": "only", "object": "model"}]}
    )
    with running(listing, completion()) as server:
        settings.LANGUAGE_SERVER_URL = server.url
        model = load_language_model()
        generation = model.generate(PROMPT)
        again = load_language_model()

    assert generation.can_answer
    assert server.requests[0]["model"] == "only"
    assert again is model


def test_a_server_with_several_models_wants_a_name(settings):
    data = [{"id": name, "object": "model"} for name in ("a", "b")]
    with running(Reply(body={"object": "list", "data": data})) as server:
        settings.LANGUAGE_SERVER_URL = server.url
        with pytest.raises(
            LanguageModelUnavailableError, match="NESCIO_LANGUAGE_MODEL"
        ):
            load_language_model()
