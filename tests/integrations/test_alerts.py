"""Who runs or owns a knowledge base is mailed about what fails, drifts, waits or is missing."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.urls import reverse
from django.utils import timezone

from accounts.models import Preferences
from accounts.roles import Role
from accounts.services import alerts_of
from integrations.events import delivery, services
from integrations.events.alerts import KIND
from integrations.events.models import Alert, Delivery, Endpoint, Event
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.sources.models import FollowedSource, FollowRule
from qa.gaps.escalations import close, escalate
from qa.models import Escalation, Gap
from tests.factories import make_audience, make_knowledge_base, make_user
from tests.integrations.test_events import let_drift, let_one_be_given_up
from tests.qa.answer_rows import make_answer
from workers import tasks
from workers.registry import HANDLERS

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "What does a wire transfer cost?"


@pytest.fixture(autouse=True)
def mail_server(settings):
    settings.MAIL_URL = "smtp://localhost"
    settings.PUBLIC_URL = "https://nescio.example.org"


def reader(role: Role | None, *alerts: str, name: str = "olga"):
    user = make_user(role, username=name)
    user.email = f"{name}@example.org"
    user.save()
    if alerts:
        Preferences.objects.create(user=user, alerts=list(alerts))
    return user


def fail_job(kind: str = "no.such_kind", owner=None) -> Job:
    job = enqueue(kind, {}, owner=owner)
    run_job(job.pk, {})
    job.refresh_from_db()
    return job


def open_gap(slug: str = "cards", **fields) -> Gap:
    now = timezone.now()
    return Gap.objects.create(
        knowledge_base=make_knowledge_base(slug), question=QUESTION, vector=[1.0] * 384,
        first_seen=now, last_seen=now, **fields,
    )  # fmt: skip


def raise_question(asker: User | None = None) -> Escalation:
    asker = asker or make_user()
    return escalate(make_answer(asker, question=QUESTION).pk, user=asker)


def send(task=tasks.mail_alerts) -> list[mail.EmailMessage]:
    """Route what happened, mail it, and return the mails since the last time."""
    mail.outbox.clear()
    delivery.deliver_due()
    task()
    for job in Job.objects.unfinished().filter(kind=KIND):
        run_job(job.pk, HANDLERS)
        job.refresh_from_db()
        assert job.state == Job.State.SUCCEEDED
    return list(mail.outbox)


def let_an_hour_pass() -> None:
    Alert.objects.filter(mailed_at__isnull=False).update(
        mailed_at=timezone.now() - timedelta(minutes=61)
    )


def test_an_admin_is_mailed_about_failures_and_drift_unless_they_chose_otherwise():
    admin = reader(Role.ADMIN)
    make_user(Role.ADMIN, username="without-address")
    reader(Role.ADMIN, "gaps", name="anna")
    reader(Role.CURATOR, name="carla")
    fail_job()

    (sent,) = send()

    assert sent.to == [admin.email]
    assert sent.subject == "1 background job failed"
    assert "(no.such_kind)" in sent.body
    failed = "https://nescio.example.org/admin/jobs/job/?state__exact=failed"
    assert failed in sent.body
    assert "https://nescio.example.org/profile#alerts" in sent.body


def test_what_comes_within_an_hour_comes_together_and_once():
    reader(Role.ADMIN)
    fail_job()
    assert len(send()) == 1
    for kind in ("no.such_kind", "no.such_kind", "no.other_kind"):
        fail_job(kind)

    assert send() == []
    let_an_hour_pass()
    (sent,) = send()

    assert sent.subject == "3 background jobs failed"
    assert "(no.such_kind: 2, no.other_kind)" in sent.body
    let_an_hour_pass()
    assert send() == []


def test_questions_that_wait_are_mailed_to_experts_without_a_word_of_them():
    expert = reader(Role.SME, "escalations")
    other = reader(Role.SME, "escalations", name="erik")
    sent = [raise_question() for _ in range(3)]
    close(sent[0].pk, by=make_user(Role.SME), reason="Ask the bank.")
    sent[1].assignee = other
    sent[1].save()

    mails = {each.to[0]: each for each in send()}

    assert mails[expert.email].subject == "1 question waits for an expert"
    assert mails[other.email].subject == "2 questions wait for an expert"
    assert "(Cards: 2)" in mails[other.email].body
    assert "/inbox?kind=escalation" in mails[other.email].body
    assert not any("transfer" in each.body for each in mails.values())


def test_ones_own_question_is_no_news():
    expert = reader(Role.SME, "escalations")
    raise_question(expert)

    assert send() == []


def test_new_gaps_come_once_a_day_and_only_those_that_are_open_still():
    reader(Role.SME, "gaps")
    open_gap()
    open_gap(slug="loans")
    filled = open_gap()
    filled.state, filled.closed_at = Gap.State.FILLED, timezone.now()
    filled.save()

    assert send() == []
    (sent,) = send(tasks.mail_new_gaps)
    open_gap()
    assert send(tasks.mail_new_gaps) == []
    Alert.objects.filter(mailed_at__isnull=False).update(
        mailed_at=timezone.now() - timedelta(hours=24)
    )
    (next_day,) = send(tasks.mail_new_gaps)

    assert sent.subject == "2 new gaps"
    assert "Cards" in sent.body
    assert "Loans" in sent.body
    assert QUESTION not in sent.body
    assert next_day.subject == "1 new gap"


def test_who_has_a_role_in_one_knowledge_base_is_mailed_about_that_alone():
    curator = reader(None, "gaps", "escalations", "failures", "drift")
    curator.knowledge_roles.create(
        knowledge_base=make_knowledge_base("loans"), role="curator"
    )
    open_gap()
    raise_question()  # of cards
    fail_job()
    let_drift()
    assert send() == []
    assert send(tasks.mail_new_gaps) == []

    open_gap(slug="loans")
    (sent,) = send(tasks.mail_new_gaps)

    assert sent.subject == "1 new gap"
    assert "Loans" in sent.body
    assert "Cards" not in sent.body


def test_drift_is_mailed_to_admins_alone():
    admin = reader(Role.ADMIN)
    reader(Role.CURATOR, "drift", name="carla")
    let_drift()

    (sent,) = send()

    assert sent.to == [admin.email]
    assert sent.subject == "1 check found that live questions drifted"
    assert "(Cards)" in sent.body


def test_a_failed_job_is_its_owners_and_the_admins():
    owner = reader(Role.CURATOR, "failures")
    reader(Role.CURATOR, "failures", name="carla")
    fail_job(owner=owner)

    (sent,) = send()

    assert sent.to == [owner.email]


def test_a_source_that_fails_is_mailed_once_to_who_may_see_it():
    curator = reader(Role.CURATOR, "failures")
    reader(Role.CURATOR, "failures", name="carla")
    hidden = make_audience("board", groups=["board"])
    curator.groups.add(hidden.groups.get())
    source = FollowedSource.objects.create(
        name="Board minutes", kind="folder", address="/x", every_hours=1,
        knowledge_base=make_knowledge_base(),
    )  # fmt: skip
    FollowRule.objects.create(source=source, position=1, audience=hidden)
    job = fail_job("kb.follow", owner=curator)
    rows = FollowedSource.objects.filter(pk=source.pk)
    rows.update(error="It is gone.", job_id=job.pk)
    rows.update(error="It is still gone.")

    (sent,) = send()
    let_an_hour_pass()
    rows.update(error="Gone.")

    assert sent.to == [curator.email]
    assert sent.subject == "1 followed source can't be read"
    assert "Board" not in sent.body
    assert send() == []


def test_what_works_again_is_not_mailed():
    reader(Role.ADMIN)
    job = fail_job()
    Job.objects.filter(pk=job.pk).update(state=Job.State.SUCCEEDED)

    assert send() == []
    assert not Alert.objects.exists()


def test_a_message_that_was_given_up_is_mailed_to_the_endpoints_owner():
    owner = reader(Role.ADMIN)
    reader(Role.ADMIN, name="anna")
    endpoint = Endpoint.objects.create(
        name="CRM",
        url="https://crm.example.org",
        owner=owner,
        types=[],
        is_active=False,
    )
    let_one_be_given_up(endpoint)

    (sent,) = send()

    assert sent.to == [owner.email]
    assert sent.subject == "1 message to a webhook endpoint was given up"


def test_who_lost_the_role_or_the_account_is_mailed_nothing():
    former = reader(Role.ADMIN)
    gone = reader(Role.ADMIN, name="anna")
    fail_job()
    delivery.deliver_due()
    former.groups.clear()
    gone.is_active = False
    gone.save()

    assert send() == []
    assert not Alert.objects.exists()


def test_nothing_is_kept_where_there_is_no_mail_server(settings):
    settings.MAIL_URL = ""
    reader(Role.ADMIN)
    fail_job()

    assert send() == []
    assert not Alert.objects.exists()
    assert Event.objects.filter(routed_at__isnull=False).exists()


def test_a_mail_server_that_is_down_gets_it_later(settings):
    reader(Role.ADMIN)
    fail_job()
    delivery.deliver_due()
    tasks.mail_alerts()
    job = Job.objects.unfinished().get(kind=KIND)
    locmem = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # nothing listens

    run_job(job.pk, HANDLERS)

    assert Alert.objects.filter(mailed_at__isnull=True).count() == 1
    settings.EMAIL_BACKEND = locmem
    Job.objects.filter(pk=job.pk).update(not_before=None)
    assert [each.subject for each in send()] == ["1 background job failed"]


def test_alerts_go_with_their_events():
    reader(Role.ADMIN)
    fail_job()
    send()
    Event.objects.update(created_at=timezone.now() - timedelta(days=31))

    known = Event.objects.count()

    assert services.prune_events(timedelta(days=30)) == known

    assert not Alert.objects.exists()
    assert not Delivery.objects.exists()


def test_what_one_is_mailed_about_is_chosen_on_the_profile(client):
    admin = reader(Role.ADMIN)
    client.force_login(admin)
    page = client.get(reverse("profile")).content.decode()
    assert page.count('name="alerts"') == 4
    assert page.count("checked") == 3  # with the notices

    client.post(reverse("preferences"), {"alerts": ["gaps"], "mails_notices": "on"})

    admin = type(admin).objects.get(pk=admin.pk)
    assert alerts_of(admin) == ("gaps",)
    client.post(reverse("preferences"), {})
    assert alerts_of(type(admin).objects.get(pk=admin.pk)) == ()


def test_only_what_the_role_opens_is_offered_and_kept(client):
    expert = reader(Role.SME)
    client.force_login(expert)
    page = client.get(reverse("profile")).content.decode()
    assert page.count('name="alerts"') == 2

    refused = client.post(reverse("preferences"), {"alerts": ["drift"]}, follow=True)

    assert "drift is not one of the available choices" in refused.content.decode()
    assert not Preferences.objects.exists()
    client.force_login(make_user())
    assert 'name="alerts"' not in client.get(reverse("profile")).content.decode()
