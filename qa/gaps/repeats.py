"""Asking questions again once an entry that answers them is verified.

They are asked on behalf of their askers, with their permissions, and are not counted as
live traffic. Each question is stored with its `Repeat` before it is decided, so that
the job of a killed worker can resume and no question is asked twice for one draft.
"""

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Greatest
from django.utils import timezone

from jobs.run import JobRun
from jobs.services import enqueue
from kb.documents.models import of_base_in_use
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from qa.answers.asking import decide_alone
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.answers.questions import new_question
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap, GapQuestion, Repeat

from .notices import notify_answered

KIND: Final = "qa.ask_again"
# The newest questions of a gap; askers of older ones are rarely still waiting.
MAX_QUESTIONS: Final = 200
# How long an asker waits for a reply, and how long an undecided repeat is retried.
_WAITED_FOR: Final = timedelta(days=180)
_TRIED_FOR: Final = timedelta(hours=6)
# How many open gaps one job asks again, and how long each is then left alone.
MAX_OPEN_GAPS: Final = 20
_LEFT_ALONE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Tally:
    """A job's totals so far: questions asked and answered better, and gaps filled."""

    asked: int = 0
    better: int = 0
    filled: int = 0


def start_asking_again() -> None:
    """Enqueue the job if anything is due and it is not waiting already."""
    adopt_proposals()
    if due_gaps().exists() or due_escalations().exists() or _broken_off().exists():
        enqueue(KIND, {}, idempotency_key=KIND)


def due_gaps() -> QuerySet[Gap]:
    """Return gaps whose entry is verified but whose questions were not asked again."""
    return Gap.objects.filter(
        of_base_in_use(), state=Gap.State.DRAFTED, entry__state=Entry.State.VERIFIED
    )


def overtaken_gaps(at: datetime) -> list[tuple[Gap, datetime]]:
    """Return open gaps that later verifications may answer, with the time of the last.

    Nothing links such entries to the gap: they come from a bulk verification, an import
    or a correction. Gaps with thumbs down are left out, as nothing shows which entry
    would be better.
    """
    # Skips the entries of knowledge bases without an open gap.
    open_gaps = Gap.objects.filter(of_base_in_use(), state=Gap.State.OPEN)
    asked_of = open_gaps.values("knowledge_base")
    verified = Entry.objects.filter(
        state=Entry.State.VERIFIED, knowledge_base__in=asked_of
    ).order_by()
    newest = dict(verified.values_list("knowledge_base").annotate(Max("verified_at")))
    # In PostgreSQL, GREATEST ignores nulls.
    looked = Gap.objects.annotate(looked_at=Greatest("asked_again_at", "last_seen"))
    since = Q(pk__in=())
    for base, time in newest.items():
        since |= Q(knowledge_base=base, looked_at__lt=time)
    left_alone = Q(asked_again_at__gt=at - _LEFT_ALONE)
    voted = GapQuestion.objects.filter(
        gap=OuterRef("pk"), why=GapQuestion.Why.VOTED_DOWN
    )
    rows = looked.filter(since, ~Exists(voted), state=Gap.State.OPEN).exclude(
        left_alone
    )
    longest = F("asked_again_at").asc(nulls_first=True)
    found = rows.order_by(longest, "-impact_score", "-pk")[:MAX_OPEN_GAPS]
    return [(gap, newest[gap.knowledge_base_id]) for gap in found]


def start_asking_open_gaps() -> None:
    """Enqueue the job if a newly verified, unlinked entry may answer an open gap."""
    if overtaken_gaps(timezone.now()):
        enqueue(KIND, {}, idempotency_key=KIND)


def due_escalations() -> QuerySet[Escalation]:
    """Return escalations whose kept entry is verified and has not been tried since."""
    tried = Repeat.objects.filter(
        before=OuterRef("answer_id"), created_at__gte=OuterRef("replied_at")
    )
    return Escalation.objects.filter(
        ~Exists(tried),
        of_base_in_use("answer__knowledge_base"),
        state=Escalation.State.ANSWERED,
        entry__state=Entry.State.VERIFIED,
        answer__asker__is_active=True,
        answer__erased_at__isnull=True,
        replied_at__gte=timezone.now() - _WAITED_FOR,
    )


def adopt_proposals() -> None:
    """Link each gap to the first verified proposal that was made for it."""
    waiting = Gap.objects.filter(
        state=Gap.State.DRAFTED, entry__isnull=True, proposing_job_id__isnull=False
    )
    verified = Proposal.objects.filter(
        job_id=OuterRef("proposing_job_id"), entry__state=Entry.State.VERIFIED
    )
    first = verified.order_by("decided_at", "pk").values("entry")[:1]
    waiting.filter(Exists(verified)).update(entry=Subquery(first))


def ask_again(run: JobRun) -> dict[str, object]:
    """Ask again whatever is due; the handler of jobs of the kind "qa.ask_again"."""
    tally = Tally(**run.cursor)
    for repeat in list(_broken_off().order_by("pk")):
        tally = _try(run, repeat, tally)
    for sent in list(due_escalations().select_related(*_ANSWER_RELATIONS, "entry")):
        tally = _try(run, _create(run, sent.answer, sent.entry, None), tally)
    for gap in list(due_gaps().select_related("entry").order_by("pk")):
        for before in _due_questions(gap, gap.drafted_at):
            tally = _try(run, _create(run, before, gap.entry, gap), tally)
        with run.step() as step:
            tally = replace(tally, filled=tally.filled + _settle(gap))
            step.advance(cursor=asdict(tally))
    for gap, since in overtaken_gaps(timezone.now()):
        tally = _ask_open(run, gap, since, tally)
    return asdict(tally)


