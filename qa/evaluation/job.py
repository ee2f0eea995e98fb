"""Evaluating as a background job of the kind "qa.evaluate"."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.contrib.auth.models import User

from jobs.run import JobRun
from qa.evaluation.models import EvaluationRun
from qa.evaluation.suites.options import SuiteOptions, find_policy
from qa.evaluation.suites.registry import open_suite
from qa.exceptions import EvaluationDataError

from .judging import Suite
from .runs import begin, finish, go_on

KIND = "qa.evaluate"


def evaluate_in_background(run: JobRun) -> dict[str, object]:
    """Ask a suite's questions and return the report, without its single results.

    The parameters are `suite`, and as for the command `data`, `limit`, `seed`, `shadow`,
    `policy` and `knowledge_base`. Each question's rows and the job's progress are written
    in one step: whatever happens, the run goes on behind the last of them.
    """
    owner = User.objects.filter(pk=run.owner_id).first() if run.owner_id else None
    suite = _suite(run, owner)
    evaluation = _evaluation(run, suite, owner)
    done = evaluation.results.count()

    @contextmanager
    def writing() -> Iterator[None]:
        nonlocal done
        with run.step() as step:
            yield
            done += 1
            step.advance(done=done, total=evaluation.total)

    for _ in go_on(evaluation, suite, writing=writing):
        pass
    with run.step() as step:
        step.advance(done=evaluation.total, total=evaluation.total)
        finished = finish(evaluation)
    return {"run": finished.pk, "suite": finished.suite, **finished.report}


def _evaluation(run: JobRun, suite: Suite, owner: User | None) -> EvaluationRun:
    """Return the run that an earlier attempt of this job began, or begin one."""
    found = EvaluationRun.objects.filter(
        pk=run.cursor.get("run", 0), state=EvaluationRun.State.RUNNING
    ).first()
    if found:
        return found
    with run.step() as step:
        begun = begin(suite, by=owner)
        step.advance(total=begun.total, cursor={"run": begun.pk})
    return begun


def _suite(run: JobRun, owner: User | None) -> Suite:
    def loading(done: int, total: int) -> None:
        # Stops here if that was asked for; what is loaded stays.
        with run.step():
            pass

    given = run.parameters
    options = SuiteOptions(
        limit=_limit(given.get("limit")),
        seed=int(given.get("seed") or 0),
        shadow=given.get("shadow") is True,
        loading=loading,
        by=owner,
    )
    if data := str(given.get("data") or ""):
        options["data"] = Path(data)
    if slug := str(given.get("knowledge_base") or ""):
        options["knowledge_base"] = slug
    if policy := str(given.get("policy") or ""):
        options["policy"] = find_policy(policy)
    return open_suite(str(given.get("suite", "")), **options)


def _limit(limit: object) -> int | None:
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise EvaluationDataError(f"limit {limit!r} is not a positive number.")
    return limit
