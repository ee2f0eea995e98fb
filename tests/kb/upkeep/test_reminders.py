"""Mails on what came due: to whom, on what, and how often."""

from datetime import timedelta
from smtplib import SMTPServerDisconnected

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone

from accounts.models import Preferences
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.entries.states import verify_entry
from kb.models import Entry, Reminder
from kb.upkeep import reminders
from kb.upkeep.services import postpone_review
from tests.factories import make_audience, make_curator, make_entry, make_user
from workers import tasks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


class FailingOnce(EmailBackend):
    """A mail server that breaks the first connection."""

    failed = False

    def send_messages(self, messages):
        if not FailingOnce.failed:
            FailingOnce.failed = True
            raise SMTPServerDisconnected("Connection unexpectedly closed")
        return super().send_messages(messages)


@pytest.fixture
def olga():
    user = make_user(username="olga")
    user.email = "olga@example.org"
    user.save()
    return user


def make_overdue(text: str, **fields) -> Entry:
    entry = make_entry(text, **fields)
    make_old(entry)
    return entry


def make_old(entry: Entry) -> None:
    long_ago = timezone.now() - timedelta(days=200)
    Entry.objects.filter(pk=entry.pk).update(verified_at=long_ago)


def run_once() -> Job:
    job = enqueue(reminders.KIND, {})
    run_job(job.pk, {reminders.KIND: reminders.remind_owners})
    job.refresh_from_db()
    return job


def test_owner_gets_one_mail_on_all_that_is_due(olga, settings):
    settings.PUBLIC_URL = "https://nescio.example.org"
    make_overdue("The gold card costs 72 euros.", owner=olga)
    make_entry("Cash costs 3 percent & more.", state="needs_review", owner=olga)
    make_entry("Fresh.", owner=olga)
    make_overdue("Somebody else's.")

    job = run_once()

    assert job.result == {"mails": 1, "entries": 2}
    (sent,) = mail.outbox
    assert sent.to == ["olga@example.org"]
    assert sent.subject == "2 entries are due for review"
    assert "The gold card costs 72 euros." in sent.body
    assert "review overdue" in sent.body
    assert "Cash costs 3 percent & more." in sent.body
    assert "Fresh." not in sent.body
    assert "Somebody else's." not in sent.body
    assert "https://nescio.example.org/admin/kb/entry/due?whose=mine" in sent.body


def test_who_wants_no_mails_gets_none_until_they_do_again(olga):
    make_overdue("An old fee.", owner=olga)
    chosen = Preferences.objects.create(user=olga, mails_notices=False)

    assert run_once().result == {"mails": 0, "entries": 0}
    assert mail.outbox == []
    chosen.mails_notices = True
    chosen.save()

    assert run_once().result == {"mails": 1, "entries": 1}


def test_each_event_is_told_once_and_a_new_one_again(olga):
    entry = make_overdue("An old fee.", owner=olga)
    run_once()
    run_once()
    assert len(mail.outbox) == 1

    verify_entry(entry_id=entry.pk, by=make_curator())
    run_once()
    assert len(mail.outbox) == 1

    make_old(entry)
    run_once()
    assert len(mail.outbox) == 2
    assert Reminder.objects.filter(entry=entry).count() == 2


def test_who_takes_over_is_told_and_what_is_postponed_is_not(olga):
    entry = make_overdue("An old fee.")
    postponed = make_overdue("A postponed fee.", owner=olga)
    postpone_review(entry_id=postponed.pk, by=olga, days=7)
    run_once()
    assert mail.outbox == []

    Entry.objects.filter(pk=entry.pk).update(owner=olga)
    run_once()

    assert len(mail.outbox) == 1
    assert "A postponed fee." not in mail.outbox[0].body


def test_owner_is_told_nothing_of_what_they_may_not_see(olga):
    board = make_audience("board", groups=["board"])
    make_overdue("Secret.", audience=board, owner=olga)

    run_once()

    assert mail.outbox == []
    assert not Reminder.objects.exists()


def test_owners_without_an_address_or_not_active_get_no_mail(olga):
    make_overdue("One.", owner=make_user())
    olga.is_active = False
    olga.save()
    make_overdue("Two.", owner=olga)

    assert run_once().result == {"mails": 0, "entries": 0}


def test_a_long_list_names_the_first_and_counts_the_others(olga, monkeypatch):
    monkeypatch.setattr(reminders, "NAMED", 2)
    for n in range(3):
        make_overdue(f"Fee {n}.", owner=olga)

    run_once()

    assert "and 1 more." in mail.outbox[0].body
    assert Reminder.objects.count() == 3


def test_a_mail_server_that_fails_is_tried_again(olga, settings):
    settings.EMAIL_BACKEND = f"{__name__}.FailingOnce"
    make_overdue("An old fee.", owner=olga)
    job = run_once()
    assert job.state == "queued"
    assert not Reminder.objects.exists()

    Job.objects.update(not_before=None)
    run_job(job.pk, {reminders.KIND: reminders.remind_owners})

    assert len(mail.outbox) == 1
    assert Reminder.objects.count() == 1


def test_nothing_is_asked_for_without_a_mail_server(settings):
    settings.MAIL_URL = ""
    tasks.remind_owners()
    assert not Job.objects.exists()

    settings.MAIL_URL = "smtp://localhost"
    tasks.remind_owners()
    assert Job.objects.get().kind == reminders.KIND
