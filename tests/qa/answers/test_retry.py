"""Questions whose first try failed or never ended: kept, found and decided again."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.roles import Role
from nescio.celery import app, schedules
from qa.answers.asking import ABANDONED_AFTER, decide, fail_abandoned, keep_question
from qa.models import Answer
from tests.clients import rest_client
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer
from workers.tasks import fail_abandoned_questions

pytestmark = pytest.mark.django_db

FEE = "What does a replacement card cost?"
UNDECIDED: dict[str, Any] = {"gate": "", "reason": "", "shown_reason": "", "text": ""}


def retry(client, answer_id, **options):
    return client.post(f"/api/v1/answers/{answer_id}/retry", **options)


@pytest.fixture
def asker():
    return make_user()


@pytest.mark.slow
def test_a_503_names_the_kept_question_and_retrying_it_answers(settings, asker):
    make_entry("A replacement card costs 12 euros when it was lost.")
    client = rest_client(asker)
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:1/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0
    body = {"question": "cost of a lost replacement card?"}

    down = client.post("/api/v1/ask", body, format="json")
    kept = down.json()["error"]["detail"]["id"]
    still_down = retry(client, kept)
    settings.LANGUAGE_SERVER_URL = ""
    decided = retry(client, kept)

    assert down.status_code == still_down.status_code == 503
    assert still_down.json()["error"]["detail"] == {"id": kept}
    assert decided.status_code == 200
    answer = decided.json()
    assert answer["id"] == kept
    assert answer["outcome"] in {"answered", "refused"}
    assert answer == {**client.get(f"/api/v1/answers/{kept}").json(), "vote": None}
    assert Answer.objects.count() == 1


def test_a_retry_may_be_streamed(transactional_db, asker):
    make_entry("It costs 12 euros.", question=FEE)
    answer = make_answer(asker, question=FEE, outcome="failed", **UNDECIDED)

    response = retry(rest_client(asker), answer.pk, headers={"Accept": "text/event-stream"})  # fmt: skip
    told = response.getvalue().decode()

    assert "event: decision" in told
    assert "event: end" in told
    answer.refresh_from_db()
    assert (answer.outcome, answer.text) == ("answered", "It costs 12 euros.")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "answer_decided"),
        ({"outcome": "pending", **UNDECIDED}, "answer_pending"),
    ],
)
def test_what_did_not_fail_is_409_and_stays(asker, fields, code):
    answer = make_answer(asker, **fields)

    response = retry(rest_client(asker), answer.pk)

    assert response.status_code == 409
    assert response.json()["error"]["code"] == code
    assert Answer.objects.get().decided_at is None


def test_another_users_question_is_404_even_for_who_reviews(asker):
    answer = make_answer(asker, outcome="failed", **UNDECIDED)

    for role in (Role.AGENT, Role.ADMIN):
        client = rest_client(make_user(role))
        assert retry(client, answer.pk).status_code == 404
        assert retry(client, uuid4()).status_code == 404
    assert Answer.objects.get().outcome == "failed"


def test_a_question_that_nobody_decides_any_more_fails_and_can_be_retried(asker):
    make_entry("It costs 12 euros.", question=FEE)
    killed = keep_question(FEE, asker=asker, channel="api")
    new = keep_question(FEE, asker=asker, channel="api")
    old = make_answer(asker, cited=(make_entry(),))
    long_ago = timezone.now() - ABANDONED_AFTER - timedelta(seconds=1)
    Answer.objects.filter(pk__in=[killed.pk, old.pk]).update(created_at=long_ago)

    fail_abandoned_questions()

    outcomes = dict(Answer.objects.values_list("pk", "outcome"))
    assert outcomes == {killed.pk: "failed", new.pk: "pending", old.pk: "answered"}
    assert "ended before it was done" in Answer.objects.get(pk=killed.pk).error
    again = retry(rest_client(asker), killed.pk).json()
    assert (again["text"], again["answered"]) == ("It costs 12 euros.", True)


def test_a_slow_question_is_stored_though_it_was_given_up(asker):
    make_entry("It costs 12 euros.", question=FEE)
    slow = keep_question(FEE, asker=asker, channel="api")
    stages = decide(slow)
    next(stages)
    slow.claimed_at = timezone.now() - 2 * ABANDONED_AFTER
    Answer.objects.update(claimed_at=slow.claimed_at)
    assert fail_abandoned() == 1

    list(stages)

    stored = Answer.objects.get()
    assert (stored.outcome, stored.error) == ("answered", "")


def test_every_task_of_the_schedule_exists():
    assert {str(each["task"]) for each in schedules().values()} <= set(app.tasks)
