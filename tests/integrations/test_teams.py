"""Teams' outgoing webhook, by requests as it documents them."""

import base64
import hashlib
import hmac
import json
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from integrations.chat import api, teams
from qa.answers import asking
from qa.models import Answer
from qa.pipeline.gates import Reason
from qa.policies.wording import WORDS
from tests.factories import make_audience, make_entry, make_user
from tests.integrations import chat_payloads as payloads
from tests.waiting import wait_until

SECRET = base64.b64encode(b"a token that Teams shows once").decode()
FEE = "What does a replacement card cost?"
CODEWORD = "What is the codeword?"
HOSTILE = "[click](https://evil.example) **bold** <at>everyone</at>"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(settings) -> User:
    settings.TEAMS_SECRETS = [base64.b64encode(b"another team").decode(), SECRET]
    settings.TEAMS_ACCOUNT = "teams"
    make_entry("It costs 12 euros.", question=FEE)
    return make_user(username="teams")


def send(payload: object, *, secret: str = SECRET):
    body = json.dumps(payload).encode()
    digest = hmac.new(base64.b64decode(secret), body, hashlib.sha256).digest()
    header = f"HMAC {base64.b64encode(digest).decode()}"
    return APIClient().post(
        "/teams/messages",
        body,
        content_type="application/json",
        headers={"authorization": header},
    )


def texts(response) -> list[str]:
    (attached,) = response.json()["attachments"]
    assert attached["contentType"] == "application/vnd.microsoft.card.adaptive"
    card: dict[str, Any] = attached["content"]
    assert {part["type"] for part in card["body"]} == {"RichTextBlock"}
    return [run["text"] for part in card["body"] for run in part["inlines"]]


def test_a_mention_is_answered_by_a_card_with_its_evidence(chat):
    response = send(payloads.teams_message(FEE))

    assert response.status_code == 200
    assert response.json()["type"] == "message"
    text, evidence = texts(response)
    assert text == "It costs 12 euros."
    assert evidence == f"Evidence (verified): {FEE}"
    answer = Answer.objects.get()
    assert (answer.question, str(answer.asker), answer.service) == (FEE, "teams", "")


def test_a_refusal_says_why_and_what_was_near(chat):
    make_entry("A replacement card is sent within three days.")

    found = texts(send(payloads.teams_message("Who won the cup in 1974?")))

    answer = Answer.objects.get()
    words = WORDS["en"].reasons[Reason(answer.reason)]
    assert found[0].startswith("Not answered: ")
    assert answer.text == words.asker
    assert found[1] == words.reader  # nobody is passed on to an expert from here


def test_a_german_question_is_refused_in_german(chat):
    make_entry("A replacement card is sent within three days.")

    found = texts(send(payloads.teams_message("Wer hat die Partie Schach gewonnen?")))

    assert found[0].startswith("Nicht beantwortet: ")
    assert found[1] == WORDS["de"].reasons[Reason(Answer.objects.get().reason)].reader
    assert not any("verified" in line or "Related" in line for line in found)


def test_the_team_reads_what_its_account_may_see_and_no_more(chat):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question=CODEWORD, audience=vault)

    assert "Zwirbel" not in send(payloads.teams_message(CODEWORD)).content.decode()
    chat.groups.add(*vault.groups.all())
    assert "Zwirbel" in send(payloads.teams_message(CODEWORD)).content.decode()
    User.objects.update(is_superuser=True)
    assert send(payloads.teams_message(CODEWORD)).status_code == 403


def test_what_teams_did_not_sign_is_401(chat, settings):
    other = base64.b64encode(b"another").decode()
    assert send(payloads.teams_message(FEE), secret=other).status_code == 401
    assert APIClient().post("/teams/messages", {}, "json").status_code == 401
    assert not teams.is_signed(b"{}", "HMAC ä")
    settings.TEAMS_SECRETS = []
    off = send(payloads.teams_message(FEE), secret="")
    assert off.status_code == 401
    assert "NESCIO_TEAMS_SECRETS" in off.json()["error"]["message"]
    assert not Answer.objects.exists()


@pytest.mark.slow
def test_what_takes_longer_goes_on_and_is_linked_to(chat, monkeypatch, settings):
    decide = asking.decide
    sent = threading.Event()

    def slow(answer: Answer, **options: Any):
        assert sent.wait(60)
        yield from decide(answer, **options)

    monkeypatch.setattr(asking, "decide", slow)
    monkeypatch.setattr(api, "TEAMS_SECONDS", 0.3)

    said = send(payloads.teams_message(FEE)).json()["text"]
    sent.set()

    answer = Answer.objects.get()
    assert said.endswith(f"{settings.PUBLIC_URL}/answers/{answer.pk}")

    def is_answered() -> bool:
        answer.refresh_from_db()
        return answer.outcome == Answer.Outcome.ANSWERED

    wait_until(is_answered)
    assert answer.text == "It costs 12 euros."


def test_a_hostile_answer_stays_text(chat):
    make_entry(HOSTILE, question="What is hostile?")

    assert HOSTILE in texts(send(payloads.teams_message("What is hostile?")))


def test_what_is_no_question_is_said(chat):
    said = send(payloads.teams_message("&nbsp;")).json()["text"]
    assert "Ask me a question" in said
    said = send(payloads.teams_message("<b>???</b>")).json()["text"]
    assert "has no words" in said
    assert send([]).status_code == 400


@pytest.mark.parametrize(
    ("sent", "question"),
    [
        ("<at>Nescio</at> What is it?\n", "What is it?"),
        ('<p><at id="0">Nescio</at>&nbsp;What is <b>it</b>?</p>', "What is it?"),
        ("What is 3 &lt; 4?", "What is 3 < 4?"),
    ],
)
def test_mentions_and_markup_are_no_part_of_the_question(sent, question):
    assert teams.question_in(sent) == question
