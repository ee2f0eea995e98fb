"""Questions that people asked and that somebody labelled: they come before made ones.

An expert's review says what was right to show and what should have been refused; an
evaluation says what its golden set does. Both name entries by what the answer cited, what
the expert marked, or what was written with the review. What names none is left out: whether
another entry answers is not known. So is a label on which two experts disagree.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Final

from django.utils import timezone

from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.evaluation.models import EvaluationResult, EvaluationRun
from qa.evaluation.suites.own import OWN_NAME
from qa.reviews.models import Review

from .choosing import Kind
from .drawing import LIMIT, Label, OwnQuestion, group_of

_READ: Final = 4 * LIMIT
_EVIDENCE: Final = "answer__evidence"


@dataclass(frozen=True, slots=True)
class _Said:
    """That of a question entries of these ids are right; of none: nothing may be shown."""

    answer: Answer
    kind: Kind
    right: frozenset[int]
    weight: float
    at: datetime


def labelled_questions(
    knowledge_base: KnowledgeBase, *, with_evaluation: bool = False
) -> tuple[OwnQuestion, ...]:
    """Return at most `LIMIT` of them, reviews first, the newest before the others.

    A question counts once: by its newest label, and as often as it was drawn.
    """
    everything = labels_of_reviews(knowledge_base)
    if with_evaluation:
        everything += _labels_of_run(knowledge_base)
    ids = {pk for said in everything for pk in said.right}
    rows = Entry.objects.filter(pk__in=ids, state=Entry.State.VERIFIED)
    entries = rows.current(timezone.now()).defer("search_vector").in_bulk()
    found: dict[str, Label] = {}
    for said in everything:
        right = tuple(entries[pk] for pk in sorted(said.right) if pk in entries)
        if said.right and not right:
            continue  # what answered is not there any more
        text = said.answer.question
        if text in found:
            known = found[text]
            found[text] = replace(known, weight=known.weight + said.weight)
        elif len(found) < LIMIT:
            asker = said.answer.asker
            found[text] = Label(said.kind, right, said.weight, said.at, asker)
    return tuple(
        OwnQuestion(
            text,
            label.right[0] if label.right else None,
            group_of(label.right[0]) if label.right else f"question {number}",
            label=label,
        )
        for number, (text, label) in enumerate(found.items())
    )


def labels_of_reviews(knowledge_base: KnowledgeBase) -> list[_Said]:
    """Return what experts judged, newest first, weighted by the strata of their samples.

    Each stands for as many answers as its stratum has for each one labelled of it; one
    requested by hand stands for itself. In all they count as many as they are.
    """
    rows = Review.objects.done().filter(answer__knowledge_base=knowledge_base)
    rows = rows.filter(answer__channel__in=Answer.LIVE_CHANNELS)
    rows = rows.select_related("answer__asker", "stratum").prefetch_related(_EVIDENCE)
    read = rows.order_by("-answer__created_at", "answer_id", "round")[:_READ]
    by_answer = (list(each) for _, each in groupby(read, lambda row: row.answer_id))
    judged = [(each[0], label) for each in by_answer if (label := _of(each))]
    drawn = Counter(first.stratum_id for first, _ in judged)
    labels = [
        replace(label, weight=first.stratum.population / drawn[first.stratum_id])
        if first.stratum
        else label
        for first, label in judged
    ]
    return _normalised(labels)


def _of(reviews: Sequence[Review]) -> _Said | None:
    answer = reviews[0].answer
    is_answer = answer.outcome == Answer.Outcome.ANSWERED
    said = {r.is_right_to_show if is_answer else r.should_be_answered for r in reviews}
    if len(said) > 1:
        return None
    (is_good,) = said
    used = {pk for review in reviews for pk in review.evidence_used}
    right = {piece.entry_id for piece in answer.evidence.all() if piece.pk in used}
    right |= {review.entry_id for review in reviews}
    if is_answer and is_good:
        right |= _cited(answer)
    at = max(review.reviewed_at for review in reviews if review.reviewed_at)
    return _label(
        answer, Kind.REVIEWED, right, at, may_be_none=_may_be_none(answer, is_good)
    )


def _may_be_none(answer: Answer, is_good: bool | None) -> bool:
    """Tell whether nothing may be shown where no right entry is named.

    That is so of a refusal that was right, and of an entry that was shown and was wrong;
    a language model's wrong sentence says nothing of the entries.
    """
    if answer.outcome == Answer.Outcome.ANSWERED:
        return is_good is False and not answer.language_model
    return is_good is False


def _labels_of_run(knowledge_base: KnowledgeBase) -> list[_Said]:
    """Return what the newest finished evaluation of its own questions says."""
    runs = EvaluationRun.objects.filter(
        knowledge_base=knowledge_base,
        suite=OWN_NAME,
        state=EvaluationRun.State.FINISHED,
    )
    newest = runs.order_by("-finished_at", "-pk").first()
    if newest is None or newest.finished_at is None:
        return []
    rows = EvaluationResult.objects.filter(run=newest, answer__isnull=False)
    rows = rows.exclude(is_answerable=None).select_related("answer__asker")
    labels = []
    for row in rows.prefetch_related(_EVIDENCE).order_by("case_id")[:_READ]:
        if row.answer is None:
            continue
        right = _cited(row.answer) if row.is_answerable and row.is_correct else set()
        wrong = row.is_answered and not row.is_correct and not row.answer.language_model
        label = _label(
            row.answer,
            Kind.EVALUATED,
            right,
            newest.finished_at,
            may_be_none=not row.is_answerable or wrong,
        )
        labels += [label] if label else []
    return labels


def _label(
    answer: Answer,
    kind: Kind,
    right: set[int | None],
    at: datetime,
    *,
    may_be_none: bool,
) -> _Said | None:
    known = frozenset(pk for pk in right if pk is not None)
    if not known and not may_be_none:
        return None
    return _Said(answer, kind, known, 1.0, at)


def _cited(answer: Answer) -> set[int | None]:
    return {piece.entry_id for piece in answer.evidence.all() if piece.is_cited}


def _normalised(labels: Iterable[_Said]) -> list[_Said]:
    given = list(labels)
    mean = sum(label.weight for label in given) / max(len(given), 1)
    return [replace(label, weight=label.weight / mean) for label in given]
