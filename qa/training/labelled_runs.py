"""Labelled drafts of evaluation runs: asked, answered and judged in the database."""

from collections.abc import Iterator, Sequence

from qa.exceptions import TrainingDataError
from qa.models import Answer, EvaluationResult, EvaluationRun

from .labelled import LabelledDraft, finite
from .stored_answers import evidence_of, prompt_of, text_of

_ROWS_AT_ONCE = 500


def drafts_of_runs(
    runs: Sequence[int], *, language_model: str | None = None
) -> Iterator[LabelledDraft]:
    """Yield every judged draft of these runs.

    Refused ones too: a draft that a gate kept back was judged all the same. Questions
    without a draft (hard refusals, word-for-word answers) teach nothing here.

    Args:
        runs: Ids of finished evaluation runs.
        language_model: Fingerprint that must have written them; None takes any.

    Raises:
        TrainingDataError: A run is not there, not finished, or another model's.
    """
    for run in _checked(runs, language_model):
        rows = EvaluationResult.objects.filter(run=run, is_correct__isnull=False)
        written = rows.exclude(answer=None).order_by("pk").select_related("answer")
        for row in written.prefetch_related(evidence_of("answer__evidence")).iterator(
            _ROWS_AT_ONCE
        ):
            if row.answer is not None and (draft := _draft(row, row.answer)):
                yield draft


def _checked(runs: Sequence[int], language_model: str | None) -> list[EvaluationRun]:
    found = EvaluationRun.objects.in_bulk(list(runs))
    for number in runs:
        run = found.get(number)
        if run is None:
            latest = EvaluationRun.objects.values_list("pk", flat=True)[:10]
            known = ", ".join(map(str, latest)) or "none yet"
            raise TrainingDataError(f"There is no run {number}; the latest: {known}.")
        if run.state != EvaluationRun.State.FINISHED:
            raise TrainingDataError(
                f"Run {number} ({run}) is not finished; go on with it first: "
                "manage.py evaluate."
            )
        if language_model is not None and run.language_model != language_model:
            raise TrainingDataError(
                f"Run {number} was answered by the language model "
                f"{run.language_model[:12] or 'none'} and {language_model[:12]} is "
                "running; ask the suite again, or train on others' answers with "
                "--any-model."
            )
    return [found[number] for number in dict.fromkeys(runs)]


def _draft(row: EvaluationResult, answer: Answer) -> LabelledDraft | None:
    text = text_of(answer)
    if not text:
        return None
    return LabelledDraft(
        id=f"{row.run_id}:{row.case_id}",
        group=row.group,
        signals=finite(row.signals),
        is_answerable=row.is_answerable,
        is_correct=row.is_correct,
        prompt=prompt_of(answer),
        answer=text,
    )
