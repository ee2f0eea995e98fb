"""Evaluating as a background job of the kind "qa.evaluate"."""

from uuid import UUID

from jobs.run import JobRun
from qa.exceptions import EvaluationDataError
from qa.models import Answer
from qa.services.asking import decide

from .cases import Case
from .report.cases import as_json
from .results import result_of
from .suites import Suite, open_suite

_OPEN = (Answer.Outcome.PENDING, Answer.Outcome.FAILED)


def evaluate_in_background(run: JobRun) -> dict[str, object]:
    """Ask a suite's questions and return the report.

    The parameters are `suite`, and `limit` for the first so many questions. Each question
    is kept in the step that remembers it, and decided after it: whatever happens in
    between, the run that goes on decides that very question and asks none twice.

    Raises:
        EvaluationDataError: The parameters are wrong, or the suite can't be asked here.
    """
    suite = open_suite(str(run.parameters.get("suite", "")))
    cases = suite.cases[: _limit(run)]
    answers = [_decided(run, suite, case, len(cases)) for case in cases]
    with run.step() as step:
        step.advance(done=len(cases), total=len(cases))
    results = [
        result_of(case, answer, key_of=suite.key_of, seconds=_seconds(answer))
        for case, answer in zip(cases, answers, strict=True)
    ]
    return as_json(str(run.parameters["suite"]), results)


def _decided(run: JobRun, suite: Suite, case: Case, total: int) -> Answer:
    asked: dict[str, str] = run.cursor.get("answers", {})
    if case.id not in asked:
        with run.step() as step:
            kept = suite.keep(case)
            asked = {**asked, case.id: str(kept.pk)}
            # The one that is kept now is not done yet.
            step.advance(done=len(asked) - 1, total=total, cursor={"answers": asked})
    answer = Answer.objects.get(pk=UUID(asked[case.id]))
    if answer.outcome in _OPEN:
        for _ in decide(answer):
            pass
    return answer


def _limit(run: JobRun) -> int | None:
    limit = run.parameters.get("limit")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise EvaluationDataError(f"limit {limit!r} is not a positive number.")
    return limit


def _seconds(answer: Answer) -> float:
    stages: dict[str, float] = answer.milliseconds
    return sum(ms for stage, ms in stages.items() if "." not in stage) / 1000
