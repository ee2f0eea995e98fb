"""Runs of suites, also as jobs; stored by question, so that a killed one resumes.

A run is identified by suite and parameters (including the data's digest), the policy's
thresholds and the models' fingerprints.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from accounts.ids import digest
from jobs.run import JobRun
from kb.embedding.services import active_model
from kb.search import METHOD
from qa.answers.sources import active_probes
from qa.evaluation.models import EvaluationResult, EvaluationRun
from qa.evaluation.suites.options import SuiteOptions, find_policy
from qa.evaluation.suites.registry import open_suite
from qa.exceptions import EvaluationBusyError, EvaluationDataError
from qa.policies.models import Policy

from .cases import LabelledAnswer
from .judging import Judged, Suite, thresholds_of
from .question_suite import considered_of

KIND = "qa.evaluate"

_LOCKS = 0x4E455343  # the class of this module's advisory locks
_PATIENCE_SECONDS = 10.0
# Columns, in the order of the fields of `LabelledAnswer` and `Judged`.
_LABELLED = ("case_id", "group", "signals", "is_answerable", "is_correct")
_DECIDED = (
    "is_answered", "gate", "reason", "measures", "milliseconds", "model_milliseconds",
    "answer_id",
)  # fmt: skip


def begin(
    suite: Suite, *, by: AbstractBaseUser | None = None, anew: bool = False
) -> EvaluationRun:
    """Return the suite's unfinished run, or a new one if there is none or if `anew`."""
    model, probes = _models_of(suite)
    made_with = {
        "suite": suite.name,
        "parameters": dict(suite.parameters),
        "embedder": active_model().fingerprint,
        "language_model": model,
        "retrieval": METHOD,
        "probes": probes,
    }
    identity = {**made_with, "policy": thresholds_of(suite.policy)}
    key = digest(json.dumps(identity, sort_keys=True))
    rows = EvaluationRun.objects.filter(state=EvaluationRun.State.RUNNING)
    with transaction.atomic():
        if anew:
            rows.filter(key=key).delete()
        run, _ = rows.get_or_create(
            key=key,
            defaults={
                **made_with,
                "state": EvaluationRun.State.RUNNING,
                "protocol": suite.protocol,
                "knowledge_base": suite.knowledge_base,
                "policy": suite.policy,
                "total": len(suite.case_ids),
                "started_by": by if isinstance(by, User) else None,
            },
        )
    return run


def go_on(
    run: EvaluationRun,
    suite: Suite,
    *,
    writing: Callable[[], AbstractContextManager[None]] = transaction.atomic,
) -> Generator[Judged]:
    """Ask the questions without a result; yield each one once it is stored.

    A result is stored with its answer in one transaction, opened by `writing`.
    """
    with _alone(run):
        done = set(run.results.values_list("case_id", flat=True))
        waiting = [case_id for case_id in suite.case_ids if case_id not in done]
        for considered in considered_of(suite, waiting):
            with writing():
                considered.write()
                _store(run, considered.judged)
            yield considered.judged


def finish(run: EvaluationRun) -> EvaluationRun:
    """Finish a run that has asked everything; its report leaves out single results."""
    rows = judged_of(run)
    if len(rows) < run.total:
        raise EvaluationDataError(
            f"The run has asked {len(rows):,} of its {run.total:,} questions; resume "
            "it first."
        )
    report = report_of(run, rows)
    report.pop("results", None)
    run.report = report
    run.state = EvaluationRun.State.FINISHED
    run.finished_at = timezone.now()
    run.save(update_fields=["report", "state", "finished_at"])
    return run


def report_of(run: EvaluationRun, rows: list[Judged]) -> dict[str, Any]:
    # Imported lazily: a process that only asks needs no statistics.
    from qa.evaluation.report.build import build_report  # noqa: PLC0415

    policy = run.policy.as_value() if run.policy else None
    return build_report(rows, policy=policy)


def judged_of(run: EvaluationRun) -> list[Judged]:
    rows = run.results.order_by("pk").values_list(*_LABELLED, *_DECIDED)
    return [Judged(*row) for row in rows]


def labelled_of(run: EvaluationRun) -> list[LabelledAnswer]:
    rows = run.results.order_by("case_id").values_list(*_LABELLED)
    return [LabelledAnswer(*row) for row in rows]


def _store(run: EvaluationRun, judged: Judged) -> None:
    columns = asdict(judged)
    case_id = columns.pop("id")
    EvaluationResult.objects.create(run=run, case_id=case_id, **columns)


def _models_of(suite: Suite) -> tuple[str, str]:
    if suite.policy is None:
        return "", ""
    # Imported lazily: it loads torch, which a suite without a model doesn't need.
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    model = load_language_model()
    return model.fingerprint, active_probes(model).fingerprints


@contextmanager
def _alone(run: EvaluationRun) -> Iterator[None]:
    """Lock the run against other processes; released however this process ends."""
    # The lock belongs to its connection, so use one that nobody else closes.
    held = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        _lock(held, run)
        try:
            yield
        finally:
            with held.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCKS, run.pk])
    finally:
        held.close()


def _lock(held: BaseDatabaseWrapper, run: EvaluationRun) -> None:
    """Take the run's lock, waiting a little for a process that was just killed."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with held.cursor() as cursor:
        while True:
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCKS, run.pk])
            if cursor.fetchone()[0]:
                return
            if time.monotonic() > deadline:
                raise EvaluationBusyError(
                    f"Another process is working on the run of {run.suite} that "
                    f"started at {run.started_at:%H:%M}; wait for it or stop it."
                )
            time.sleep(0.1)


def evaluate_in_background(run: JobRun) -> dict[str, object]:
    """Ask a suite's questions and return the report, without its single results.

    The parameters are `suite` and, as in the command, `data`, `limit`, `seed`,
    `shadow`, `policy` (or `policy_id`) and `knowledge_base`. Each question's rows and
    the job's progress are written in one step, so an interrupted run resumes after the
    last one.
    """
    suite = _suite(run)
    evaluation = _evaluation(run, suite)
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


def _evaluation(run: JobRun, suite: Suite) -> EvaluationRun:
    found = EvaluationRun.objects.filter(
        pk=run.cursor.get("run", 0), state=EvaluationRun.State.RUNNING
    ).first()
    if found:
        return found
    with run.step() as step:
        begun = begin(suite, by=run.owner)
        step.advance(total=begun.total, cursor={"run": begun.pk})
    return begun


def _suite(run: JobRun) -> Suite:
    def loading(done: int, total: int) -> None:
        # An empty step stops a cancelled job here; what is loaded stays.
        with run.step():
            pass

    given = run.parameters
    options = SuiteOptions(
        limit=_limit(given.get("limit")),
        seed=int(given.get("seed") or 0),
        shadow=given.get("shadow") is True,
        loading=loading,
        by=run.owner,
    )
    if data := str(given.get("data") or ""):
        options["data"] = Path(data)
    if slug := str(given.get("knowledge_base") or ""):
        options["knowledge_base"] = slug
    if policy := str(given.get("policy") or ""):
        options["policy"] = find_policy(policy)
    elif version := given.get("policy_id"):
        options["policy"] = Policy.objects.get(pk=version)
    return open_suite(str(given.get("suite", "")), **options)


def _limit(limit: object) -> int | None:
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise EvaluationDataError(f"limit {limit!r} is not a positive number.")
    return limit
