"""An expert's judgement of an answer: validated, stored, and exported as CSV."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import QuerySet

from accounts.roles import Role, has_role_in
from kb.conflicts.background import enqueue_entries
from kb.entries.models import Entry
from kb.entries.services import edit_entry
from kb.text import cleaning as spreadsheet_cells
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.answers.submitted_text import EntryOptions, checked_text, create_reviewed_entry
from qa.exceptions import InvalidReviewError
from qa.policies.services import active_policy
from qa.reviews.models import Review
from qa.votes.services import newest

IDEAL_LIMIT = 8_000
NOTE_LIMIT = 2_000
GRADES: Final = ("completeness", "correctness", "truthfulness")


@dataclass(frozen=True, slots=True)
class Correction:
    """A new text for an entry; without `revision`, it overwrites any later edit."""

    entry: int
    text: str
    revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """An expert's judgement of an answer or a refusal.

    Attributes:
        completeness: 0 no, 1 partly, 2 yes; only for an answer, like the next two.
        should_be_answered: Only for a refusal: whether it was a false one.
        evidence_used: Ids of the pieces of evidence that support the right answer.
        knowledge: How the ideal answer is added as an entry, or which entry is edited.
    """

    completeness: int | None = None
    correctness: int | None = None
    truthfulness: int | None = None
    should_be_answered: bool | None = None
    evidence_used: Sequence[int] = ()
    ideal_answer: str = ""
    note: str = ""
    knowledge: EntryOptions | Correction | None = None


def apply_judgement(review: Review, judgement: Judgement, *, by: User) -> None:
    """Set the judgement on the review, without saving it, and write its entry.

    Raises:
        InvalidReviewError: Something is missing or does not apply.
    """
    answer = review.answer
    is_answer = answer.outcome == Answer.Outcome.ANSWERED
    for name in GRADES:
        grade = getattr(judgement, name)
        if is_answer != (grade in Review.Grade.values):
            raise InvalidReviewError(_grade_wanted(name, grade, is_answer=is_answer))
        setattr(review, name, grade)
    if is_answer == (judgement.should_be_answered is not None):
        raise InvalidReviewError(
            "Whether it should have been answered applies only to refusals."
            if is_answer
            else "State whether the question should have been answered."
        )
    review.should_be_answered = judgement.should_be_answered
    ideal = checked_text(
        "ideal answer", judgement.ideal_answer, IDEAL_LIMIT, InvalidReviewError
    )
    review.ideal_answer = ideal
    review.note = checked_text("note", judgement.note, NOTE_LIMIT, InvalidReviewError)
    pieces = {piece.pk: piece for piece in AnswerEvidence.objects.filter(answer=answer)}
    unknown = sorted(set(judgement.evidence_used) - pieces.keys())
    if unknown:
        raise InvalidReviewError(
            f"Evidence {unknown[0]} does not belong to this answer; mark only its own."
        )
    review.evidence_used = sorted(set(judgement.evidence_used))
    review.falls_short = is_answer and _falls_short(review, pieces)
    entry = _write_entry(review, judgement, pieces, by)
    if entry is not None:
        review.entry = entry


def _falls_short(review: Review, pieces: dict[int, AnswerEvidence]) -> bool:
    """Return whether an answer falls short of what the active policy requires."""
    policy = active_policy(review.answer.knowledge_base)
    is_incomplete = review.completeness != Review.Grade.WHOLLY
    marked = [pieces[pk] for pk in review.evidence_used]
    is_by_other = bool(marked) and not any(piece.is_cited for piece in marked)
    return (policy.completeness_counts and is_incomplete) or (
        policy.marked_evidence_counts and is_by_other
    )


def _grade_wanted(name: str, grade: int | None, *, is_answer: bool) -> str:
    if not is_answer:
        return f"A refusal has no {name}; state whether it should have been answered."
    if grade is None:
        return f"The {name} is missing; grade it 0 (no), 1 (partly) or 2 (yes)."
    return f"The {name} {grade} is not one of 0 (no), 1 (partly) and 2 (yes)."


def _write_entry(
    review: Review, judgement: Judgement, pieces: dict[int, AnswerEvidence], by: User
) -> Entry | None:
    answer, knowledge = review.answer, judgement.knowledge
    reason = f"Review {review.pk} of an answer of {answer.created_at:%Y-%m-%d}."
    if isinstance(knowledge, EntryOptions):
        if not review.ideal_answer:
            raise InvalidReviewError(
                "The entry would be empty: write the ideal answer, or do not add one."
            )
        return create_reviewed_entry(
            knowledge,
            author=by,
            error=InvalidReviewError,
            knowledge_base=answer.knowledge_base,
            question=answer.question,
            text=review.ideal_answer,
            product_line=answer.product_line,
            line_of_business=answer.line_of_business,
            reason=reason,
        )
    if isinstance(knowledge, Correction):
        found = {piece.entry_id for piece in pieces.values()}
        mine = Entry.objects.visible_to(by).filter(pk=knowledge.entry)
        if knowledge.entry not in found or not mine.exists():
            raise InvalidReviewError(
                f"Entry {knowledge.entry} was not found for this question; edit it on "
                "its own page."
            )
        entry = edit_entry(
            entry_id=knowledge.entry,
            author=by,
            may_verify=has_role_in(by, Role.CURATOR, answer.knowledge_base_id),
            least=Role.SME,
            expected_revision=knowledge.revision,
            reason=reason,
            text=knowledge.text,
        )
        enqueue_entries([entry.pk])
        return entry
    return None


# Judgements as a table, also for training and estimates outside this system: each
# column with the attribute of a review that it holds.
COLUMNS: Final = {
    "review": "pk", "round": "round", "answer": "answer.pk",
    "knowledge_base": "answer.knowledge_base.slug", "question": "answer.question",
    "outcome": "answer.outcome", "gate": "answer.gate", "text": "answer.text",
    "completeness": "completeness", "correctness": "correctness",
    "truthfulness": "truthfulness", "right_to_show": "is_right_to_show",
    "should_be_answered": "should_be_answered", "evidence_used": "evidence_used",
    "ideal_answer": "ideal_answer", "note": "note", "entry": "entry_id",
    "sample": "stratum.sample_id", "stratum": "stratum.pk",
    "stratum_population": "stratum.population", "stratum_drawn": "stratum.drawn",
    "reviewed_by": "reviewed_by.username", "reviewed_at": "reviewed_at",
    "seconds_spent": "seconds_spent", "asked_at": "answer.created_at",
}  # fmt: skip


def csv_lines(reviews: QuerySet[Review]) -> Iterator[str]:
    """Yield the header and one line per judgement, newest first.

    Cells are escaped so that a spreadsheet runs none as a formula.

    Args:
        reviews: Done ones of `Review.objects.visible_to`, with their answers, knowledge
            bases, strata and reviewers.
    """
    lines = (
        [_cell(review, path) for path in COLUMNS.values()] for review in newest(reviews)
    )
    return spreadsheet_cells.csv_lines(chain([list(COLUMNS)], lines))


def _cell(review: Review, path: str) -> str:
    value: Any = review
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)
