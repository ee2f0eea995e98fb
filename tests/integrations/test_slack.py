"""Slack's requests as it documents them, and a server in its place that keeps what is posted."""

import hashlib
import hmac
import html
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from rest_framework.test import APIClient

from accounts.models import AuditEntry
from integrations.chat import slack
from integrations.chat.asking import keep
from jobs.models import Job
from jobs.run import run_job
from qa.answers.asking import decide
from qa.exceptions import AnswerDecidedError
from qa.models import Answer, Vote
from qa.pipeline.gates import Reason
from qa.policies.wording import WORDS
from tests.factories import make_audience, make_entry, make_user
from tests.integrations import chat_payloads as payloads
from workers.registry import HANDLERS

SECRET = payloads.DOCUMENTED_SECRET
FEE = "What does a replacement card cost?"
CODEWORD = "What is the codeword?"
HOSTILE = "<!channel> *bold* <https://evil.example|click> & `code`"

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@dataclass
class Slack:
    """What stands for Slack's side: what it was sent, and what it answers."""

    address: str = ""
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    mail: dict[str, Any] = field(
        default_factory=lambda: payloads.person("ada@x.example")
    )
    statuses: list[int] = field(default_factory=list)
    posted: dict[str, Any] = field(default_factory=lambda: payloads.POSTED)

    def posts(self) -> list[tuple[str, dict[str, Any]]]:
        about = ("users.info", "auth.test")
        return [each for each in self.sent if not each[0].endswith(about)]


@pytest.fixture
def chat(settings) -> Iterator[Slack]:
    found = Slack()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            is_form = "form" in self.headers["Content-Type"]
            body = parse_qs(text) if is_form else json.loads(text)
            found.sent.append((self.path, body))
            is_about_person = self.path == "/api/users.info"
            if self.path.startswith("/api/"):
                assert self.headers["Authorization"] == "Bearer xoxb-test"
            status = found.statuses.pop(0) if found.statuses else 200
            answer = found.mail if is_about_person else found.posted
            if self.path == "/api/auth.test":
                answer = payloads.OWN_WORKSPACE
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    settings.SLACK_SIGNING_SECRET = SECRET
    settings.SLACK_BOT_TOKEN = "xoxb-test"
    settings.SLACK_ACCOUNT = "slack"
    settings.SLACK_API_URL = f"{found.address}/api"
    make_entry("It costs 12 euros.", question=FEE)
    make_user(username="slack")
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def signed(path: str, body: str, kind: str, *, secret: str = SECRET, at: float = 0.0):
    stamp = str(int(at or time.time()))
    text = f"v0:{stamp}:{body}".encode()
    digest = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    return APIClient().post(
        path,
        body,
        content_type=kind,
        headers={
            "x-slack-request-timestamp": stamp,
            "x-slack-signature": f"v0={digest}",
        },
    )


def send_event(payload: dict[str, Any], **options: Any):
    return signed("/slack/events", json.dumps(payload), "application/json", **options)


def send_form(path: str, fields: dict[str, str]):
    return signed(path, urlencode(fields), "application/x-www-form-urlencoded")


def press(action: str, value: str, url: str, user: str = "U061F7AUR"):
    payload = {**payloads.press(action, value, user=user), "response_url": url}
    return send_form("/slack/actions", {"payload": json.dumps(payload)})


def work() -> None:
    """Do what a worker would."""
    for job in Job.objects.filter(state=Job.State.QUEUED, kind="chat.slack"):
        run_job(job.pk, HANDLERS)


def texts(message: dict[str, Any]) -> list[str]:
    return [
        each["text"]
        for block in message["blocks"]
        for each in [block.get("text"), *block.get("elements", ())]
        if each and each["type"] == "plain_text"
    ]


def test_the_documented_signature_is_the_one_that_counts(settings):
    settings.SLACK_SIGNING_SECRET = payloads.DOCUMENTED_SECRET
    headers = {
        "X-Slack-Request-Timestamp": str(payloads.DOCUMENTED_SECOND),
        "X-Slack-Signature": payloads.DOCUMENTED_SIGNATURE,
    }
    body, now = payloads.DOCUMENTED_BODY.encode(), payloads.DOCUMENTED_SECOND

    assert slack.is_signed(body, headers, now=now + 299)
    assert not slack.is_signed(body, headers, now=now + 301)
    assert not slack.is_signed(body, headers, now=now - 301)
    assert not slack.is_signed(body + b"&", headers, now=now)
    for stamp in ("", "x", "-5", "١٢٣", "9" * 40):
        told = {**headers, "X-Slack-Request-Timestamp": stamp}
        assert not slack.is_signed(body, told, now=now)
    assert not slack.is_signed(body, {**headers, "X-Slack-Signature": "v0=ä"}, now=now)


def test_what_slack_did_not_sign_now_is_401(chat, settings):
    assert send_event(payloads.CHALLENGE, secret="other").status_code == 401
    assert send_event(payloads.CHALLENGE, at=time.time() - 400).status_code == 401
    settings.SLACK_SIGNING_SECRET = ""
    off = send_event(payloads.CHALLENGE, secret="")
    assert off.status_code == 401
    assert "NESCIO_SLACK_SIGNING_SECRET" in off.json()["error"]["message"]


