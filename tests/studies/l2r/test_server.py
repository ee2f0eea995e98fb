import json
from typing import Any

import pytest

from qa.exceptions import LanguageModelUnavailableError
from qa.inference.server import ServerLanguageModel
from studies.l2r.questions import ChoiceQuestion
from studies.l2r.server import ServerChoiceModel
from tests.qa.inference.language_server import (
    LanguageServer,
    completion,
    failure,
    running,
)
from tests.qa.pipeline.values import make_evidence

pytestmark = pytest.mark.slow

OPTIONS = tuple(f"Option {number}" for number in range(1, 13))
ONE = ChoiceQuestion("1", "", "Which <one>?", OPTIONS, (9,), False, OPTIONS)
SEVERAL = ChoiceQuestion("1", "", "Which?", OPTIONS, (0, 9), True, OPTIONS)
PIECES = (make_evidence("Ten it is."), make_evidence("Or not.", entry_id=2))


def _filled(*options: int, can_answer: bool = True) -> dict[str, Any]:
    return {
        "evidence": [1],
        "reasoning": "Piece 1 says so.",
        "can_answer": can_answer,
        "options": list(options),
    }


def _model(server: LanguageServer, *, steps: bool = True) -> ServerChoiceModel:
    client = ServerLanguageModel(
        url=server.url, key="", model="m", timeout_seconds=20, retries=0
    )
    return ServerChoiceModel(client, steps=steps)


def test_the_tenth_option_is_not_the_first():
    with running(completion(_filled(10))) as server:
        choice = _model(server).choose(ONE, PIECES)

    assert choice.chosen == (9,)
    assert choice.scores[9] == 1.0
    assert choice.cited == (1,)
    assert choice.readable
    assert not choice.repaired


def test_steps_stand_before_the_choice_and_texts_inside_their_strings():
    with running(completion(_filled(10))) as server:
        _model(server).choose(ONE, PIECES)
    sent = server.requests[0]

    schema = sent["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == [
        "evidence",
        "reasoning",
        "can_answer",
        "options",
    ]
    message = sent["messages"][1]["content"]
    assert "<one>" not in message
    shown = json.loads(message)
    assert shown["question"] == "Which <one>?"
    assert list(shown["options"].values()) == list(OPTIONS)


def test_without_steps_only_the_verdict_and_the_choice_are_asked_for():
    with running(completion({"can_answer": True, "options": [3]})) as server:
        choice = _model(server, steps=False).choose(ONE, PIECES)

    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["can_answer", "options"]
    assert choice.chosen == (2,)


def test_closed_book_nothing_is_said_of_evidence():
    with running(completion({"options": [10, 1]})) as server:
        choice = _model(server).choose(SEVERAL, ())

    assert choice.chosen == (0, 9)
    assert choice.can_answer
    assert "evidence" not in json.loads(server.requests[0]["messages"][1]["content"])


@pytest.mark.parametrize(
    "reply",
    [
        "Number 10.",
        json.dumps(_filled(13)),
        json.dumps(_filled(0)),
        json.dumps(_filled(1, 2)),
        json.dumps(_filled()),
        json.dumps(_filled() | {"options": "10"}),
        json.dumps(_filled() | {"options": [True]}),
        json.dumps(_filled(10) | {"can_answer": "yes"}),
        '{"options": [10',
    ],
)
def test_what_cannot_be_read_is_asked_for_once_more(reply):
    with running(completion(reply), completion(_filled(10))) as server:
        choice = _model(server).choose(ONE, PIECES)

    assert len(server.requests) == 2
    assert choice.chosen == (9,)
    assert choice.repaired


def test_after_one_repair_it_is_unreadable_and_nothing_is_guessed():
    with running(completion("10")) as server:
        choice = _model(server).choose(ONE, PIECES)

    assert len(server.requests) == 2
    assert not choice.readable
    assert choice.chosen == ()
    assert choice.scores == ()


def test_to_decline_is_a_verdict_and_no_fault():
    with running(completion(_filled(can_answer=False))) as server:
        choice = _model(server).choose(ONE, PIECES)

    assert len(server.requests) == 1
    assert choice.readable
    assert not choice.can_answer


def test_a_server_that_is_down_is_said_to_be():
    with (
        running(failure(500)) as server,
        pytest.raises(LanguageModelUnavailableError),
    ):
        _model(server).choose(ONE, PIECES)
