"""Any order of claims, steps, vanished workers, cancels and retries, on the real table.

The machine keeps what a job must have come to in plain values, and the runs that ever
began: one that lost its lease tries to write for ever, and must never succeed.
"""

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from accounts.roles import Role
from jobs import lease
from jobs.exceptions import JobCancelledError, JobStateError, LeaseLostError
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue, request_cancel, retry
from tests.factories import make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
FINISHED = {"succeeded", "failed", "cancelled"}


class Jobs(RuleBasedStateMachine):
    """Jobs of two idempotency keys, and everything that may happen to them."""

    jobs = Bundle("jobs")
    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        Job.objects.all().delete()
        self.admin = make_user(Role.ADMIN)
        self.done: dict[Job, int] = {}
        self.holder: dict[Job, JobRun | None] = {}
        self.cancel: dict[Job, bool] = {}
        self.state: dict[Job, str] = {}

    @rule(target=jobs, key=st.sampled_from(["a", "b"]))
    def enqueue(self, key):
        open_jobs = [job for job, state in self.state.items() if state not in FINISHED]
        same = [job for job in open_jobs if job.idempotency_key == key]
        job = enqueue("tests.work", {}, idempotency_key=key)
        if same:
            assert [job] == same
            return multiple()
        self.done[job], self.holder[job], self.cancel[job] = 0, None, False
        self.state[job] = "queued"
        return job

    @rule(target=runs, job=jobs)
    def claim(self, job):
        claimed = lease.claim(job.pk)
        if self.state[job] != "queued" or self.cancel[job]:
            assert claimed is None
            if self.state[job] == "queued":
                self.state[job] = "cancelled"
            return multiple()
        assert claimed
        run = JobRun(claimed)
        assert run.done == self.done[job]
        self.holder[job], self.state[job] = run, "running"
        return job, run

    @rule(pair=runs)
    def step(self, pair):
        job, run = pair
        forbidden: AbstractContextManager[object] = nullcontext()
        if self.holder[job] is not run:
            forbidden = pytest.raises(LeaseLostError)
        elif self.cancel[job]:
            forbidden = pytest.raises(JobCancelledError)

        with forbidden, run.step() as step:
            step.advance(done=run.done + 1, cursor={"after": run.done + 1})

        if isinstance(forbidden, nullcontext):
            self.done[job] += 1

    @rule(pair=runs, state=st.sampled_from([Job.State.SUCCEEDED, Job.State.FAILED]))
    def finish(self, pair, state):
        job, run = pair
        try:
            lease.finish(run.lease, state)
        except LeaseLostError:
            assert self.holder[job] is not run
        else:
            assert self.holder[job] is run
            self.holder[job], self.state[job] = None, state.value

    @rule(pair=runs)
    def give_back(self, pair):
        job, run = pair
        try:
            lease.give_back(run.lease, counts=False)
        except LeaseLostError:
            assert self.holder[job] is not run
        else:
            assert self.holder[job] is run
            self.holder[job], self.state[job] = None, "queued"

    @rule(target=runs, job=jobs)
    def take_over(self, job):
        """The worker vanishes, its lease runs out, and another run claims the job."""
        if self.state[job] != "running" or self.cancel[job]:
            return multiple()
        Job.objects.filter(pk=job.pk).update(
            lease_until=job.created_at - timedelta(seconds=1),
            attempts_without_progress=0,
        )
        self.state[job] = "queued"
        return self.claim(job)

    @rule(job=jobs)
    def cancel_it(self, job):
        try:
            request_cancel(job.pk, by=self.admin)
        except JobStateError:
            assert self.state[job] in ("succeeded", "failed")
            return
        self.cancel[job] = True
        if self.state[job] == "queued":
            self.state[job] = "cancelled"

    @rule(job=jobs)
    def retry_it(self, job):
        blocked = any(
            other != job
            and other.idempotency_key == job.idempotency_key
            and state not in FINISHED
            for other, state in self.state.items()
        )
        if blocked:
            return
        try:
            retry(job.pk, by=self.admin)
        except JobStateError:
            assert self.state[job] not in ("failed", "cancelled")
            return
        self.state[job], self.cancel[job] = "queued", False

    @invariant()
    def the_rows_are_what_was_done(self):
        rows = {
            row[0]: row[1:] for row in Job.objects.values_list("pk", "state", "done")
        }
        assert rows == {
            job.pk: (state, self.done[job]) for job, state in self.state.items()
        }


def test_no_order_of_events_loses_or_repeats_a_step(monkeypatch):
    monkeypatch.setattr("jobs.services.notify_worker", lambda *_: True)

    run_state_machine_as_test(
        Jobs,
        settings=hypothesis_settings(
            max_examples=60, stateful_step_count=30, deadline=None
        ),
    )