def test_the_address_is_verified(chat):
    response = send_event(payloads.CHALLENGE)

    assert response.json() == {"challenge": payloads.CHALLENGE["challenge"]}


def test_a_mention_is_answered_in_its_thread_as_the_channels_account(chat):
    assert send_event(payloads.mention(FEE)).status_code == 200
    assert chat.sent == []  # acknowledged before any work
    work()

    ((path, message),) = chat.sent
    assert path == "/api/chat.postMessage"
    assert (message["channel"], message["thread_ts"]) == (
        "C123ABC456", "1515449522.000016",
    )  # fmt: skip
    assert "It costs 12 euros." in texts(message)
    assert any(each.startswith("Evidence (verified): ") for each in texts(message))
    answer = Answer.objects.get()
    assert (str(answer.asker), answer.service) == ("slack", "")
    assert Job.objects.get().parameters["text"] == ""


def test_a_channel_never_reads_what_its_asker_alone_may_see(chat):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question=CODEWORD, audience=vault)
    ada = make_user(username="ada", groups=["vault"])
    ada.email = "ada@x.example"
    ada.save()

    send_event(payloads.mention(CODEWORD))
    work()
    assert "Zwirbel" not in str(chat.sent)

    send_event(payloads.direct_message(CODEWORD))
    work()
    (asked, told) = chat.sent[-2:]
    assert asked == ("/api/users.info", {"user": ["U061F7AUR"]})
    assert "Zwirbel." in texts(told[1])
    assert "thread_ts" not in told[1]
    kept = Answer.objects.get(asker=ada)
    assert kept.service == "slack"
    assert AuditEntry.objects.get(kind="question for").subject == "ada"


@pytest.mark.parametrize(
    "about",
    [
        {"is_stranger": True},
        {"team_id": "TOTHER"},  # by a shared channel, no stranger to it
        {"is_restricted": True},
        {"deleted": True},
        {"is_bot": True},
        {"is_email_confirmed": False},
        {"profile": {}},
        {"profile": {"email": "root@x.example"}},
        {"profile": {"email": "twice@x.example"}},
    ],
)
def test_guests_superusers_and_doubtful_mails_are_nobodys_account(chat, about):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question=CODEWORD, audience=vault)
    for name in ("ada", "root", "twice", "twice2"):
        user = make_user(username=name, groups=["vault"])
        user.email = f"{name.rstrip('2')}@x.example"
        user.is_superuser = name == "root"
        user.save()
    chat.mail = payloads.person("ada@x.example", **about)

    send_event(payloads.direct_message(CODEWORD))
    work()

    assert "Zwirbel" not in str(chat.sent)
    assert str(Answer.objects.get().asker) == "slack"


def test_the_words_of_what_is_no_question_stay_nowhere(chat, settings):
    settings.SLACK_KNOWLEDGE_BASE = "gone"

    send_event(payloads.direct_message(CODEWORD))
    work()

    assert "There is no knowledge base" in str(chat.sent)
    assert Job.objects.get().parameters["text"] == ""


def test_an_event_that_is_sent_again_is_answered_once(chat):
    for _ in range(2):
        send_event(payloads.mention(FEE))
    work()
    send_event(payloads.mention(FEE))
    work()

    assert len(chat.posts()) == 1
    assert Answer.objects.count() == 1
    send_event(payloads.mention(FEE, event_id="Ev0ANOTHER"))
    work()
    assert Answer.objects.count() == 2


def test_what_bots_say_and_what_is_edited_is_nothing_to_answer(chat):
    for more in (
        {"bot_id": "B1"},
        {"subtype": "message_changed"},
        {"channel_type": "channel"},
    ):
        assert send_event(payloads.direct_message(FEE, **more)).status_code == 200

    assert not Job.objects.exists()


def test_a_mention_without_a_question_is_told_once_how_to_ask(chat):
    for _ in range(2):
        send_event(payloads.mention(""))
    work()

    ((_path, said),) = chat.posts()
    assert said["text"].startswith("Ask me a question")
    assert not Answer.objects.exists()


def test_a_command_is_answered_to_who_typed_it_alone(chat, settings):
    settings.SLACK_RESPONSE_ORIGIN = chat.address
    chat.posted = {"ok": True}
    url = f"{chat.address}/commands/1234/5678"

    response = send_form(
        "/slack/commands", {**payloads.command(FEE), "response_url": url}
    )
    work()

    assert response.json()["response_type"] == "ephemeral"
    (path, message) = chat.posts()[-1]
    assert path == "/commands/1234/5678"
    assert message["response_type"] == "ephemeral"
    assert "It costs 12 euros." in texts(message)
    empty = send_form("/slack/commands", {**payloads.command(" "), "response_url": url})
    assert "Ask me a question" in empty.json()["text"]


