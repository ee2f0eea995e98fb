import os
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta

import psutil
import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from jobs import lease
from jobs.exceptions import JobInterruptedError, LeaseLostError, RetryableJobError
from jobs.models import Job
from jobs.run import JobRun, run_job
from jobs.services import enqueue
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _no_notification(monkeypatch):
    for place in ("jobs.services.notify_worker", "jobs.services.notify_worker"):
        monkeypatch.setattr(place, lambda *_: True)


def count_to_three(run: JobRun) -> dict[str, object]:
    for n in range(run.cursor.get("after", 0) + 1, 4):
        with run.step() as step:
            step.advance(done=n, total=3, cursor={"after": n})
    return {"counted": 3}


def never(run: JobRun) -> dict[str, object]:
    raise AssertionError(run.job_id)


def seconds_until(time: datetime | None) -> float:
    assert time
    return (time - timezone.now()).total_seconds()


def assert_waits(job: Job, seconds: int, began: datetime) -> None:
    """Hold a job that was given back between `began` and now to its wait."""
    wait = timedelta(seconds=seconds)
    assert job.not_before
    assert began + wait <= job.not_before <= timezone.now() + wait


def held(job: Job) -> JobRun:
    claimed = lease.claim(job.pk)
    assert claimed
    return JobRun(claimed)


def run_with(handler, **fields) -> Job:
    job = enqueue("tests.work", {"by": 1})
    Job.objects.filter(pk=job.pk).update(**fields)
    run_job(job.pk, {"tests.work": handler})
    job.refresh_from_db()
    return job


def test_a_job_runs_to_its_result():
    job = run_with(count_to_three)

    assert (job.state, job.done, job.total) == ("succeeded", 3, 3)
    assert job.result == {"counted": 3}
    assert (job.attempts, job.lease_until) == (1, None)
    assert job.started_at
    assert job.finished_at
    assert job.started_at <= job.finished_at


def test_a_job_that_runs_or_has_ended_is_not_run_again():
    job = run_with(count_to_three)

    run_job(job.pk, {"tests.work": never})

    job.refresh_from_db()
    assert job.attempts == 1


def test_a_run_goes_on_from_the_cursor():
    begun = []

    def handler(run: JobRun) -> dict[str, object]:
        begun.append((run.cursor, run.done))
        return {}

    run_with(handler, cursor={"after": 2}, done=2, attempts=4)

    assert begun == [({"after": 2}, 2)]


def test_an_unknown_kind_fails_with_the_kinds_that_are_known():
    job = enqueue("tests.nothing", {})

    run_job(job.pk, {"tests.work": count_to_three})

    job.refresh_from_db()
    assert job.state == "failed"
    assert "'tests.nothing'" in job.error
    assert "tests.work" in job.error


def test_a_handlers_error_is_kept_and_fails_the_job_at_once():
    def handler(run: JobRun) -> dict[str, object]:
        raise KeyError("no \0 such\ud800 " + "x" * 10_000)

    job = enqueue("tests.work", {})
    with pytest.raises(KeyError):
        run_job(job.pk, {"tests.work": handler})

    job.refresh_from_db()
    assert job.state == "failed"
    assert job.error.startswith("KeyError: 'no")
    assert len(job.error) == lease.ERROR_CHARACTERS
    assert job.attempts == 1


def test_a_result_that_is_no_json_fails_the_job():
    job = enqueue("tests.work", {})

    with pytest.raises(TypeError):
        run_job(job.pk, {"tests.work": lambda run: {"x": object()}})

    job.refresh_from_db()
    assert job.state == "failed"


def test_the_work_of_a_step_that_breaks_is_undone_and_the_steps_before_it_stay():
    def handler(run: JobRun) -> dict[str, object]:
        with run.step() as step:
            step.advance(done=1, cursor={"after": 1})
        with run.step() as step:
            step.advance(done=2, cursor={"after": 2})
            Job.objects.create(kind="tests.written_in_step")
            raise RetryableJobError("later")

    job = run_with(handler)

    assert (job.state, job.done, job.cursor) == ("queued", 1, {"after": 1})
    assert not Job.objects.filter(kind="tests.written_in_step").exists()


@pytest.mark.parametrize(
    "error",
    [RetryableJobError("busy"), OperationalError("gone"), ConnectionResetError("peer")],
)
def test_what_may_pass_is_tried_again_later_and_the_reason_is_shown(error):
    def handler(run: JobRun) -> dict[str, object]:
        raise error

    began = timezone.now()
    job = run_with(handler)

    assert job.state == "queued"
    assert str(error) in job.error
    assert job.notified_at is None
    assert_waits(job, 2, began)


