"""Questions that people asked and that somebody labelled: they come before made ones.

An expert's review says what was right to show and what should have been refused
(`qa.reviews.labels`); an evaluation says what its own questions do, by what it cited.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.evaluation.models import EvaluationResult, EvaluationRun
from qa.evaluation.suites.own import OWN_NAME
from qa.reviews.labels import EVIDENCE, MAX_READ, cited_entries, reviewed_questions

from .choosing import Kind
from .drawing import LIMIT, Label, OwnQuestion, group_of


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
    everything = [
        _Said(each.answer, Kind.REVIEWED, each.right, each.weight, each.at)
        for each in reviewed_questions(knowledge_base)
    ]
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
    rows = EvaluationResult.objects.filter(
        run=newest, answer__isnull=False, answer__erased_at__isnull=True
    )
    rows = rows.exclude(is_answerable=None).select_related("answer__asker")
    labels = []
    for row in rows.prefetch_related(EVIDENCE).order_by("case_id")[:MAX_READ]:
        if row.answer is None:
            continue
        cited = cited_entries(row.answer)
        right = cited if row.is_answerable and row.is_correct else set()
        wrong = row.is_answered and not row.is_correct and not row.answer.language_model
        if right or not row.is_answerable or wrong:
            known, at = frozenset(right), newest.finished_at
            labels.append(_Said(row.answer, Kind.EVALUATED, known, 1.0, at))
    return labels
