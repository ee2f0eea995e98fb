"""Runs: every question counted once, whatever breaks off in between."""

import sys
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, connections

from accounts.exceptions import UnavailableError
from qa.evaluation.runs import begin, finish, go_on, judged_of
from qa.evaluation.suites.registry import open_suite
from qa.exceptions import EvaluationBusyError, EvaluationDataError
from qa.models import Answer, AnswerEvidence, EvaluationResult, EvaluationRun
from qa.pipeline.language_model import Confidence
from qa.policies.services import activate, active_policy, new_version
from tests.factories import make_entry, make_user
from tests.qa.evaluation import data_sets
from tests.qa.pipeline.values import PROBES, GivenProbes
from tests.workers.processes import Process, environment_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def opened(tmp_path):
    """Open the suite over the small data set as often as a test likes."""
    data_sets.squad2(tmp_path)

    def again(**options):
        return open_suite("squad2", data=tmp_path, **{"shadow": True, **options})

    return again


def test_a_run_that_broke_off_goes_on_behind_its_last_question(opened):
    suite = opened()
    run = begin(suite, by=make_user())
    asked = go_on(run, suite)
    first = [next(asked).id for _ in range(3)]
    asked.close()
    answers = set(Answer.objects.values_list("pk", flat=True))

    again = begin(opened())
    rest = [judged.id for judged in go_on(again, opened())]

    assert again == run
    assert [*first, *rest] == list(suite.case_ids)
    assert Answer.objects.count() == EvaluationResult.objects.count() == 7
    assert answers < set(Answer.objects.values_list("pk", flat=True))
    finished = finish(again)
    assert finished.state == "finished"
    assert finished.report["questions"] == 7
    assert "results" not in finished.report


def test_a_question_whose_result_cannot_be_written_leaves_no_answer(opened):
    suite = opened(limit=3)
    run = begin(suite)
    # What stands in the way of the second question's result.
    second = suite.case_ids[1]

    def in_the_way():
        EvaluationResult.objects.create(
            run=run, case_id=second, is_answered=False, milliseconds=0
        )

    asked = go_on(run, suite)
    next(asked)
    in_the_way()
    with pytest.raises(Exception, match="evaluation_result_once"):
        next(asked)

    assert Answer.objects.count() == 1
    assert AnswerEvidence.objects.exclude(answer__in=Answer.objects.all()).count() == 0
    assert [judged.id for judged in go_on(run, suite)] == [suite.case_ids[2]]


def test_a_model_that_is_down_stops_the_run_and_keeps_what_was_asked(opened):
    suite = opened(limit=4)
    run = begin(suite)
    calls = iter([None, None])

    def load():
        from qa.inference.configured import load_language_model

        if next(calls, "down") == "down":
            raise UnavailableError("The model is down.")
        return load_language_model()

    suite.language_model = load
    with pytest.raises(UnavailableError):
        list(go_on(run, suite))

    assert EvaluationResult.objects.count() == Answer.objects.count() == 2
    with pytest.raises(EvaluationDataError, match="2 of its 4"):
        finish(run)
    suite.language_model = None
    assert len(list(go_on(run, suite))) == 2


def test_rows_are_read_back_as_they_were_judged(opened):
    suite = opened(limit=3)
    run = begin(suite)

    judged = list(go_on(run, suite))

    assert judged_of(run) == judged
    assert all(row.milliseconds >= row.model_milliseconds > 0 for row in judged)
    answers = {answer.pk: answer for answer in Answer.objects.all()}
    for row in judged:
        assert row.answer_id is not None
        stored = {s["name"]: s["value"] for s in answers[row.answer_id].signals}
        assert stored == row.signals


def test_looking_ahead_changes_no_answer(opened):
    suite = opened()

    ahead = {c.judged.id: c.judged for c in suite.consider(suite.case_ids)}
    alone = {case_id: suite.judge(case_id) for case_id in suite.case_ids}

    for case_id, judged in ahead.items():
        assert judged.signals == alone[case_id].signals
        assert judged.is_correct == alone[case_id].is_correct


