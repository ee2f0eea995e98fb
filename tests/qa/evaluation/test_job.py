"""Evaluating in the background: resumed where it stopped, nothing asked twice."""

import pytest

from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.demonstration import load_demonstration
from qa.evaluation.runs import evaluate_in_background
from qa.exceptions import EvaluationDataError
from qa.models import Answer, EvaluationResult, EvaluationRun
from tests.factories import make_curator
from workers.registry import HANDLERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch):
    monkeypatch.setattr("jobs.services.notify_worker", lambda *_: True)


@pytest.fixture
def demonstration():
    load_demonstration(author=make_curator())


def run(job, **options):
    run_job(job.pk, {"qa.evaluate": evaluate_in_background}, **options)
    job.refresh_from_db()
    return job


def test_the_worker_knows_the_kind():
    assert HANDLERS["qa.evaluate"] is evaluate_in_background


def test_the_report_is_the_jobs_result(demonstration):
    job = run(enqueue("qa.evaluate", {"suite": "demo", "limit": 3}))

    assert (job.state, job.done, job.total) == ("succeeded", 3, 3)
    assert job.result["rates"]["right"]["count"] == 3
    evaluation = EvaluationRun.objects.get(pk=job.result["run"])
    assert evaluation.state == "finished"
    ids = evaluation.results.values_list("case_id", flat=True)
    assert set(ids) == {"demo-01", "demo-02", "demo-03"}


def test_an_interrupted_evaluation_goes_on_and_asks_nothing_twice(demonstration):
    job = enqueue("qa.evaluate", {"suite": "demo", "limit": 4})
    # The run, two questions, and then the worker shuts down.
    seen = iter([False, False, False, False, True])

    run(job, is_stopping=lambda: next(seen))
    assert job.state != "succeeded"
    asked = set(Answer.objects.values_list("pk", flat=True))
    assert len(asked) == 2
    Job.objects.filter(pk=job.pk).update(not_before=None)

    run(job)

    assert job.state == "succeeded"
    assert Answer.objects.count() == 4
    assert asked < set(Answer.objects.values_list("pk", flat=True))
    assert EvaluationResult.objects.count() == 4
    assert EvaluationRun.objects.get().state == "finished"
    assert not Answer.objects.filter(outcome="pending").exists()


def test_a_cancelled_evaluation_keeps_what_it_asked(demonstration):
    job = enqueue("qa.evaluate", {"suite": "demo", "limit": 3})
    asked = iter([False, False, False])

    def cancel_after_two():
        if next(asked, None) is None:
            Job.objects.filter(pk=job.pk).update(cancel_requested=True)
        return False

    run(job, is_stopping=cancel_after_two)

    assert job.state == "cancelled"
    assert Answer.objects.count() == EvaluationResult.objects.count() == 1


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({}, "There is no suite ''"),
        ({"suite": "nothing"}, "There is no suite 'nothing'"),
        ({"suite": "demo", "limit": 0}, "limit 0 is not a positive number"),
    ],
)
def test_wrong_parameters_fail_the_job_and_say_why(parameters, why):
    job = enqueue("qa.evaluate", parameters)

    with pytest.raises(EvaluationDataError):
        run(job)

    job.refresh_from_db()
    assert job.state == "failed"
    assert f"EvaluationDataError: {why}" in job.error
    assert not Answer.objects.exists()
