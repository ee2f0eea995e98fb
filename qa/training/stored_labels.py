"""What a stored answer holds of a draft: what was read, and what was written."""

import hashlib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby

from django.db.models import Prefetch

from qa.answers.models import Answer, AnswerEvidence
from qa.evaluation.models import EvaluationResult, EvaluationRun
from qa.exceptions import TrainingDataError
from qa.pipeline.language_model import Prompt
from qa.pipeline.replay import flat
from qa.reviews.models import Review

from .labels import LabelledDraft, finite, piece_of


def evidence_of(path: str) -> "Prefetch[str]":
    """Return what fetches the evidence of the answer at `path`, for `prompt_of`."""
    rows = AnswerEvidence.objects.select_related("revision").order_by("rank")
    return Prefetch(path, queryset=rows)


def prompt_of(answer: Answer) -> Prompt:
    """Return the question and the evidence as the model read them."""
    pieces = tuple(
        piece_of(
            piece.revision.question,
            piece.revision.text,
            entry=piece.entry_id,
            revision=piece.revision_id,
        )
        for piece in answer.evidence.all()
        if piece.revision and piece.entry_id and piece.revision_id
    )
    return Prompt(answer.question, pieces, answer.language)


def text_of(answer: Answer) -> str:
    """Return the words of the draft that answer; "" where none was written."""
    said = answer.generation
    text: str = said.get("short_answer") or said.get("answer") or ""
    return text if text.strip() else ""


# Labelled drafts of live answers: what experts said of them in reviews, never votes.


GOLDEN_PERCENT = 25
_ROWS_AT_ONCE = 500


class Part(StrEnum):
    """What labels are used for."""

    TRAINING = "training"
    GOLDEN = "golden"


def part_of(group: str) -> Part:
    """Return the part that answers of this group fall into."""
    share = int(hashlib.sha256(group.encode()).hexdigest()[:8], 16) % 100
    return Part.GOLDEN if share < GOLDEN_PERCENT else Part.TRAINING


def drafts_of_reviews(
    part: Part, *, language_model: str | None = None
) -> Iterator[LabelledDraft]:
    """Yield every reviewed draft of one part, oldest first.

    An answer is right if an expert found it wholly correct and true to its evidence. The
    draft of a refusal is wrong if an expert said that it was rightly refused; where it
    should have been answered nobody said whether this draft does, and it is left out. So
    is one on which two experts do not agree.

    Args:
        part: Which part is wanted.
        language_model: Fingerprint that must have written them; None takes any.
    """
    rows = Review.objects.done().exclude(answer__channel=Answer.Channel.EVALUATION)
    if language_model is not None:
        rows = rows.filter(answer__language_model=language_model)
    rows = rows.select_related("answer").order_by("answer_id", "pk")
    rows = rows.prefetch_related(evidence_of("answer__evidence"))
    for _, each in groupby(
        rows.iterator(_ROWS_AT_ONCE), key=lambda review: review.answer_id
    ):
        draft = draft_of_reviews([*each])
        if draft is not None and part_of(draft.group) is part:
            yield draft


def draft_of_reviews(reviews: list[Review]) -> LabelledDraft | None:
    """Return one answer's draft as its reviews label it; None where they do not.

    Args:
        reviews: All that are done of the answer, at least one.
    """
    answer = reviews[0].answer
    text, prompt = text_of(answer), prompt_of(answer)
    said = {_is_right(review) for review in reviews}
    if not text or not prompt.evidence or len(said) != 1:
        return None
    (is_right,) = said
    if is_right is None:
        return None
    return LabelledDraft(
        id=str(answer.pk),
        group=f"entry {prompt.evidence[0].entry_id}",
        signals=finite(flat(answer.signals)),
        is_answerable=None,
        is_correct=is_right,
        prompt=prompt,
        answer=text,
    )


def _is_right(review: Review) -> bool | None:
    if review.answer.outcome == Answer.Outcome.ANSWERED:
        return review.is_right_to_show
    return False if review.should_be_answered is False else None


# Labelled drafts of evaluation runs: asked, answered and judged in the database.


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