def test_the_wait_doubles_with_each_run_without_progress_up_to_a_minute():
    def handler(run: JobRun) -> dict[str, object]:
        raise RetryableJobError("busy")

    for attempts, seconds in ((0, 2), (1, 4), (2, 8), (9, 60)):
        began = timezone.now()
        job = run_with(handler, attempts_without_progress=attempts, max_attempts=99)
        assert_waits(job, seconds, began)


def test_a_job_fails_with_its_last_error_after_its_runs_without_progress():
    def handler(run: JobRun) -> dict[str, object]:
        raise RetryableJobError("still busy")

    job = run_with(handler, attempts_without_progress=4)

    assert job.state == "failed"
    assert job.error == "RetryableJobError: still busy"


def test_progress_forgives_the_runs_without_progress_before_it():
    def handler(run: JobRun) -> dict[str, object]:
        with run.step() as step:
            step.advance(done=run.done + 1)
        raise RetryableJobError("busy")

    job = run_with(handler, attempts_without_progress=4)

    assert (job.state, job.attempts_without_progress) == ("queued", 0)


def test_a_step_that_changes_nothing_is_no_progress():
    def handler(run: JobRun) -> dict[str, object]:
        with run.step() as step:
            step.advance(total=9)
        raise RetryableJobError("busy")

    assert run_with(handler, attempts_without_progress=4).state == "failed"


def test_a_job_whose_worker_vanishes_each_time_is_given_up():
    job = enqueue("tests.work", {})
    Job.objects.filter(pk=job.pk).update(
        state="running", attempts_without_progress=5, attempts=5, worker="host:1",
        lease_until=timezone.now() - timedelta(seconds=1),
    )  # fmt: skip

    run_job(job.pk, {"tests.work": never})

    job.refresh_from_db()
    assert job.state == "failed"
    assert "host:1" in job.error
    assert "5 runs" in job.error


def test_the_lease_of_a_process_that_was_killed_here_ends_at_once():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
    job = enqueue("tests.work", {})
    claimed = held(job)
    holder = Job.objects.get().worker.replace(f":{os.getpid()}:", f":{child.pid}:")
    Job.objects.update(worker=holder)

    run_job(job.pk, {"tests.work": never})
    child.kill()  # a zombie, until it is waited for
    wait_until(lambda: psutil.Process(child.pid).status() == "zombie")
    # On another machine that pid says nothing.
    Job.objects.update(worker=f"elsewhere:{child.pid}:0123456789ab")
    run_job(job.pk, {"tests.work": never})
    Job.objects.update(worker=holder)
    run_job(job.pk, {"tests.work": count_to_three})

    child.wait()
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("succeeded", 2)
    with pytest.raises(LeaseLostError), claimed.step():
        pass


def test_a_cancelled_job_stops_before_its_next_step():
    def handler(run: JobRun) -> dict[str, object]:
        with run.step() as step:
            step.advance(done=1)
        Job.objects.filter(pk=run.job_id).update(cancel_requested=True)
        with run.step() as step:
            step.advance(done=2)
        return {}

    job = run_with(handler)

    assert (job.state, job.done) == ("cancelled", 1)
    assert job.finished_at is not None


def test_long_work_between_two_steps_sees_that_it_is_cancelled():
    def compute(run: JobRun) -> dict[str, object]:
        run.check()
        Job.objects.filter(pk=run.job_id).update(cancel_requested=True)
        run.check()
        return never(run)

    assert run_with(compute).state == "cancelled"


def test_a_job_cancelled_while_nobody_held_it_is_not_begun():
    job = run_with(never, cancel_requested=True)

    assert (job.state, job.attempts) == ("cancelled", 0)


def test_a_worker_that_shuts_down_gives_the_job_back_after_its_step():
    stopping = []

    def handler(run: JobRun) -> dict[str, object]:
        with run.step() as step:
            step.advance(done=1, cursor={"after": 1})
        stopping.append(True)
        with run.step() as step:
            step.advance(done=2)
        return {}

    job = enqueue("tests.work", {})
    run_job(job.pk, {"tests.work": handler}, is_stopping=lambda: bool(stopping))

    job.refresh_from_db()
    assert (job.state, job.done, job.cursor) == ("queued", 1, {"after": 1})
    assert (job.lease_until, job.not_before, job.attempts_without_progress) == (
        None,
        None,
        0,
    )


def test_a_worker_that_shuts_down_begins_nothing_and_lets_the_sweeper_ring_again():
    job = enqueue("tests.work", {})
    Job.objects.update(notified_at=timezone.now())

    run_job(job.pk, {"tests.work": never}, is_stopping=lambda: True)

    job.refresh_from_db()
    assert (job.state, job.attempts, job.notified_at) == ("queued", 0, None)


