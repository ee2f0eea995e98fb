"""Real workers on both brokers: killed, stopped, without broker, without database."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from opentelemetry import propagate
from opentelemetry.context import attach, detach

from accounts.request_ids import named
from accounts.roles import Role
from jobs.models import Job
from jobs.services import enqueue, request_cancel, retry
from tests.factories import make_user
from tests.waiting import wait_until
from tests.workers.conftest import System
from tests.workers.processes import ROOT, WORKER, Process

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]
_FAILED = "raised unexpected"  # what Celery logs behind the end of a job


def count(n: int, pause: float = 0.02, **options) -> Job:
    return enqueue("tests.count", {"n": n, "pause": pause}, **options)


@pytest.fixture
def may_end(tmp_path: Path) -> Path:
    """The file that lets jobs of `count_on` end: a busy machine sees none end too soon."""
    return tmp_path / "may_end"


def count_on(may_end: Path, **options) -> Job:
    parameters = {"n": 10, "pause": 0.02, "may_end": str(may_end)}
    return enqueue("tests.count", parameters, **options)


def is_done(job: Job, at_least: int = 0) -> bool:
    job.refresh_from_db()
    return job.is_finished if not at_least else job.done >= at_least


def test_a_worker_runs_a_job_though_nobody_sweeps(system: System, effects):
    system.start()
    wait_until(lambda: "ready." in system.log())

    with named("of-a-request"):
        job = count(3)
    wait_until(lambda: is_done(job))

    assert "[of-a-request]" in system.log()
    assert (job.state, job.result) == ("succeeded", {"counted": 3})
    assert effects() == [1, 2, 3]


def test_a_job_that_is_retried_keeps_the_request_that_started_it(system: System):
    system.start()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    remote = propagate.extract({"traceparent": trace})
    began = attach(remote)
    with named("of-a-request"):
        job = enqueue("kb.import", {"import": 0})
    detach(began)
    wait_until(lambda: is_done(job) and system.log().count(_FAILED) == 1)
    assert job.origin == {"request_id": "of-a-request", "traceparent": trace}
    once = system.log().count("[of-a-request]")

    with named("of-another"):
        retry(job.pk, by=make_user(Role.ADMIN))
    wait_until(lambda: is_done(job) and system.log().count(_FAILED) == 2)

    assert job.state == "failed"
    assert system.log().count("[of-a-request]") == 2 * once > 0
    assert "[of-another]" not in system.log()


def test_every_line_of_a_job_that_fails_has_its_id(system: System):
    system.start()
    with named("of-a-request"):
        job = enqueue("kb.import", {"import": 0})
    wait_until(lambda: is_done(job) and _FAILED in system.log())

    lines = system.log().splitlines()
    failed = [line for line in lines if str(job.pk) in line]
    (ended,) = [line for line in lines if _FAILED in line]

    assert job.state == "failed"
    assert failed
    assert all("[of-a-request]" in line for line in [*failed, ended])


def test_a_worker_of_one_queue_leaves_the_others_to_theirs(system: System, effects):
    import_job = enqueue("kb.import", {"import": 0})
    job = count(3)
    system.start((*WORKER, "--queues", "interactive"))

    wait_until(lambda: is_done(job))
    assert job.state == "succeeded"
    import_job.refresh_from_db()
    assert import_job.attempts == 0

    system.start((*WORKER, "--queues", "imports", "--hostname", "imports@%h"))
    wait_until(lambda: is_done(import_job))
    assert "There is no import 0" in import_job.error


def test_a_worker_of_slow_queues_lowers_its_priority_once_it_is_started(system: System):
    fast = system.start((*WORKER, "--queues", "interactive"))
    slow = system.start((*WORKER, "--queues", "training", "--hostname", "slow@%h"))
    own = os.nice(0)
    lower = max(own, 10)

    wait_until(lambda: system.log().count("ready.") == 2)
    wait_until(lambda: priorities(slow) == [lower, lower])
    assert priorities(fast) == [own, own]


def priorities(worker: Process) -> list[int]:
    pids = [worker.pid, *worker.children()]
    return [os.getpriority(os.PRIO_PROCESS, pid) for pid in pids]


def test_a_job_is_done_once_whatever_is_killed_meanwhile(
    system: System, effects, may_end: Path
):
    chance = random.Random(2)
    job = count_on(may_end)
    worker = system.start()
    system.start_beat()

    for kill in (Process.kill_child, Process.kill_group, Process.kill_parent) * 2:
        # What it did since it was looked at is no progress of the run that goes on.
        job.refresh_from_db()
        wait_until(partial(is_done, job, job.done + 1))
        time.sleep(chance.random() / 4)
        kill(worker)
        if kill is not Process.kill_child:
            worker = system.start()
    may_end.touch()
    wait_until(lambda: is_done(job))

    assert job.state == "succeeded", job.error
    assert effects() == list(range(1, job.done + 1))
    assert job.attempts >= 4


def test_a_worker_that_is_asked_to_end_gives_its_job_back_at_once(
    system: System, effects, may_end: Path
):
    job = count_on(may_end)
    worker = system.start()
    wait_until(lambda: is_done(job, 1))

    assert worker.stop() == 0

    job.refresh_from_db()
    assert (job.state, job.lease_until) == ("queued", None)
    assert effects() == list(range(1, job.done + 1))


def test_a_child_that_is_asked_to_end_gives_its_job_back_at_once(
    system: System, effects, may_end: Path
):
    job = count_on(may_end)
    # A job is free to be taken too where its lease ended: here it does not.
    worker = system.start(NESCIO_JOB_LEASE_SECONDS="900")
    wait_until(lambda: is_done(job, 1))

    for child in worker.children():
        os.kill(child, signal.SIGTERM)

    wait_until(lambda: not is_done(job) and job.state == "queued")
    assert job.lease_until is None
    assert effects() == list(range(1, job.done + 1))


def test_a_job_that_was_given_back_goes_on_in_the_next_worker(
    system: System, effects, may_end: Path
):
    job = count_on(may_end)
    system.start_beat()
    worker = system.start()
    wait_until(lambda: is_done(job, 1))
    worker.stop()
    assert not is_done(job)

    may_end.touch()
    system.start()
    wait_until(lambda: is_done(job))

    assert effects() == list(range(1, job.done + 1))
    assert job.attempts == 2


def test_a_running_job_is_cancelled_between_two_steps(
    system: System, effects, may_end: Path
):
    owner = make_user()
    job = count_on(may_end, owner=owner)
    system.start()
    wait_until(lambda: is_done(job, 1))

    request_cancel(job.pk, by=owner)
    job.refresh_from_db()
    done = job.done
    wait_until(lambda: is_done(job))

    assert job.state == "cancelled"
    assert effects() == list(range(1, job.done + 1))
    assert job.done <= done + 1  # of a step that was open


def test_a_killed_workers_job_goes_on_long_before_its_lease_ends(
    system: System, effects, may_end: Path
):
    job = count_on(may_end)
    start = partial(
        system.start, NESCIO_JOB_LEASE_SECONDS="900", NESCIO_JOB_SWEEP_SECONDS="900"
    )
    worker = start()

    for kill in (Process.kill_group, Process.kill_child):
        wait_until(partial(is_done, job, job.done + 1))
        kill(worker)
        # What it did since it was looked at is no progress of the next one.
        job.refresh_from_db()
        if kill is Process.kill_group:
            worker = start()
    may_end.touch()
    wait_until(lambda: is_done(job))

    assert job.state == "succeeded", job.error
    assert effects() == list(range(1, job.done + 1))
    assert job.attempts == 3


def test_a_worker_whose_idle_child_is_killed_goes_on(system: System, effects):
    worker = system.start()
    wait_until(lambda: "ready." in system.log())
    wait_until(lambda: bool(worker.children()))

    worker.kill_child()
    job = count(3)

    wait_until(lambda: is_done(job))
    assert effects() == [1, 2, 3]


def test_two_workers_and_two_beats_do_each_job_once(system: System, effects):
    jobs = [count(5, 0) for _ in range(20)]
    for _ in range(2):
        system.start_beat()
        system.start(
            (*WORKER, "--hostname", f"worker{_}@%h"),
            NESCIO_JOB_LEASE_SECONDS="900",  # a paused worker would lose one of 3 s
        )

    for job in jobs:
        wait_until(partial(is_done, job))

    assert effects() == sorted([1, 2, 3, 4, 5] * 20)
    assert all(job.attempts == 1 for job in jobs)


@pytest.mark.parametrize("system", ["redis"], indirect=True)
@pytest.mark.redis
def test_what_is_enqueued_while_the_broker_is_away_runs_once_it_is_back(
    system: System, effects
):
    system.start()
    system.start_beat()
    running = count(150)
    wait_until(lambda: is_done(running, 1))

    assert system.broker
    system.broker.end()
    waiting = count(3)
    assert waiting.notified_at is None
    system.broker.start()
    for job in (running, waiting):
        wait_until(partial(is_done, job))

    assert (running.state, waiting.state) == ("succeeded", "succeeded")
    assert effects() == sorted([*range(1, 151), 1, 2, 3])


# Prints what is resident in MiB: before arrays, after them, and once memory is given back.
ARRAYS = """
import django, numpy, psutil
django.setup()
from workers import tasks

def show():
    print(psutil.Process().memory_info().rss / 1024**2)

show()
arrays = [numpy.ones(8_000) for _ in range(2_000)]
last = arrays[-1]  # above all others, so that they are not given back by themselves
del arrays
show()
tasks.give_memory_back()
show()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps it")
def test_memory_of_a_job_s_arrays_is_given_back():
    # In a process of its own: one that lives long has room for them among what is free.
    done = subprocess.run(
        [sys.executable, "-c", ARRAYS],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "nescio.settings"},
        capture_output=True,
        text=True,
        check=True,
    )

    before, kept, given_back = map(float, done.stdout.split())
    assert kept > before + 50
    assert given_back < before + 50


def test_beat_shows_when_the_broker_took_something_last(system: System):
    shown = system.directory / "scheduled"
    system.start_beat()

    wait_until(shown.exists)
    first = shown.stat().st_mtime_ns
    wait_until(lambda: shown.stat().st_mtime_ns > first)
