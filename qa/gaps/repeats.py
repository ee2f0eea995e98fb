"""Asking questions again once what answers them is verified.

On behalf of their askers, with what they may see; what is not live traffic is not
counted as such. Each question is kept with its `Repeat` before it is decided, so a killed
worker's job goes on with it, and no question is asked twice for one draft.
"""

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Final

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils import timezone

from jobs.run import JobRun
from jobs.services import enqueue
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from qa.answers.asking import decide_alone, new_question
from qa.answers.models import Answer
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap, GapQuestion, Repeat

from .notices import notify_answered

KIND: Final = "qa.ask_again"
# The newest questions of a gap; older ones are seldom waited for.
MAX_QUESTIONS: Final = 200
# After so long nobody waits for a reply, nor for a model that was down.
_WAITED_FOR: Final = timedelta(days=180)
_TRIED_FOR: Final = timedelta(hours=6)


def start_asking_again() -> None:
    """Enqueue the job, unless it waits already or nothing is to be asked again."""
    adopt_proposals()
    if due_gaps().exists() or due_escalations().exists() or _broken_off().exists():
        enqueue(KIND, {}, idempotency_key=KIND)


def due_gaps() -> QuerySet[Gap]:
    """Gaps whose entry is verified and whose questions were not asked again since."""
    return Gap.objects.filter(
        state=Gap.State.DRAFTED, entry__state=Entry.State.VERIFIED
    )


def due_escalations() -> QuerySet[Escalation]:
    """Replies that were kept as an entry, verified by now, and not tried since."""
    tried = Repeat.objects.filter(
        before=OuterRef("answer_id"), created_at__gte=OuterRef("replied_at")
    )
    return Escalation.objects.filter(
        ~Exists(tried),
        state=Escalation.State.ANSWERED,
        entry__state=Entry.State.VERIFIED,
        answer__asker__is_active=True,
        answer__erased_at__isnull=True,
        replied_at__gte=timezone.now() - _WAITED_FOR,
    )


def adopt_proposals() -> None:
    """Let the first verified proposal that was made for a gap fill it."""
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
        for before in _due_questions(gap):
            tally = _try(run, _create(run, before, gap.entry, gap), tally)
        with run.step() as step:
            tally = replace(tally, filled=tally.filled + _settle(gap))
            step.advance(cursor=asdict(tally))
    return asdict(tally)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a job came to so far: questions asked, better answered; gaps filled."""

    asked: int = 0
    better: int = 0
    filled: int = 0


_ANSWER_RELATIONS = ("answer__asker", "answer__knowledge_base")


def _broken_off() -> QuerySet[Repeat]:
    since = timezone.now() - _TRIED_FOR
    rows = Repeat.objects.filter(is_better__isnull=True, created_at__gte=since)
    return rows.select_related("before", "after__asker", "after__knowledge_base")


def _due_questions(gap: Gap) -> list[Answer]:
    """Return the newest questions of a gap that were not asked again since its draft.

    The same words of the same asker are asked once.
    """
    rows = GapQuestion.objects.filter(
        gap=gap, asker__is_active=True, answer__erased_at__isnull=True
    ).newest()
    newest = list(rows.select_related(*_ANSWER_RELATIONS)[:MAX_QUESTIONS])
    since = Repeat.objects.filter(
        before__in=[each.answer_id for each in newest], created_at__gte=gap.drafted_at
    )
    tried = set(since.values_list("before_id", flat=True))
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
    """Decide a question, note the result and notify the asker where it is better."""
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
    """Close a gap most of whose questions are answered now; else it is open again."""
    locked = Gap.objects.select_for_update(of=("self",), no_key=True).get(pk=gap.pk)
    if (locked.state, locked.drafted_at) != (Gap.State.DRAFTED, gap.drafted_at):
        return False  # somebody changed it meanwhile
    tried = Repeat.objects.filter(
        before__gap_question__gap=locked, created_at__gte=locked.drafted_at
    )
    newest = tried.order_by("before_id", "-created_at").distinct("before_id")
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
