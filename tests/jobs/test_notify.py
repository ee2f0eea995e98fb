import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import Job
from jobs.services import sweep

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def notified(monkeypatch) -> list[uuid.UUID]:
    ids: list[uuid.UUID] = []

    def notify_worker(job_id: uuid.UUID, kind: str) -> bool:
        ids.append(job_id)
        return True

    monkeypatch.setattr("jobs.services.notify_worker", notify_worker)
    return ids


def make_job(**fields) -> Job:
    """Make a job; a number is a time so many seconds ago."""
    now = timezone.now()
    times = {
        name: now - timedelta(seconds=value)
        for name, value in fields.items()
        if name != "state"
    }
    return Job.objects.create(kind="tests.count", **{**fields, **times})


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "queued"},
        {"state": "queued", "notified_at": 21},
        {"state": "queued", "not_before": 1},
        {"state": "running", "lease_until": 1, "notified_at": 60},
    ],
    ids=["never notified", "notification lost", "wait over", "worker vanished"],
)
def test_a_job_that_nobody_works_on_is_notified(notified, fields):
    job = make_job(**fields)

    assert sweep() == 1
    assert notified == [job.pk]


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "queued", "notified_at": 5},
        {"state": "queued", "not_before": -30},
        {"state": "running", "lease_until": -5, "notified_at": 60},
        {"state": "succeeded"},
        {"state": "failed"},
        {"state": "cancelled"},
    ],
    ids=["just notified", "waits", "worked on", "succeeded", "failed", "cancelled"],
)
def test_any_other_job_is_left_alone(notified, fields):
    make_job(**fields)

    assert sweep() == 0
    assert notified == []


def test_a_second_sweep_right_after_does_nothing(notified):
    make_job()

    assert [sweep(), sweep()] == [1, 0]


def test_two_sweeps_at_once_ring_once_for_each_job(notified):
    jobs = {make_job().pk for _ in range(20)}
    together = threading.Barrier(2)

    def run() -> None:
        together.wait()
        sweep()
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(notified) == 20
    assert set(notified) == jobs


def test_a_broker_that_is_away_is_asked_once_and_the_jobs_stay_due(monkeypatch):
    asked = []

    def notify_worker(job_id: uuid.UUID, kind: str) -> bool:
        asked.append(job_id)
        return False

    monkeypatch.setattr("jobs.services.notify_worker", notify_worker)
    make_job()
    make_job()

    assert sweep() == 0
    assert len(asked) == 1
    assert Job.objects.filter(notified_at=None).count() == 2