@pytest.mark.parametrize("change", ["limit", "seed", "policy", "knowledge"])
def test_what_is_asked_or_decides_otherwise_is_another_run(opened, change):
    first = begin(opened(limit=3))
    suite = opened(limit=3)
    if change == "knowledge":
        make_entry("Otto is green.", knowledge_base=suite.knowledge_base)
        suite = opened(limit=3)
    elif change == "policy":
        base = active_policy(suite.knowledge_base)
        activate(new_version(base, by=None, alpha=0.7))
        suite = opened(limit=3)
    else:
        suite = opened(**{"limit": 3, change: 2})

    assert begin(suite) != first
    assert EvaluationRun.objects.count() == 2


def test_a_run_is_of_the_probes_that_are_in_force(opened, monkeypatch):
    suite = opened(limit=2)
    without = begin(suite)
    given = GivenProbes(Confidence(probes=PROBES))
    monkeypatch.setattr("qa.evaluation.runs.active_probes", lambda _model: given)

    run = begin(suite)

    assert run != without
    assert (without.probes, run.probes) == ("", PROBES)


def test_anew_starts_over(opened):
    suite = opened(limit=2)
    first = begin(suite)
    next(go_on(first, suite))

    second = begin(suite, anew=True)

    assert second.pk != first.pk
    assert not EvaluationResult.objects.exists()
    assert EvaluationRun.objects.get() == second


def test_a_finished_run_is_not_gone_on_with(opened):
    suite = opened(limit=1)
    first = begin(suite)
    list(go_on(first, suite))
    finish(first)

    assert begin(suite) != first


def test_two_processes_do_not_ask_for_the_same_run(opened, monkeypatch):
    monkeypatch.setattr("qa.evaluation.runs._PATIENCE_SECONDS", 0.2)
    suite = opened(limit=2)
    run = begin(suite)
    asked = go_on(run, suite)
    next(asked)

    with pytest.raises(EvaluationBusyError):
        next(go_on(run, suite))

    asked.close()
    assert len(list(go_on(run, suite))) == 1


def test_a_question_costs_as_many_statements_late_in_a_run_as_early(opened):
    suite = opened()
    run = begin(suite)
    asked = go_on(run, suite)
    next(asked)
    counts = []
    for _ in range(5):
        before = len(connection.queries_log)
        connection.force_debug_cursor = True
        next(asked)
        counts.append(len(connection.queries_log) - before)
    connection.force_debug_cursor = False
    asked.close()

    # BEGIN and COMMIT count; one more where a piece of evidence is written, or the like.
    assert max(counts) <= 12
    assert counts[-1] <= counts[0] + 2


@pytest.mark.system
def test_a_killed_command_goes_on_and_judges_every_question_once(tmp_path):
    data_sets.squad2(tmp_path)
    command = (
        sys.executable, "manage.py", "evaluate", "squad2", "--data", str(tmp_path),
        "--shadow",
    )  # fmt: skip
    log = tmp_path / "log"

    def start():
        environment = environment_of(settings.VAR_DIR, settings.CELERY_BROKER_URL)
        return Process(command, log, environment)

    process = start()
    try:
        wait_for_results(2, log)
    finally:
        process.kill_group()
    done = EvaluationResult.objects.count()
    process = start()
    try:
        assert process.stop(number=0) == 0, log.read_text()
    finally:
        process.end()

    assert 2 <= done < 7
    run = EvaluationRun.objects.get()
    assert (run.state, run.results.count()) == ("finished", 7)
    assert "Resuming the run of" in log.read_text()
    # Not one answer more than results: a kill leaves both or neither.
    answers = Answer.objects.values_list("pk", flat=True)
    assert sorted(answers) == sorted(run.results.values_list("answer_id", flat=True))
    assert set(Answer.objects.values_list("outcome", flat=True)) == {"answered"}
    connections.close_all()


def wait_for_results(count: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while EvaluationResult.objects.count() < count:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
