import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.utils import timezone

from accounts.exceptions import ConflictError
from accounts.roles import Role
from jobs import services as notify
from jobs.exceptions import JobNotFoundError, JobStateError
from jobs.models import Job
from jobs.services import enqueue, prune_finished, request_cancel, retry
from tests.factories import make_user
from workers.queues import JOB_QUEUES

pytestmark = pytest.mark.django_db


@pytest.fixture
def notified(monkeypatch) -> list[uuid.UUID]:
    """The jobs that were notified for, instead of a message to nobody."""
    ids: list[uuid.UUID] = []
    monkeypatch.setattr("jobs.services.notify_worker", lambda pk, kind: ids.append(pk))
    return ids


def test_a_job_is_notified_once_its_transaction_has_committed(
    notified, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        job = enqueue("tests.count", {"n": 3}, owner=make_user(), total=3)
        assert notified == []

    assert notified == [job.pk]
    assert (job.state, job.parameters, job.total) == ("queued", {"n": 3}, 3)


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_transaction_rolls_back_never_was(notified):
    with transaction.atomic():
        enqueue("tests.count", {})
        transaction.set_rollback(True)

    assert not Job.objects.exists()
    assert notified == []


def test_an_unfinished_job_with_the_key_is_returned_and_not_notified_again(
    notified, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        first = enqueue("tests.count", {"n": 1}, idempotency_key="count")
        second = enqueue("tests.count", {"n": 2}, idempotency_key="count")

    assert second.pk == first.pk
    assert second.parameters == {"n": 1}
    assert notified == [first.pk]


def test_a_finished_jobs_key_may_be_used_again():
    first = enqueue("tests.count", {}, idempotency_key="count")
    Job.objects.update(state=Job.State.SUCCEEDED)

    assert enqueue("tests.count", {}, idempotency_key="count").pk != first.pk


def test_a_waiting_job_is_cancelled_at_once():
    job = enqueue("tests.count", {}, owner=(owner := make_user()))

    cancelled = request_cancel(job.pk, by=owner)

    assert cancelled.state == Job.State.CANCELLED
    assert cancelled.finished_at is not None


def test_a_running_job_is_asked_to_stop_and_keeps_running_until_its_next_step():
    owner = make_user()
    job = _running(enqueue("tests.count", {}, owner=owner))

    asked = request_cancel(job.pk, by=owner)

    assert (asked.state, asked.cancel_requested) == (Job.State.RUNNING, True)


def test_a_running_job_that_nobody_holds_is_cancelled_at_once():
    owner = make_user()
    job = _running(enqueue("tests.count", {}, owner=owner), lease=timedelta(seconds=-1))

    assert request_cancel(job.pk, by=owner).state == Job.State.CANCELLED


@pytest.mark.parametrize("state", [Job.State.SUCCEEDED, Job.State.FAILED])
def test_a_finished_job_cannot_be_cancelled(state):
    job = enqueue("tests.count", {}, owner=(owner := make_user()))
    Job.objects.update(state=state)

    with pytest.raises(JobStateError, match=f"{job.pk} has {state}"):
        request_cancel(job.pk, by=owner)


@pytest.mark.parametrize("state", [Job.State.CANCELLED, Job.State.FAILED])
def test_a_retried_job_keeps_its_cursor_and_counts_runs_without_progress_anew(state):
    job = enqueue("tests.count", {}, owner=(owner := make_user()))
    Job.objects.update(
        state=state, error="x", attempts_without_progress=5, attempts=7, cursor={"after": 3},
        finished_at=timezone.now(), cancel_requested=True,
    )  # fmt: skip

    again = retry(job.pk, by=owner)

    again.refresh_from_db()
    assert (again.state, again.error, again.attempts_without_progress) == (
        "queued",
        "",
        0,
    )
    assert (again.cursor, again.attempts) == ({"after": 3}, 7)
    assert again.finished_at is None
    assert not again.cancel_requested


@pytest.mark.parametrize("state", ["queued", "succeeded"])
def test_only_a_failed_or_cancelled_job_can_be_retried(state):
    job = enqueue("tests.count", {}, owner=(owner := make_user()))
    Job.objects.update(state=state)

    with pytest.raises(JobStateError, match=f"is {state}"):
        retry(job.pk, by=owner)


def test_a_job_is_not_retried_beside_another_with_its_key():
    owner = make_user()
    failed = enqueue("tests.count", {}, owner=owner, idempotency_key="count")
    Job.objects.update(state=Job.State.FAILED)
    enqueue("tests.count", {}, idempotency_key="count")

    with pytest.raises(ConflictError, match="'count'"):
        retry(failed.pk, by=owner)


@pytest.mark.parametrize("change", [request_cancel, retry])
def test_anothers_job_does_not_exist(change):
    job = enqueue("tests.count", {}, owner=make_user())

    for stranger in (make_user(Role.CURATOR), AnonymousUser()):
        with pytest.raises(JobNotFoundError):
            change(job.pk, by=stranger)


def test_an_admin_may_steer_everybodys_jobs():
    job = enqueue("tests.count", {}, owner=make_user())

    assert request_cancel(job.pk, by=make_user(Role.ADMIN)).state == "cancelled"


def test_old_finished_jobs_are_pruned_and_unfinished_ones_kept():
    now = timezone.now()
    kept = [enqueue("tests.count", {}), enqueue("tests.count", {})]
    Job.objects.filter(pk=kept[0].pk).update(created_at=now - timedelta(days=90))
    Job.objects.filter(pk=kept[1].pk).update(
        state="failed", finished_at=now - timedelta(days=29)
    )
    old = enqueue("tests.count", {})
    Job.objects.filter(pk=old.pk).update(
        state="succeeded", finished_at=now - timedelta(days=31)
    )

    assert prune_finished(timedelta(days=30)) == 1
    assert set(Job.objects.values_list("pk", flat=True)) == {job.pk for job in kept}


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_fails_nobody_and_leaves_the_job_to_the_sweeper(
    celery_broker, caplog
):
    celery_broker("redis://127.0.0.1:1/0")

    job = enqueue("tests.count", {})

    job.refresh_from_db()
    assert (job.state, job.notified_at) == ("queued", None)
    assert "broker is unavailable" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_told_is_noted_on_the_row(celery_broker, tmp_path):
    celery_broker("filesystem://", data_folder=str(tmp_path))

    job = enqueue("tests.count", {})

    job.refresh_from_db()
    assert job.notified_at is not None
    assert notify.notify_worker(job.pk, job.kind)
    assert len(list((tmp_path / "queues/interactive").iterdir())) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", [*JOB_QUEUES, "qa.draw_reviews"])
def test_long_work_waits_in_a_queue_of_its_own(celery_broker, tmp_path, kind):
    celery_broker("filesystem://", data_folder=str(tmp_path))

    job = enqueue(kind, {})
    Job.objects.update(notified_at=None)
    notify.sweep()

    expected = JOB_QUEUES.get(kind, "interactive")
    found = {
        file.parent.name: file.read_text()
        for file in (tmp_path / "queues").rglob("*")
        if file.is_file()
    }
    assert set(found) == {expected}
    assert len(list((tmp_path / "queues" / expected).iterdir())) == 2
    assert Job.objects.get(pk=job.pk).notified_at


def _running(job: Job, lease: timedelta = timedelta(seconds=30)) -> Job:
    Job.objects.filter(pk=job.pk).update(
        state=Job.State.RUNNING, attempts=1, lease_until=timezone.now() + lease
    )
    return job