def test_giving_back_is_no_run_without_progress():
    def handler(run: JobRun) -> dict[str, object]:
        raise JobInterruptedError

    assert run_with(handler, attempts_without_progress=3).attempts_without_progress == 3


def test_a_terminated_process_gives_the_job_back_and_ends():
    def handler(run: JobRun) -> dict[str, object]:
        with run.step():
            raise SystemExit(1)

    job = enqueue("tests.work", {})
    with pytest.raises(SystemExit):
        run_job(job.pk, {"tests.work": handler})

    job.refresh_from_db()
    assert (job.state, job.lease_until) == ("queued", None)


def test_a_run_that_lost_its_lease_changes_nothing():
    def handler(run: JobRun) -> dict[str, object]:
        Job.objects.filter(pk=run.job_id).update(attempts=2)  # another run's claim
        with run.step() as step:
            Job.objects.create(kind="tests.written_in_step")
            step.advance(done=1)
        return {}

    job = run_with(handler)

    assert (job.state, job.attempts, job.done) == ("running", 2, 0)
    assert not Job.objects.filter(kind="tests.written_in_step").exists()


def test_a_run_that_lost_its_lease_cannot_end_the_job():
    def handler(run: JobRun) -> dict[str, object]:
        Job.objects.filter(pk=run.job_id).update(attempts=2)
        return {"wrong": True}

    job = run_with(handler)

    assert (job.state, job.result) == ("running", {})


def test_of_many_workers_one_gets_the_job():
    job = enqueue("tests.work", {})
    claims: list[Job | None] = []
    together = threading.Barrier(6)

    def claim() -> None:
        together.wait()
        claims.append(lease.claim(job.pk))
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(claim is not None for claim in claims) == 1
    job.refresh_from_db()
    assert job.attempts == 1


def test_the_heartbeat_renews_the_lease_of_a_long_computation(settings):
    settings.JOB_LEASE = timedelta(seconds=0.3)
    stolen = []

    def lease_until() -> datetime:
        until = Job.objects.values_list("lease_until", flat=True).get()
        assert until
        return until

    def handler(run: JobRun) -> dict[str, object]:
        first = lease_until()
        wait_until(lambda: lease_until() > first)
        # The beat goes on as it began; what it gives from now on no busy machine outlasts.
        settings.JOB_LEASE = timedelta(minutes=15)
        wait_until(lambda: seconds_until(lease_until()) > 60)
        stolen.append(lease.claim(run.job_id))
        return {}

    job = run_with(handler)

    assert stolen == [None]
    assert job.state == "succeeded"


def test_the_heartbeat_leaves_out_a_beat_while_a_step_is_open(settings):
    settings.JOB_LEASE = timedelta(seconds=0.3)

    def handler(run: JobRun) -> dict[str, object]:
        with run.step() as step:
            time.sleep(1)
            step.advance(done=1)
        return {}

    assert run_with(handler).state == "succeeded"


def test_a_job_in_an_open_step_is_not_claimed_though_its_lease_ran_out():
    job = enqueue("tests.work", {})
    Job.objects.filter(pk=job.pk).update(
        state="running", attempts=1, lease_until=timezone.now() - timedelta(seconds=9)
    )
    claims = []

    def claim() -> None:
        claims.append(lease.claim(job.pk))
        connection.close()

    job.refresh_from_db()
    run = JobRun(job)
    with run.step() as step:
        thread = threading.Thread(target=claim)
        thread.start()
        thread.join()
        step.advance(done=1)

    assert claims == [None]
    job.refresh_from_db()
    assert seconds_until(job.lease_until) > 0


def test_a_lease_that_is_held_by_nobody_is_not_renewed():
    job = enqueue("tests.work", {})

    lease.renew(lease.Lease(job.pk, 1))
    with pytest.raises(LeaseLostError):
        lease.give_back(lease.Lease(job.pk, 1), counts=True)

    job.refresh_from_db()
    assert (job.state, job.lease_until) == ("queued", None)


def test_a_step_costs_five_statements(django_assert_num_queries):
    job = enqueue("tests.work", {})
    run = held(job)

    # begin, the guard against silence, the lock, the progress, commit
    with django_assert_num_queries(5), run.step() as step:
        step.advance(done=1)


def test_a_job_waits_until_its_time():
    job = enqueue("tests.work", {})
    Job.objects.update(not_before=Now() + timedelta(seconds=30))
    assert lease.claim(job.pk) is None

    Job.objects.update(not_before=Now() - timedelta(seconds=1))
    assert lease.claim(job.pk) is not None


def test_a_step_may_not_stand_inside_another_transaction():
    run = held(enqueue("tests.work", {}))

    with pytest.raises(RuntimeError, match="durable"), transaction.atomic(), run.step():
        pass