def _ask_open(run: JobRun, gap: Gap, since: datetime, tally: Tally) -> Tally:
    """Ask an open gap's questions again, newest first, until one is no better."""
    for before in _due_questions(gap, since):
        better = tally.better
        tally = _try(run, _create(run, before, None, gap), tally)
        if tally.better == better:
            break
    with run.step() as step:
        tally = replace(tally, filled=tally.filled + _settle_open(gap, since))
        step.advance(cursor=asdict(tally))
    return tally


_ANSWER_RELATIONS = ("answer__asker", "answer__knowledge_base")


def _broken_off() -> QuerySet[Repeat]:
    since = timezone.now() - _TRIED_FOR
    rows = Repeat.objects.filter(
        of_base_in_use("after__knowledge_base"),
        is_better__isnull=True,
        created_at__gte=since,
    )
    return rows.select_related("before", "after__asker", "after__knowledge_base")


def _due_questions(gap: Gap, since: datetime | None) -> list[Answer]:
    """Return the newest questions of a gap that were not asked again since a time.

    Questions with the same words by the same asker are asked once.
    """
    rows = GapQuestion.objects.filter(
        gap=gap, asker__is_active=True, answer__erased_at__isnull=True
    ).newest()
    newest = list(rows.select_related(*_ANSWER_RELATIONS)[:MAX_QUESTIONS])
    repeats = Repeat.objects.filter(
        before__in=[each.answer_id for each in newest], created_at__gte=since
    )
    tried = set(repeats.values_list("before_id", flat=True))
    groups: dict[tuple[int | None, str], list[Answer]] = defaultdict(list)
    for each in newest:
        groups[each.asker_id, each.answer.question.casefold()].append(each.answer)
    return [
        answers[0]
        for answers in groups.values()
        if tried.isdisjoint(answer.pk for answer in answers)
    ]


def _create(
    run: JobRun, before: Answer, entry: Entry | None, gap: Gap | None
) -> Repeat:
    after = new_question(
        before.question,
        asker=before.asker or AnonymousUser(),
        channel=Answer.Channel.REPEAT,
        knowledge_base=before.knowledge_base,
        language=before.language,
        refusal_language=before.refusal_language,
    )
    with run.step():
        after.save(force_insert=True)
        return Repeat.objects.create(before=before, after=after, entry=entry, gap=gap)


def _try(run: JobRun, repeat: Repeat, tally: Tally) -> Tally:
    """Decide a repeated question, store the result and notify the asker if better."""
    if repeat.after.asker is not None:
        decide_alone(repeat.after)
    with run.step() as step:
        repeat.is_better = repeat.was_helped()
        repeat.save(update_fields=["is_better"])
        if repeat.is_better:
            notify_answered(repeat)
        better = tally.better + repeat.is_better
        tally = replace(tally, asked=tally.asked + 1, better=better)
        step.advance(done=tally.asked, cursor=asdict(tally))
    return tally


def _settle(gap: Gap) -> bool:
    """Close a gap if most of its repeated questions are answered now, else reopen it.

    A gap without any repeated question is closed too.
    """
    locked = Gap.objects.select_for_update(of=("self",), no_key=True).get(pk=gap.pk)
    if (locked.state, locked.drafted_at) != (Gap.State.DRAFTED, gap.drafted_at):
        return False  # changed by somebody else in the meantime
    newest = _repeats_since(locked, locked.drafted_at)
    outcomes = list(newest.values_list("is_better", flat=True))
    is_filled = 2 * sum(map(bool, outcomes)) > len(outcomes) or not outcomes
    now = timezone.now()
    locked.asked_again_at = now
    if is_filled:
        locked.state, locked.closed_at = Gap.State.FILLED, now
    else:
        locked.open_again()
    locked.save()
    return is_filled


def _settle_open(gap: Gap, since: datetime) -> bool:
    """Close an open gap if most of its repeated questions are answered now.

    It is linked to an entry that an answer cites, so that it is hidden from users who
    may not see that entry.
    """
    locked = Gap.objects.select_for_update(of=("self",), no_key=True).get(pk=gap.pk)
    if locked.state != Gap.State.OPEN:
        return False  # changed by somebody else in the meantime
    repeats = list(_repeats_since(locked, since))
    better = [repeat.after_id for repeat in repeats if repeat.is_better]
    cited = AnswerEvidence.objects.filter(
        answer__in=better, role=AnswerEvidence.Role.CITED, entry__isnull=False
    )
    entry = cited.order_by("pk").values_list("entry", flat=True).first()
    now = timezone.now()
    locked.asked_again_at = now
    is_filled = entry is not None and 2 * len(better) > len(repeats)
    if is_filled:
        locked.state, locked.entry_id = Gap.State.FILLED, entry
        locked.drafted_at = locked.closed_at = now
    locked.save()
    return is_filled


def _repeats_since(gap: Gap, since: datetime | None) -> QuerySet[Repeat]:
    """Return the newest repeat of each question of a gap since a time."""
    tried = Repeat.objects.filter(before__gap_question__gap=gap, created_at__gte=since)
    return tried.order_by("before_id", "-created_at").distinct("before_id")
