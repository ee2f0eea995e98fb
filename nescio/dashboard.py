"""The admin's first page: a few counts that say what needs a person today.

Each block is counted only for who may see what it counts, and links to the list behind
its numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from jobs.models import Job
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.answers.wording import REASONS
from qa.pipeline.gates import Reason

DUE = timedelta(days=30)
PERIOD = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number; `share` is its part of the block's largest, in percent."""

    label: str
    count: int
    share: float
    link: str


@dataclass(frozen=True, slots=True)
class Block:
    """Numbers that belong together."""

    title: str
    note: str
    empty: str
    figures: tuple[Figure, ...]


def add_figures(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add the blocks to the context of the admin's first page."""
    blocks = []
    if request.user.has_perm("kb.view_entry"):
        blocks += [_entries(), _reviews(request), _due()]
    if request.user.has_perm("qa.view_answer"):
        blocks += [_outcomes(), _refusals()]
    if request.user.has_perm("jobs.view_job"):
        blocks.append(_jobs())
    return {**context, "title": "Today", "blocks": blocks}


def _entries() -> Block:
    counts = dict(Entry.objects.order_by().values_list("state").annotate(Count("pk")))
    figures = [
        (state.label, counts.get(state.value, 0), {"state__exact": state.value})
        for state in Entry.State
    ]
    return _block(
        "Entries by state",
        "Draft and retired ones are never evidence.",
        "There is no entry yet.",
        "kb_entry",
        figures,
    )


def _reviews(request: HttpRequest) -> Block:
    now = timezone.now()
    due = Entry.objects.visible_to(request.user).due(now).order_by()
    counts = [
        ("yours", due.filter(owner_id=request.user.pk).count(), "mine"),
        ("everybody's", due.count(), "all"),
    ]
    figures = [(label, count, {"whose": whose}) for label, count, whose in counts]
    return _block(
        "Due for review",
        "The most used come first.",
        "Nothing is due.",
        "admin:kb_entry_due",
        figures,
    )


def _due() -> Block:
    now = timezone.now()
    live = Entry.objects.servable()
    never = (Entry.State.DRAFT, Entry.State.RETIRED)
    served = {"state__in": ",".join(s for s in Entry.State if s not in never)}
    expired = live.filter(valid_until__lte=now).count()
    due = live.filter(valid_until__gt=now, valid_until__lte=now + DUE).count()
    return _block(
        "Expiry",
        "An expired entry is refused, not used.",
        "Nothing has expired or is about to.",
        "kb_entry",
        [
            ("expired", expired, {**served, "valid_until__lte": now.isoformat()}),
            (
                f"expire within {DUE.days} days",
                due,
                {
                    **served,
                    "valid_until__gt": now.isoformat(),
                    "valid_until__lte": (now + DUE).isoformat(),
                },
            ),
        ],
    )


def _outcomes() -> Block:
    since = timezone.now() - PERIOD
    counts = dict(_asked(since).order_by().values_list("outcome").annotate(Count("pk")))
    figures = [
        (
            outcome.label,
            counts.get(outcome.value, 0),
            {**_asked_in(since), "outcome__exact": outcome.value},
        )
        for outcome in Answer.Outcome
    ]
    return _block(
        f"Questions of the last {PERIOD.days} days",
        "Evaluations, and what is asked again by itself, are not counted.",
        "Nobody has asked anything.",
        "qa_answer",
        figures,
    )


def _refusals() -> Block:
    since = timezone.now() - PERIOD
    rows = (
        _asked(since)
        .filter(outcome=Answer.Outcome.REFUSED)
        .order_by()
        .values_list("reason")
        .annotate(count=Count("pk"))
        .order_by("-count")
    )
    figures = [
        (
            REASONS[Reason(reason)].title,
            count,
            {**_asked_in(since), "reason__exact": reason},
        )
        for reason, count in rows
    ]
    return _block(
        f"Refusals of the last {PERIOD.days} days, by reason",
        "What is asked and not known: the next entries to write.",
        "Nothing was refused.",
        "qa_answer",
        figures,
    )


def _jobs() -> Block:
    unfinished = [Job.State.QUEUED, Job.State.RUNNING]
    counts = dict(
        Job.objects.filter(state__in=[*unfinished, Job.State.FAILED])
        .order_by()
        .values_list("state")
        .annotate(Count("pk"))
    )
    figures = [
        (state.label, counts.get(state.value, 0), {"state__exact": state.value})
        for state in (*unfinished, Job.State.FAILED)
    ]
    return _block(
        "Background work", "", "Nothing is running or waiting.", "jobs_job", figures
    )


def _asked_in(since: datetime) -> dict[str, str]:
    """Return `_asked` as the parameters of the list's address."""
    return {
        "created_at__gte": since.isoformat(),
        "channel__in": ",".join(Answer.LIVE_CHANNELS),
    }


def _asked(since: datetime) -> QuerySet[Answer]:
    return Answer.objects.live().filter(created_at__gte=since)


def _block(
    title: str,
    note: str,
    empty: str,
    model: str,
    figures: Iterable[tuple[str, int, dict[str, str]]],
) -> Block:
    rows = [(label, count, query) for label, count, query in figures]
    most = max((count for _, count, _ in rows), default=0)
    return Block(
        title,
        note,
        empty,
        tuple(
            Figure(
                label,
                count,
                round(100 * count / most, 1) if most else 0.0,
                _link(model, query),
            )
            for label, count, query in rows
        )
        if most
        else (),
    )


def _link(page: str, query: dict[str, str]) -> str:
    """Return the address of a page of the admin, by its name or its model's."""
    name = page if ":" in page else f"admin:{page}_changelist"
    try:
        return f"{reverse(name)}?{urlencode(query)}"
    except NoReverseMatch:
        return ""
