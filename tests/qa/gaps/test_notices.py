"""The asker gets a notice, on the page and by mail; nobody else does."""

from datetime import timedelta

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import Preferences
from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from qa.gaps.escalations import close, escalate
from qa.models import Notice
from tests.factories import make_user
from tests.qa.answer_rows import make_answer
from workers import tasks
from workers.registry import HANDLERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUESTION = "What does a wire transfer cost?"


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


def test_no_mail_goes_to_who_wants_none(asker, settings):
    settings.MAIL_URL = "smtp://localhost"
    Preferences.objects.create(user=asker, mails_notices=False)

    tell(asker)
    tasks.send_notices()

    assert not Job.objects.exists()
    assert Notice.objects.unread().count() == 1


def test_a_mail_server_that_was_down_for_long_gets_it_all_the_same(asker, settings):
    settings.MAIL_URL = "smtp://localhost"
    tell(asker)
    Job.objects.update(state=Job.State.FAILED, finished_at=timezone.now())

    tasks.send_notices()
    tasks.send_notices()

    assert run("qa.mail_notice").state == "succeeded"
    tasks.send_notices()
    assert not Job.objects.unfinished().filter(kind="qa.mail_notice").exists()
    Notice.objects.update(mailed_at=None, created_at=timezone.now() - timedelta(days=2))
    tasks.send_notices()
    assert not Job.objects.unfinished().filter(kind="qa.mail_notice").exists()


def test_an_address_that_is_refused_for_good_gets_no_second_mail(asker, settings):
    settings.MAIL_URL = "smtp://localhost"
    settings.EMAIL_BACKEND = "tests.accounts.test_invitations.Knowing"
    tell(asker)

    job = run("qa.mail_notice")

    assert (job.state, job.result) == (Job.State.SUCCEEDED, {"sent": False})
    tasks.send_notices()
    assert not Job.objects.unfinished().filter(kind="qa.mail_notice").exists()


def test_notices_are_ones_own_over_rest(asker):
    notice = tell(asker)
    mine, other = APIClient(), APIClient()
    mine.force_authenticate(asker)
    other.force_authenticate(make_user(Role.ADMIN))
    address = f"/api/v1/notices/{notice.pk}/read"

    (told,) = mine.get("/api/v1/notices?is_read=false").json()["results"]
    assert (told["kind"], told["answer"]) == ("reply", str(notice.answer_id))
    assert told["escalation"] == notice.escalation_id
    assert mine.get(f"/api/v1/escalations/{told['escalation']}").status_code == 200
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
