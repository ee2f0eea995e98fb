"""Whoever asked is told: in the page, by mail, by webhook; and nobody else."""

import hashlib
import hmac
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from qa.exceptions import WebhookRefusedError
from qa.gaps.escalations import close, escalate
from qa.gaps.notices import is_public, post_signed, signature
from qa.models import Notice
from tests.factories import make_user
from tests.qa.answer_rows import make_answer
from workers import tasks
from workers.registry import HANDLERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUESTION = "What does a wire transfer cost?"


class Receiver:
    """A webhook on this machine that keeps what it gets."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.posts: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append((dict(self.headers), body))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?a=1"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver(settings):
    made = Receiver()
    settings.WEBHOOK_URL = made.url
    settings.WEBHOOK_SECRET = "s3cret"
    settings.WEBHOOK_ALLOW_PRIVATE = True
    yield made
    made.stop()


@pytest.fixture
def asker():
    user = make_user(username="olga")
    user.email = "olga@example.org"
    user.save()
    return user


def tell(asker) -> Notice:
    """Have an expert close a question of the asker's."""
    refused = make_answer(asker, question=QUESTION)
    sent = escalate(refused.pk, user=asker)
    close(sent.pk, by=make_user(Role.SME), reason="Ask the <bank>.")
    return Notice.objects.get(answer=refused)


def run(kind: str) -> Job:
    job = Job.objects.unfinished().get(kind=kind)
    run_job(job.pk, HANDLERS)
    job.refresh_from_db()
    return job


def test_a_mail_leads_to_the_answer_and_holds_no_word_of_it(asker, settings):
    settings.MAIL_URL = "smtp://localhost"
    settings.PUBLIC_URL = "https://nescio.example.org"
    notice = tell(asker)

    job = run("qa.mail_notice")

    (sent,) = mail.outbox
    assert (job.result, sent.to, sent.subject) == (
        {"sent": True}, ["olga@example.org"], "An expert replied",
    )  # fmt: skip
    assert QUESTION in sent.body
    assert f"https://nescio.example.org/answers/{notice.answer_id}" in sent.body
    assert "bank" not in sent.body
    notice.refresh_from_db()
    assert notice.mailed_at is not None


def test_nothing_is_sent_where_no_road_is_configured(asker):
    tell(asker)

    assert not Job.objects.exists()
    assert Notice.objects.unread().count() == 1


def test_a_post_is_signed_and_names_the_question_and_its_address(asker, receiver):
    notice = tell(asker)

    assert run("qa.post_notice").result == {"sent": True, "status": 204}

    ((headers, body),) = receiver.posts
    signed = f"{headers['X-Nescio-Timestamp']}.".encode() + body
    digest = hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()
    assert headers["X-Nescio-Signature"] == f"sha256={digest}"
    assert headers["X-Nescio-Signature"] != signature("other", headers["X-Nescio-Timestamp"], body)  # fmt: skip
    assert headers["X-Nescio-Delivery"] == f"notice-{notice.pk}"
    told = json.loads(body)
    assert (told["event"], told["user"], told["question"]) == ("reply", "olga", QUESTION)  # fmt: skip
    assert told["link"].endswith(f"/answers/{notice.answer_id}")
    assert "bank" not in body.decode()
    notice.refresh_from_db()
    assert notice.posted_at is not None


def test_a_receiver_that_is_not_ready_gets_it_later(asker, receiver):
    tell(asker)
    receiver.statuses = [503]

    assert run("qa.post_notice").state == "queued"
    Job.objects.update(not_before=timezone.now() - timedelta(seconds=1))
    assert run("qa.post_notice").state == "succeeded"

    assert len({headers["X-Nescio-Delivery"] for headers, _ in receiver.posts}) == 1


def test_a_receiver_that_was_down_for_long_gets_it_all_the_same(asker, receiver):
    tell(asker)
    Job.objects.update(state=Job.State.FAILED, finished_at=timezone.now())

    tasks.send_notices()
    tasks.send_notices()

    assert run("qa.post_notice").state == "succeeded"
    tasks.send_notices()
    assert not Job.objects.unfinished().filter(kind="qa.post_notice").exists()
    Notice.objects.update(posted_at=None, created_at=timezone.now() - timedelta(days=2))
    tasks.send_notices()
    assert not Job.objects.unfinished().filter(kind="qa.post_notice").exists()


@pytest.mark.parametrize("status", [302, 400, 410])
def test_a_refusal_or_a_redirect_ends_it(asker, receiver, status):
    tell(asker)
    receiver.statuses = [status]

    with pytest.raises(WebhookRefusedError):
        run("qa.post_notice")

    job = Job.objects.get(kind="qa.post_notice")
    assert (job.state, f"answered {status}" in job.error) == ("failed", True)
    assert len(receiver.posts) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://93.184.216.34/", "begins with 'http'"),
        ("file:///etc/passwd", "begins with 'file'"),
        ("https://127.0.0.1/", "no public address"),
        ("https://localhost/", "no public address"),
        ("https://169.254.169.254/latest", "no public address"),
        ("https://[::ffff:10.0.0.1]/", "no public address"),
        ("https://name:word@example.org/", "holds a name or a password"),
        ("https://", "begins with"),
    ],
)
def test_only_public_addresses_are_posted_to(settings, url, said):
    settings.WEBHOOK_URL = url
    settings.WEBHOOK_SECRET = "s3cret"

    with pytest.raises(WebhookRefusedError, match=said):
        post_signed({}, delivery="1")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("10.1.2.3", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:192.168.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_private_addresses_are_known_in_every_form(address, public):
    assert is_public(address) is public


def test_notices_are_ones_own_over_rest(asker):
    notice = tell(asker)
    mine, other = APIClient(), APIClient()
    mine.force_authenticate(asker)
    other.force_authenticate(make_user(Role.ADMIN))
    address = f"/api/v1/notices/{notice.pk}/read"

    (told,) = mine.get("/api/v1/notices?is_read=false").json()["results"]
    assert (told["kind"], told["answer"]) == ("reply", str(notice.answer_id))
    assert other.get("/api/v1/notices").json()["results"] == []
    assert other.put(address).status_code == 404
    assert mine.put(address).json()["read_at"] is not None
    assert mine.get("/api/v1/notices?is_read=false").json()["results"] == []


def test_the_page_lists_them_counts_them_and_marks_them_read(client, asker):
    notice = tell(asker)
    client.force_login(asker)

    assert ">1<" in client.get(reverse("notices-unread")).content.decode()
    page = client.get(reverse("notices")).content.decode()
    assert "New: An expert closed it" in page
    assert "Ask the &lt;bank&gt;." in page

    client.get(reverse("answer", args=[notice.answer_id]))
    assert client.get(reverse("notices-unread")).content.strip() == b""
    notice.refresh_from_db()
    assert notice.read_at is not None


def test_all_are_marked_as_read_at_once_and_nobody_elses(client, asker):
    tell(asker)
    other = make_user()
    tell(other)
    client.force_login(asker)

    client.post(reverse("notices-read"))

    assert Notice.objects.unread().get().user == other


def test_a_page_of_who_signed_out_is_not_sent_anywhere(client):
    assert client.get(reverse("notices-unread")).status_code == 403


def test_a_list_of_notices_takes_the_same_queries_however_long(
    client, asker, django_assert_num_queries
):
    client.force_login(asker)
    for _ in range(3):
        tell(asker)

    with django_assert_num_queries(5):
        client.get(reverse("notices"))