@pytest.mark.parametrize(
    "url",
    ["http://hooks.slack.com/x", "https://hooks.slack.com.evil.example/x",
     "https://evil.example/https://hooks.slack.com/", "https://u@hooks.slack.com/x",
     "https://169.254.169.254/latest", "//hooks.slack.com/x", ""],
)  # fmt: skip
def test_nothing_is_posted_to_addresses_that_are_not_slacks(chat, url):
    response = send_form(
        "/slack/commands", {**payloads.command(FEE), "response_url": url}
    )

    assert response.status_code == 400
    assert press("vote_up", "x y", url).status_code == 400
    assert not Job.objects.exists()


def test_a_refusal_says_why_and_what_was_near(chat):
    make_entry("A replacement card is sent within three days.")
    send_event(payloads.mention("How long is a replaced card valid in Peru?"))
    work()

    found = texts(chat.posts()[0][1])
    answer = Answer.objects.get()
    assert found[0].startswith("Not answered: ")
    words = WORDS["en"].reasons[Reason(answer.reason)]
    assert answer.text == words.asker
    assert words.reader in found
    assert chat.posts()[0][1]["text"] == html.escape(words.reader, quote=False)


def test_the_buttons_vote_for_who_asked_and_for_nobody_else(chat, settings):
    settings.SLACK_RESPONSE_ORIGIN = chat.address
    send_event(payloads.mention(FEE))
    work()
    up, _down = chat.sent[0][1]["blocks"][-1]["elements"]
    url = f"{chat.address}/actions/1"

    assert press(up["action_id"], up["value"], url, "USOMEBODY").status_code == 200
    assert not Vote.objects.exists()
    assert press(up["action_id"], up["value"], url).status_code == 200
    assert Vote.objects.get().is_up
    assert press("vote_down", up["value"], url).status_code == 200
    assert not Vote.objects.get().is_up
    work()

    said = sorted(
        message["text"] for path, message in chat.sent if path == "/actions/1"
    )
    assert said == [
        "Only the person who asked can vote.", "Thank you.", "Thank you.",
    ]  # fmt: skip


def test_a_hostile_answer_stays_text(chat):
    make_entry(HOSTILE, question="What is hostile?")
    send_event(payloads.mention("What is hostile?"))
    work()

    message = chat.posts()[0][1]
    assert HOSTILE in texts(message)
    assert "mrkdwn" not in json.dumps(message)
    assert message["text"].startswith("&lt;!channel&gt;")


def test_posting_is_tried_again_and_the_question_asked_once(chat):
    chat.statuses = [503]
    send_event(payloads.mention(FEE))
    work()
    job = Job.objects.get()
    assert (job.state, job.error) == (
        Job.State.QUEUED, "RetryableJobError: Slack answered 503.",
    )  # fmt: skip

    Job.objects.update(not_before=None)
    work()

    assert Job.objects.get().state == Job.State.SUCCEEDED
    assert len(chat.posts()) == 2
    assert Answer.objects.count() == 1


def test_a_question_whose_worker_was_killed_is_answered_by_the_next(chat):
    send_event(payloads.mention(FEE))
    key = UUID(Job.objects.get().parameters["answer"])
    account = User.objects.get(username="slack")
    killed = decide(keep(FEE, asker=account, knowledge_base="", answer_id=key))
    next(killed)

    work()

    with pytest.raises(AnswerDecidedError):
        killed.close()
    assert Job.objects.get().state == Job.State.SUCCEEDED
    assert Answer.objects.get().outcome == Answer.Outcome.ANSWERED
    assert len(chat.posts()) == 1


def test_what_slack_refuses_for_good_fails_the_job(chat):
    chat.posted = {"ok": False, "error": "not_in_channel"}
    send_event(payloads.mention(FEE))

    with pytest.raises(slack.SlackError, match="not_in_channel"):
        work()

    assert Job.objects.get().state == Job.State.FAILED


def test_what_is_no_question_is_said(chat):
    send_event(payloads.mention("???"))
    work()

    assert "has no words" in chat.posts()[0][1]["text"]


def test_bodies_that_are_not_slacks_are_400(chat):
    for body in (
        "[]",
        '{"event": 5}',
        '{"event": {"type": "app_mention", "user": "U"}}',
    ):
        response = signed("/slack/events", body, "application/json")
        assert response.status_code == 400, body
    for fields in ({"payload": "x"}, {"payload": "[]"}, {}):
        assert send_form("/slack/actions", fields).status_code == 400
    assert send_form("/slack/commands", {"text": "x"}).status_code == 400


def test_doctor_says_which_workspace_the_token_opens_or_that_it_opens_none(
    chat, monkeypatch
):
    def said() -> str:
        out = StringIO()
        call_command("doctor", "--no-models", stdout=out, no_color=True)
        return next(each for each in out.getvalue().splitlines() if " slack " in each)

    assert said().startswith("ok")
    assert "channels ask as slack" in said()

    refused = {"ok": False, "error": "invalid_auth"}
    monkeypatch.setattr(payloads, "OWN_WORKSPACE", refused)
    assert said().startswith("warn")
    assert "refused NESCIO_SLACK_BOT_TOKEN: invalid_auth" in said()
