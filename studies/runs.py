"""Evaluation runs that studies read their figures from."""

from qa.evaluation.judging import Suite
from qa.evaluation.models import EvaluationRun
from qa.evaluation.runs import begin, finish, go_on
from studies.study import OnProgress


def finished_run(
    suite: Suite, on_progress: OnProgress, *, anew: bool = False
) -> EvaluationRun:
    """Return a finished run of the suite: an earlier, a continued or a new one."""
    run = begin(suite, anew=anew)
    finished = EvaluationRun.objects.filter(
        key=run.key, state=EvaluationRun.State.FINISHED
    ).first()
    done = run.results.count()
    if finished and not done and not anew:
        run.delete()
        return finished
    label = f"{suite.name} {suite.parameters.get('ratio') or ''}"
    on_progress(label, done, run.total)
    for number, _ in enumerate(go_on(run, suite), start=done + 1):
        on_progress(label, number, run.total)
    return finish(run)
