"""Asking over REST, as JSON and as an event stream, on the real parts."""

import json
import threading
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.roles import Role
from accounts.services import create_token
from qa.answers import asking
from qa.answers.event_stream import events, stream
from qa.models import Answer, AnswerEvidence, RefusalWording
from qa.pipeline.gates import Reason
from qa.policies.wording import refusal_text
from tests.factories import make_audience, make_entry, make_knowledge_base, make_user

KEYS = {
    "id", "conversation", "question", "typed", "language", "asker", "knowledge_base", "service", "outcome", "answered", "gate", "reason",
    "text", "withheld", "unsourced", "segments", "short_answer", "confidence", "reasoning", "citations", "evidence", "near_misses", "meanings", "disagreements", "not_compared", "signals",
    "effective", "milliseconds", "vote", "created_at", "as_of",
}  # fmt: skip
PIECE_KEYS = {
    "n", "entry", "revision", "quote", "text", "question", "document", "section",
    "distance", "confidence", "ratio", "verified", "verified_at", "valid_until",
    "withheld", "machine_written",
}  # fmt: skip
FEE = "What does a replacement card cost?"
FAR = "Who won the cup in 1974?"


def client_of(user) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {create_token(user=user).secret}")
    return client


def ask(client: APIClient, question: object, **more: object):
    body = {"question": question, **more}
    return client.post("/api/v1/ask", body, format="json")


def ask_streamed(client: APIClient, question: str, **more: object):
    return client.post(
        "/api/v1/ask",
        {"question": question, **more},
        format="json",
        headers={"accept": "text/event-stream"},
    )


def parsed(text: str):
    """Read an event stream, holding it to the format's rules."""
    found = []
    for block in text.split("\n\n"):
        if not block or block.startswith(":"):
            continue
        event, data = block.split("\n")
        assert event.startswith("event: ")
        assert data.startswith("data: ")
        found.append((event[7:], json.loads(data[6:])))
    return found


@pytest.fixture
def known(db):
    return make_entry("It costs 12 euros.", question=FEE)


@pytest.fixture
def known_and_committed(transactional_db):
    return make_entry("It costs 12 euros.", question=FEE)


def test_a_known_question_is_answered_with_its_evidence(known):
    response = ask(client_of(make_user()), FEE)

    answer = response.json()
    assert response.status_code == 200
    assert set(answer) == KEYS
    assert answer["answered"] is True
    assert (answer["outcome"], answer["gate"]) == ("answered", "verbatim")
    assert answer["reason"] is None
    assert answer["text"] == "It costs 12 euros."
    [cited] = answer["citations"]
    assert set(cited) == PIECE_KEYS
    assert cited["n"] == 1
    assert cited["entry"] == known.pk
    assert cited["quote"] == "It costs 12 euros."
    assert cited["verified"] is True
    assert cited["ratio"] == pytest.approx(cited["distance"] / cited["confidence"])
    assert answer["evidence"] == [{**cited, "cited": True}]
    assert answer["effective"]["alpha"] == 0.85
    assert len(answer["effective"]["embedder"]) == 64
    assert answer["milliseconds"]["retrieve"] > 0


def test_a_refusal_is_200_says_why_and_cites_nothing(known):
    response = ask(client_of(make_user()), FAR)

    answer = response.json()
    assert response.status_code == 200
    assert answer["answered"] is False
    assert (answer["outcome"], answer["gate"]) == ("refused", "hard_refusal")
    assert answer["reason"] == "nothing_known"
    assert answer["text"]
    assert answer["citations"] == answer["evidence"] == []
    assert {signal["name"] for signal in answer["signals"]} >= {
        "distance_over_confidence",
        "nearest_distance",
    }
    assert answer["effective"]["language_model"] == ""


def test_a_refusal_speaks_the_knowledge_bases_own_words(known):
    RefusalWording.objects.create(
        knowledge_base=known.knowledge_base,
        language="en",
        reason="nothing_known",
        text="Ask Berta.",
    )

    assert ask(client_of(make_user()), FAR).json()["text"] == "Ask Berta."


def test_a_reason_that_the_policy_hides_is_shown_nowhere(known):
    hidden = make_audience("fraud", groups=["fraud"])
    make_entry("Block it in two steps.", question="How to flag fraud?", audience=hidden)

    whole = ask(client_of(make_user()), "How to flag fraud?").content.decode()

    assert "not_entitled" not in whole
    assert "two steps" not in whole
    assert Answer.objects.get().reason == "not_entitled"


def test_what_was_asked_is_stored_and_readable_afterwards(known):
    client = client_of(make_user())

    asked = ask(client, FEE).json()
    read = client.get(f"/api/v1/answers/{asked['id']}").json()

    assert read == asked


def test_the_stream_tells_stages_then_the_decision_then_text(known_and_committed):
    response = ask_streamed(client_of(make_user()), FEE)

    told = parsed(response.getvalue().decode())
    names = [name for name, _ in told]
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-store"
    assert response["X-Accel-Buffering"] == "no"
    assert [data["stage"] for name, data in told if name == "stage"] == [
        "kept", "question", "retrieve", "verbatim", "hard_refusal", "agreement",
    ]  # fmt: skip
    assert names.index("decision") > names.index("stage")
    assert names.index("message") > names.index("decision")
    assert names[-1] == "end"
    end = told[-1][1]
    deltas = [data["delta"] for name, data in told if name == "message"]
    assert "".join(deltas) == end["text"] == "It costs 12 euros."
    before = json.dumps([data for name, data in told[: names.index("decision")]])
    assert "12 euros" not in before


