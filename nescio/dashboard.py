"""The admin's first page: counts of what needs attention today, by the user's rights.

It also lists the first steps that a new installation still needs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Choices, Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role, caller, reach_of, where_role
from integrations.events.models import Endpoint
from jobs.models import Job
from kb.demonstration import SLUG
from kb.documents.models import KnowledgeBase
from kb.entries.due import EXPIRY_NOTICE
from kb.entries.models import Entry
from qa.answers.models import Answer, readable_reason
from qa.calibration.models import SelfCalibrationSettings
from qa.inbox.navigation import counts, is_for
from qa.pipeline.gates import Reason
from qa.policies.wording import REASONS

PERIOD = timedelta(days=7)

LabelledCount = tuple[str, int, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A labelled number; `share` is its percentage of the largest in the block."""

    label: str
    count: int
    share: float
    link: str


@dataclass(frozen=True, slots=True)
class Block:
    title: str
    note: str
    empty: str
    figures: tuple[Figure, ...]


def add_figures(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    blocks = [_inbox(request)] if is_for(request.user) else []
    if request.user.has_perm("kb.view_entry"):
        blocks += [_entries(request), _expiry(request)]
    if request.user.has_perm("qa.view_answer"):
        blocks += _questions(request)
    if request.user.has_perm("jobs.view_job"):
        blocks.append(_jobs(request))
    if (
        request.user.has_perm("integrations.view_endpoint")
        and Endpoint.objects.exists()
    ):
        blocks.append(_webhooks())
    steps = first_steps(caller(request))
    return {**context, "title": "Today", "blocks": blocks, "first_steps": steps}


def _entries(request: HttpRequest) -> Block:
    mine = where_role(request.user, Role.SME)
    return _block(
        "Entries by state",
        "Draft and retired ones are never evidence.",
        "There is no entry yet.",
        "admin:kb_entry_changelist",
        _by_choice(Entry.objects.filter(mine), "state", Entry.State),
    )


def _inbox(request: HttpRequest) -> Block:
    return _block(
        "Waiting for you",
        "Assigned to nobody else, and not snoozed.",
        "Nothing waits.",
        "inbox",
        [
            (kind.label, count, {"kind": kind.value})
            for kind, count in counts(request).items()
        ],
    )


def _expiry(request: HttpRequest) -> Block:
    now = timezone.now()
    live = Entry.objects.filter(where_role(request.user, Role.SME)).servable()
    return _block(
        "Expiry",
        "An expired entry leads to a refusal; it is not used.",
        "Nothing has expired or is about to.",
        "admin:kb_entry_changelist",
        [
            ("expired", live.expired(now).count(), {"expiry": "lost"}),
            (
                f"expire within {EXPIRY_NOTICE.days} days",
                live.current(now).expired(now + EXPIRY_NOTICE).count(),
                {"expiry": "soon"},
            ),
        ],
    )


def _questions(request: HttpRequest) -> list[Block]:
    since = timezone.now() - PERIOD
    mine = where_role(request.user, Role.SME)
    asked = Answer.objects.live().filter(mine, created_at__gte=since)
    query = {"created_at__gte": since.isoformat(), "asked": "live"}
    refused = asked.filter(outcome=Answer.Outcome.REFUSED).order_by()
    reason_field = readable_reason(request.user)
    reasons = refused.values_list(reason_field).annotate(count=Count("pk"))
    page = "admin:qa_answer_changelist"
    return [
        _block(
            f"Questions of the last {PERIOD.days} days",
            "Evaluations, and questions asked again automatically, are not counted.",
            "Nobody has asked anything.",
            page,
            _by_choice(asked, "outcome", Answer.Outcome, query),
        ),
        _block(
            f"Refusals of the last {PERIOD.days} days, by reason",
            "Questions without an answer: the next entries to write.",
            "Nothing was refused.",
            page,
            [
                (
                    REASONS[Reason(reason)].title,
                    count,
                    {**query, f"{reason_field}__exact": reason},
                )
                for reason, count in reasons.order_by("-count")
            ],
        ),
    ]


def _jobs(request: HttpRequest) -> Block:
    rows = Job.objects.all()
    if reach_of(request.user, Role.CURATOR) is not None:
        rows = rows.visible_to(request.user)
    return _block(
        "Background work",
        "",
        "Nothing is running or waiting.",
        "admin:jobs_job_changelist",
        _by_choice(
            rows, "state", (Job.State.QUEUED, Job.State.RUNNING, Job.State.FAILED)
        ),
    )


def _webhooks() -> Block:
    rows = Endpoint.objects.all()
    return _block(
        "Webhooks",
        "An endpoint that was switched off after failures misses events.",
        "No endpoint is active.",
        "admin:integrations_endpoint_changelist",
        [
            ("work", rows.working().count(), {"condition": "works"}),
            ("failing", rows.failing().count(), {"condition": "failing"}),
            (
                "switched off",
                rows.switched_off().count(),
                {"condition": "switched_off"},
            ),
        ],
    )


def _by_choice(
    rows: QuerySet[Any],
    field: str,
    choices: Iterable[Choices],
    query: dict[str, str] | None = None,
) -> list[LabelledCount]:
    wanted = list(choices)
    of_choice = rows.filter(**{f"{field}__in": wanted}).order_by()
    counts = dict(of_choice.values_list(field).annotate(Count("pk")))
    return [
        (
            str(choice.label),
            counts.get(choice.value, 0),
            {**(query or {}), f"{field}__exact": choice.value},
        )
        for choice in wanted
    ]


def _block(
    title: str, note: str, empty: str, page: str, counts: list[LabelledCount]
) -> Block:
    most = max((count for _, count, _ in counts), default=0)
    figures = (
        Figure(
            label,
            count,
            round(100 * count / most, 1),
            f"{reverse(page)}?{urlencode(query)}",
        )
        for label, count, query in counts
        if most
    )
    return Block(title, note, empty, tuple(figures))


_WANTED = (
    "auth.add_user",
    "kb.add_knowledgebase",
    "kb.add_import",
    "qa.add_policy",
    "qa.view_answer",
)


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    help: str
    link: str
    is_done: bool


def first_steps(user: User) -> tuple[Step, ...]:
    """Return the first steps; none if the user can't do all, or once all are done.

    Takes five queries.
    """
    if not user.has_perms(_WANTED):
        return ()
    # Only accounts that have signed in: those of the demonstration and of evaluations
    # never do.
    others = User.objects.filter(last_login__isnull=False).exclude(pk=user.pk)
    own = Entry.objects.exclude(knowledge_base__slug=SLUG)
    steps = (
        Step(
            "Create a knowledge base",
            "Its name and language. The demonstration's may stay for trying things.",
            reverse("admin:kb_knowledgebase_add"),
            KnowledgeBase.objects.exclude(slug=SLUG).exists(),
        ),
        Step(
            "Import your knowledge",
            "A table or a document; a look at what it would change comes first.",
            reverse("admin:kb_import_bring"),
            own.exists(),
        ),
        Step(
            "Say how many shown answers may be wrong",
            "Open your knowledge base there and choose; the thresholds follow from its own "
            "questions.",
            reverse("admin:qa_policy_calibration"),
            SelfCalibrationSettings.objects.exists(),
        ),
        Step(
            "Invite people",
            "An account for each, with a role and the groups that open audiences.",
            reverse("admin:auth_user_add"),
            others.exists(),
        ),
        Step(
            "Ask a question",
            "And give it a thumb: that is what it learns from.",
            reverse("ask"),
            Answer.objects.live().asked_by(user).exists(),
        ),
    )
    return () if all(step.is_done for step in steps) else steps
