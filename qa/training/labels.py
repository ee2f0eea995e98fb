"""Labelled drafts for fitting probes: from files, evaluation runs and reviews."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

from django.db.models import Prefetch
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    ValidationError,
)

from accounts.ids import digest
from kb.types import Evidence
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.models import EvaluationResult, EvaluationRun
from qa.exceptions import TrainingDataError
from qa.pipeline.language_model import Prompt
from qa.pipeline.replay import flat
from qa.reviews.labels import Part, part_of, weights_of
from qa.reviews.models import Review


@dataclass(frozen=True, slots=True)
class LabelledDraft(LabelledAnswer):
    """A language model's prompt, the answer in its draft, and a label.

    `written` is all that the model wrote, including the answer; "" if it was not kept.
    """

    prompt: Prompt
    answer: str
    written: str = ""

    @property
    def is_right(self) -> bool:
        return not self.is_wrong_if_shown

    @property
    def content(self) -> str:
        """The digest of prompt and answer, 64 hex digits."""
        pieces = [(piece.question, piece.text) for piece in self.prompt.evidence]
        said = [self.prompt.question, pieces, self.answer]
        return digest(json.dumps(said))


def drawn_together(sources: Iterable[Iterable[LabelledDraft]]) -> list[LabelledDraft]:
    """Merge the drafts of several sources, keeping the first of equal content."""
    found: dict[str, LabelledDraft] = {}
    for drafts in sources:
        for draft in drafts:
            found.setdefault(draft.content, draft)
    return list(found.values())


def digest_of(drafts: Iterable[LabelledDraft]) -> str:
    return digest(*sorted(f"{d.content} {d.is_right:d} {d.group}" for d in drafts))


def piece_of(
    question: str, text: str, *, entry: int = 0, revision: int = 0
) -> Evidence:
    return Evidence(
        entry_id=entry,
        revision_id=revision,
        text=text,
        question=question,
        confidence=1.0,
        is_verified=True,
        distance=0.0,
        vector_rank=None,
        text_rank=None,
        score=0.0,
        document_title="",
        section="",
        verified_at=None,
        valid_until=None,
    )


def finite(signals: Mapping[str, object]) -> dict[str, float | None]:
    return {
        name: float(value) if isinstance(value, int | float) else None
        for name, value in signals.items()
    }


# The JSON Lines format of labelled drafts: docs/reference/labelled-answers.md.
_MAX_FAULTS: Final = 10
_MAX_LINE: Final = 1_000_000
_Text = Annotated[str, StringConstraints(pattern=r"\S")]  # not blank


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Piece(_Strict):
    question: str = ""
    text: _Text


class _Line(_Strict):
    question: _Text
    evidence: Annotated[list[_Piece], Field(min_length=1)]
    answer: _Text
    is_right: bool
    group: _Text
    id: _Text = ""
    signals: dict[str, FiniteFloat | None] = {}
    language: _Text = "en"


def drafts_of_file(file: Path) -> list[LabelledDraft]:
    """Read every line of `file`; a single invalid line makes the whole file invalid."""
    found: dict[str, LabelledDraft] = {}
    faults: list[str] = []
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingDataError(f"{file} cannot be read: {error}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if len(line) > _MAX_LINE:
            faults.append(f"line {number}: it has {len(line):,} characters")
            continue
        try:
            draft = _read_draft(_Line.model_validate_json(line), number)
        except ValidationError as error:
            faults.append(f"line {number}: {_describe(error)}")
            continue
        if draft.id in found:
            faults.append(f"line {number}: the id {draft.id!r} occurs twice")
        found[draft.id] = draft
    if faults:
        more = len(faults) - _MAX_FAULTS
        rest = f"; and {more:,} more" if more > 0 else ""
        raise TrainingDataError(
            f"{file.name} holds {len(faults):,} lines that are not labelled answers: "
            f"{'; '.join(faults[:_MAX_FAULTS])}{rest}."
        )
    return list(found.values())


def _read_draft(line: _Line, number: int) -> LabelledDraft:
    pieces = tuple(piece_of(piece.question, piece.text) for piece in line.evidence)
    return LabelledDraft(
        id=line.id or str(number),
        group=line.group,
        signals=line.signals,
        is_answerable=None,
        is_correct=line.is_right,
        prompt=Prompt(line.question, pieces, line.language),
        answer=line.answer,
    )


def _describe(error: ValidationError) -> str:
    return ", ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'it'}: {fault['msg']}, not "
        f"{fault['input']!r:.80}"
        for fault in error.errors()
    )


def evidence_of(path: str) -> "Prefetch[str]":
    rows = AnswerEvidence.objects.select_related("revision").order_by("rank")
    return Prefetch(path, queryset=rows)


def prompt_of(answer: Answer) -> Prompt:
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
    said = answer.generation
    text: str = said.get("short_answer") or said.get("answer") or ""
    return text if text.strip() else ""


# Labelled drafts of live answers: labels come from experts' reviews, never from votes.
_ROWS_AT_ONCE = 500


def drafts_of_reviews(
    part: Part, *, language_model: str | None = None
) -> Iterator[LabelledDraft]:
    """Yield the reviewed drafts of one part, oldest first.

    An answer is right if an expert found it right to show. The draft of a refusal is
    wrong if an expert judged the refusal right. Drafts of wrong refusals, which nobody
    judged, and those on which experts disagree are left out.

    Args:
        part: The part of the reviews: training or golden.
        language_model: A fingerprint that limits the drafts to those of one model.
    """
    rows = Review.objects.teaching().exclude(answer__channel=Answer.Channel.EVALUATION)
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


def weights_of_drafts(drafts: Iterable[LabelledDraft]) -> dict[str, float]:
    """Return by draft id how many answers each reviewed draft stands for; mean 1."""
    ids = [draft.id for draft in drafts]
    first = (
        Review.objects.done()
        .filter(answer__in=[UUID(each) for each in ids])
        .order_by("answer_id", "round")
    )
    found = list(first.distinct("answer_id").select_related("stratum"))
    return {
        str(review.answer_id): weight
        for review, weight in zip(found, weights_of(found), strict=True)
    }


def judged_since(
    drafts: Iterable[LabelledDraft], moment: datetime
) -> list[LabelledDraft]:
    """Return the reviewed drafts that nobody had judged at that moment.

    Anything fitted on reviews by then cannot have seen them.
    """
    found = list(drafts)
    judged = Review.objects.done().filter(
        answer__in=[UUID(draft.id) for draft in found], reviewed_at__lte=moment
    )
    before = {str(key) for key in judged.values_list("answer_id", flat=True)}
    return [draft for draft in found if draft.id not in before]


def draft_of_reviews(reviews: list[Review]) -> LabelledDraft | None:
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
        written=answer.generation.get("raw", ""),
    )


def _is_right(review: Review) -> bool | None:
    if review.answer.outcome == Answer.Outcome.ANSWERED:
        return review.is_right_to_show
    return False if review.should_be_answered is False else None


def drafts_of_runs(
    runs: Sequence[int], *, language_model: str | None = None
) -> Iterator[LabelledDraft]:
    """Yield every judged draft of these runs, including refused ones.

    Questions without a draft (hard refusals, word-for-word answers) are skipped.

    Raises:
        TrainingDataError: A run is unknown, unfinished, or of another language model
            than the given fingerprint.
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
                f"Run {number} ({run}) is not finished; resume it first: "
                "manage.py evaluate."
            )
        if language_model is not None and run.language_model != language_model:
            raise TrainingDataError(
                f"Run {number} was answered by the language model "
                f"{run.language_model[:12] or 'none'}, but {language_model[:12]} is "
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
        written=answer.generation.get("raw", ""),
    )
