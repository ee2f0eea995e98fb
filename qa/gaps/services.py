"""An expert's work on a gap: view, assign, fill, dismiss and reopen it."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.exceptions import ForbiddenError
from accounts.people import person_name
from accounts.roles import Role, has_role_in
from accounts.undo import ChangedSinceError, take_back_each, undoes
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.enrichment.background import SEED_LIMIT, checked, start_enrichment
from kb.enrichment.proposals import Plan, proposed_keys, question_key
from kb.entries.models import Entry
from kb.entries.wordings import confirm_question
from kb.exceptions import EntryRetiredError
from qa.answers.models import Answer, readable_reason
from qa.answers.submitted_text import EntryOptions, checked_text, create_reviewed_entry
from qa.exceptions import GapClosedError, GapNotFoundError, InvalidGapError
from qa.gaps.models import Gap, GapQuestion, Repeat
from qa.votes.models import Vote

from .escalations import check_free
from .near_entries import nearest_entries
from .repeats import start_asking_again

TEXT_LIMIT: Final = 8_000
REASON_LIMIT: Final = 2_000
_SEEDS: Final = 5
_GAPS_A_NIGHT: Final = 10  # per knowledge base: as many as curators can review in a day
_LOOKED_AT: Final = 100

logger = logging.getLogger(__name__)


@transaction.atomic
def assign(gap_id: int, *, by: User, owner: User | None, take_over: bool = True) -> Gap:
    """Assign a gap to an expert, or to nobody.

    Raises:
        InvalidGapError: The owner is not an expert.
        AssignedElsewhereError: `by` would take it from another, without `take_over`.
    """
    gap = _lock(gap_id, by)
    base = gap.knowledge_base
    if owner is not None and not has_role_in(owner, Role.SME, base.pk):
        raise InvalidGapError(
            f"{owner} is not an expert in {base}; give them the role sme first."
        )
    if owner == by and not take_over:
        check_free(f"Gap {gap_id}", gap.owner, by, base.pk)
    gap.owner = owner
    gap.save(update_fields=["owner"])
    return gap


@transaction.atomic
def draft(
    gap_id: int, *, by: User, text: str, options: EntryOptions, question: str = ""
) -> Gap:
    """Write the answer as an entry; once verified, the questions are asked again.

    Raises:
        InvalidGapError: There is no text.
    """
    gap = _unfilled(gap_id, by)
    said = checked_text("answer", text, TEXT_LIMIT, InvalidGapError)
    if not said:
        raise InvalidGapError("The answer is empty; write what fills the gap.")
    wording = checked_text("question", question, TEXT_LIMIT, InvalidGapError)
    entry = create_reviewed_entry(
        options,
        author=by,
        error=InvalidGapError,
        knowledge_base=gap.knowledge_base,
        question=wording or gap.question,
        text=said,
        reason=f"Fills gap {gap.pk}.",
    )
    return _drafted(gap, entry, by)


@transaction.atomic
def link(gap_id: int, *, by: User, entry_id: int) -> Gap:
    """Link an existing entry that fills the gap, and keep the question as its wording.

    Raises:
        InvalidGapError: There is no such entry in the knowledge base.
        EntryRetiredError: The entry is retired.
    """
    gap = _unfilled(gap_id, by)
    found = Entry.objects.visible_to(by).filter(
        pk=entry_id, knowledge_base=gap.knowledge_base_id
    )
    entry = found.defer("search_vector").first()
    if entry is None:
        raise InvalidGapError(
            f"There is no entry {entry_id} in {gap.knowledge_base.name}; name another."
        )
    if entry.state == Entry.State.RETIRED:
        raise EntryRetiredError(
            f"Entry {entry_id} is retired; restore it or name another."
        )
    confirm_question(entry, gap.question, by=by)
    return _drafted(gap, entry, by)


@transaction.atomic
def propose(gap_id: int, *, by: User, audience: Audience) -> Gap:
    """Have enrichment propose entries that answer the gap's newest questions.

    Raises:
        ForbiddenError: `by` is not a curator.
        GapClosedError: It is waiting for a review already.
    """
    gap = _unfilled(gap_id, by)
    if not has_role_in(by, Role.CURATOR, gap.knowledge_base_id):
        raise ForbiddenError(
            "Only curators may request proposals; draft an answer instead."
        )
    return _proposed(gap, audience, by)


def propose_due() -> int:
    """Have enrichment propose entries for the open gaps with the greatest impact.

    The proposals are for the audience named by `NESCIO_ENRICH_GAPS_FOR`; if it is
    empty, none are made. Gaps assigned to an expert are skipped, as are those whose
    question was proposed before, whatever the outcome. Returns the number of gaps
    begun.
    """
    audience = Audience.objects.filter(slug=settings.ENRICH_GAPS_FOR).first()
    if audience is None:
        if settings.ENRICH_GAPS_FOR:
            logger.error(
                "NESCIO_ENRICH_GAPS_FOR names the audience %r, which does not exist: "
                "no entries are proposed for gaps.",
                settings.ENRICH_GAPS_FOR,
            )
        return 0
    begun = 0
    for knowledge_base in KnowledgeBase.objects.in_use().order_by("pk"):
        free = Gap.objects.filter(
            knowledge_base=knowledge_base, state=Gap.State.OPEN, owner=None
        )
        with transaction.atomic():
            locked = free.select_for_update(of=("self",), no_key=True, skip_locked=True)
            rows = [*locked.ranked()[:_LOOKED_AT]]
            known = proposed_keys(knowledge_base, [gap.question for gap in rows])
            due = [gap for gap in rows if question_key(gap.question) not in known]
            chosen = due[:_GAPS_A_NIGHT]
            for gap in chosen:
                _proposed(gap, audience, None)
        begun += len(chosen)
    return begun


def _proposed(gap: Gap, audience: Audience, by: User | None) -> Gap:
    newest = gap.members.newest().values_list("answer__question", flat=True)
    seeds = dict.fromkeys(
        " ".join(text.split())[:SEED_LIMIT] for text in (gap.question, *newest[:_SEEDS])
    )
    plan = Plan(
        knowledge_base=gap.knowledge_base,
        audience=audience,
        seeds=list(seeds),
        per_seed=0,
        count=len(seeds),
    )
    gap.proposing_job_id = start_enrichment(checked(plan), by=by).pk
    gap.entry = None
    return _drafted(gap, None, by)


@transaction.atomic
def dismiss(gap_id: int, *, by: User, reason: str) -> Gap:
    """Dismiss a gap that needs no entry; it continues to count.

    Raises:
        InvalidGapError: There is no reason.
    """
    gap = _open(gap_id, by)
    said = checked_text("reason", reason, REASON_LIMIT, InvalidGapError)
    if not said:
        raise InvalidGapError("The reason is empty; say why it is dismissed.")
    gap.state, gap.reason, gap.closed_at = Gap.State.DISMISSED, said, timezone.now()
    gap.owner = gap.owner or by
    gap.save(update_fields=["state", "reason", "closed_at", "owner"])
    return gap


UNDO: Final = "qa.gap"
_FATE = (
    "state", "reason", "owner_id", "entry_id", "proposing_job_id", "drafted_at", "closed_at",
)  # fmt: skip
_COLUMNS: Final = {field.attname: field for field in Gap._meta.concrete_fields}


def noted_change(before: Gap, after: Gap) -> dict[str, Any]:
    """Return one of the `rows` for undoing a dismissal or reopening of a gap."""
    return {"gap": before.pk, "before": _fate(before), "after": _fate(after)}


def _fate(gap: Gap) -> list[Any]:
    values = [getattr(gap, name) for name in _FATE]
    return [str(each) if isinstance(each, datetime | UUID) else each for each in values]


@undoes(UNDO, lambda noted: (f"gap {row['gap']}" for row in noted["rows"]))
def undo_changes(noted: Mapping[str, Any], by: User) -> Sequence[str]:
    """Restore gaps to their state before they were dismissed or reopened.

    Gaps that were changed or assigned since are left as they are.
    """
    return take_back_each(noted["rows"], lambda row: _undo_change(row, by))


@transaction.atomic
def _undo_change(noted: Mapping[str, Any], by: User) -> None:
    gap = _lock(noted["gap"], by)
    if not has_role_in(by, Role.SME, gap.knowledge_base_id):
        raise ForbiddenError("Only experts deal with gaps.")
    if _fate(gap) != noted["after"]:
        whose = f", assigned to {person_name(gap.owner)}" if gap.owner else ""
        raise ChangedSinceError(
            f"The gap “{gap}” was changed since: it is {gap.get_state_display()}{whose}; "
            "it stays as it is."
        )
    for name, value in zip(_FATE, noted["before"], strict=True):
        setattr(gap, name, _COLUMNS[name].to_python(value))
    gap.save(update_fields=_FATE)
    if gap.state == Gap.State.DRAFTED:
        start_asking_again()


@transaction.atomic
def reopen(gap_id: int, *, by: User) -> Gap:
    gap = _lock(gap_id, by)
    gap.open_again()
    gap.save()
    return gap


@transaction.atomic
def reopen_undoably(gap_id: int, *, by: User) -> tuple[Gap, dict[str, Any]]:
    """Reopen a gap; return it and one of the `rows` for undoing that."""
    before = _lock(gap_id, by)
    gap = reopen(gap_id, by=by)
    return gap, noted_change(before, gap)


def expected_answers(gap: Gap, viewer: User) -> QuerySet[Vote]:
    """Return the gap's thumbs down that give an expected answer, newest first.

    Those that the viewer may not read are left out.
    """
    votes = Vote.objects.visible_to(viewer).exclude(expected_answer="")
    of_gap = votes.filter(answer__gap_question__gap=gap, is_up=False)
    return of_gap.filter(is_withheld=False).order_by("-updated_at")  # type: ignore[misc]  # annotated by `visible_to`


def _drafted(gap: Gap, entry: Entry | None, by: User | None) -> Gap:
    """Mark a gap as drafted; ask again at once if its entry is verified already."""
    gap.state, gap.entry, gap.drafted_at = Gap.State.DRAFTED, entry, timezone.now()
    gap.owner = gap.owner or by
    gap.save()
    start_asking_again()
    return gap


def _open(gap_id: int, by: User) -> Gap:
    gap = _lock(gap_id, by)
    if not gap.is_open:
        raise GapClosedError(
            f"Gap {gap_id} is {gap.get_state_display()} already; reopen it first."
        )
    return gap


def _unfilled(gap_id: int, by: User) -> Gap:
    gap = _open(gap_id, by)
    if not gap.can_be_filled:
        raise GapClosedError(
            f"Gap {gap_id} waits for a review already; finish that or reopen the gap."
        )
    return gap


def _lock(gap_id: int, by: User) -> Gap:
    visible = Gap.objects.visible_to(by).select_related("knowledge_base", "owner")
    locked = visible.select_for_update(of=("self",), no_key=True)
    gap = locked.filter(pk=gap_id).first()
    if gap is None:
        raise GapNotFoundError(f"There is no gap {gap_id}.")
    gap.knowledge_base.check_in_use()
    return gap


SHOWN = 50


@dataclass(frozen=True, slots=True)
class Tried:
    """A question of a gap with its answer before the entry, and after if asked again.

    Attributes:
        before: With the annotations of `seen_by`, as is `after`.
        is_better: None if it was not asked again, or is not decided yet.
        is_copy: Whether the same words by the same person were asked again instead.
    """

    why: str
    before: Answer
    after: Answer | None = None
    is_better: bool | None = None
    is_copy: bool = False


def fetch_shown(gap: Gap, viewer: User) -> None:
    """Set `nearest_hits` and `tried` of a gap to what the viewer may see."""
    gap.nearest_hits = nearest_entries(gap, viewer)
    gap.tried = tried_questions(gap, viewer)


def tried_questions(gap: Gap, viewer: User) -> list[Tried]:
    """Return the newest questions that the viewer may look up (three queries)."""
    newest = gap.members.visible_to(viewer).newest()[:SHOWN]
    questions = {each.answer_id: each for each in newest}
    repeats = {
        repeat.before_id: repeat
        for repeat in Repeat.objects.filter(before__in=questions)
        .order_by("before_id", "-created_at")
        .distinct("before_id")
    }
    afters = [repeat.after_id for repeat in repeats.values()]
    seen = Answer.objects.visible_to(viewer).select_related("asker")
    answers = seen.in_bulk([*questions, *afters])
    asked = {_words_of(answers[answer_id]) for answer_id in repeats}
    tried = []
    for answer_id, question in questions.items():
        before, repeat = answers[answer_id], repeats.get(answer_id)
        after = answers.get(repeat.after_id) if repeat else None
        is_better = repeat.is_better if repeat else None
        is_copy = repeat is None and _words_of(before) in asked
        why = question.get_why_display()
        tried.append(Tried(why, before, after, is_better, is_copy))
    return tried


def _words_of(answer: Answer) -> tuple[int | None, str]:
    return answer.asker_id, answer.question.casefold()


def count_reasons(gap: Gap, viewer: User) -> Counter[str]:
    """Count why its questions are in it, as far as the viewer may read (one query)."""
    reason = f"answer__{readable_reason(viewer)}"
    rows = GapQuestion.objects.filter(gap=gap).values_list("why", reason)
    newest = rows.order_by("-asked_at")[:1_000]
    return Counter(
        reason if why == GapQuestion.Why.REFUSED else why for why, reason in newest
    )