@pytest.mark.parametrize("question", [FEE, FAR])
def test_the_stream_decides_as_the_plain_request_does(known_and_committed, question):
    client = client_of(make_user())

    plain = ask(client, question).json()
    told = parsed(ask_streamed(client, question).getvalue().decode())

    own = {"id", "conversation", "created_at", "milliseconds"}
    end = told[-1][1]
    assert {k: v for k, v in end.items() if k not in own} == {
        k: v for k, v in plain.items() if k not in own
    }
    assert end["id"] != plain["id"]


def test_the_stream_of_a_wrong_request_is_plain_json(known):
    response = ask_streamed(client_of(make_user()), "")

    assert response.status_code == 400
    assert response["Content-Type"] == "application/json"
    assert response.json()["error"]["code"] == "invalid"


def test_a_caller_who_hangs_up_leaves_a_decided_question(known_and_committed):
    response = ask_streamed(client_of(make_user()), FEE)
    told = iter(response.streaming_content)
    next(told)

    response.close()

    for thread in threading.enumerate():
        if thread.name.startswith("ask "):
            thread.join(timeout=180)
    assert Answer.objects.get().outcome == "answered"


def test_silence_is_filled_with_comments(known_and_committed):
    answer = asking.keep_question(FAR, asker=make_user(), channel="api")

    told = "".join(stream(answer, heartbeat_seconds=0.001))

    assert ": still working\n\n" in told
    assert parsed(told)[-1][0] == "end"


def test_a_language_model_that_is_down_is_503_and_the_question_is_kept(
    db, settings, known
):
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:1/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0
    make_entry("A replacement card costs 12 euros when it was lost.")

    response = ask(client_of(make_user()), "cost of a lost replacement card?")

    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert response.json()["error"]["code"] == "language_model_unavailable"
    kept = Answer.objects.get()
    assert kept.outcome == "failed"
    assert not AnswerEvidence.objects.exists()


def test_a_stream_whose_language_model_is_down_ends_with_an_error(settings, known):
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:1/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0
    make_entry("A replacement card costs 12 euros when it was lost.")
    answer = asking.keep_question(
        "cost of a lost replacement card?", asker=make_user(), channel="api"
    )

    told = list(events(answer))

    assert told[-1][0] == "error"
    assert told[-1][1]["error"]["code"] == "language_model_unavailable"
    assert "message" not in {name for name, _ in told}
    assert Answer.objects.get().outcome == "failed"


def test_a_stream_that_breaks_ends_with_an_error_that_tells_nothing(
    known, monkeypatch, caplog
):
    def broken(answer):
        yield from ()
        raise ValueError("secret internals")

    monkeypatch.setattr(asking, "decide", broken)
    answer = asking.keep_question(FEE, asker=make_user(), channel="api")

    told = list(events(answer))

    assert told[-1][0] == "error"
    assert told[-1][1]["error"]["code"] == "internal_error"
    assert "secret" not in json.dumps(told)
    assert "secret internals" in caplog.text
    assert Answer.objects.get().outcome == "failed"


def test_an_expired_entry_is_no_evidence(known):
    entry = make_entry("The desk opens at nine.", question="When does the desk open?")
    type(entry).objects.filter(pk=entry.pk).update(
        valid_until=timezone.now() - timedelta(days=1)
    )

    answer = ask(client_of(make_user()), "When does the desk open?").json()

    assert answer["answered"] is False
    assert answer["reason"] == "expired_only"


def test_asking_a_named_knowledge_base_in_a_named_language(known):
    make_knowledge_base("loans", language="de")

    answer = ask(client_of(make_user()), FEE, knowledge_base="loans").json()
    german = ask(client_of(make_user()), FEE, knowledge_base="loans", language="de")

    assert answer["answered"] is False
    assert answer["language"] == "en"  # of the question, and so of the refusal
    assert german.json()["language"] == "de"


def test_a_refusal_names_its_language_and_no_header_changes_it(known):
    client, question = client_of(make_user()), "Wer hat die Partie Schach gewonnen?"

    plain = ask(client, question)
    asked = {"question": question}
    french = client.post(
        "/api/v1/ask", asked, format="json", headers={"accept-language": "fr"}
    )

    for response in (plain, french):
        answer = response.json()
        assert (answer["outcome"], answer["language"]) == ("refused", "de")
        assert answer["text"] == refusal_text(Reason(answer["reason"]), "de")
    assert french.json()["reason"] == plain.json()["reason"]
    assert {row.language for row in Answer.objects.all()} == {"en"}  # of an answer


def test_a_hard_refusal_takes_few_queries(known, django_assert_num_queries):
    client = client_of(make_user())
    ask(client, FAR)

    # Token with groups; knowledge base with policy, audiences and wordings; search; what
    # was left out; the row.
    with django_assert_num_queries(5):
        ask(client, FAR)


def test_without_a_role_nothing_can_be_asked(known):
    response = ask(client_of(make_user(role=None)), FEE)

    assert response.status_code == 403
    assert response.json()["error"] == {
        "code": "permission_denied",
        "message": "This needs the role agent.",
    }
    assert not Answer.objects.exists()


def test_too_many_questions_are_429(known, settings):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {"ask": "1/day", "user": "100/day"},
    }
    client = client_of(make_user(Role.CURATOR))

    statuses = [ask(client, FAR).status_code for _ in range(2)]

    assert statuses == [200, 429]
    assert Answer.objects.count() == 1
