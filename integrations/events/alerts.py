"""Mail alerts to those who run or own a knowledge base, on the events of webhooks.

Routing an event stores an alert for each user who wants mail about it. One mail covers
all alerts since the last; mails are at least an hour apart, those on gaps about a day.
A mail holds counts and links but no text, and only of rows that its reader may see and
that are still as reported when it is sent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from accounts.acting import acting_for
from accounts.models import Preferences
from accounts.roles import Role, where_holder, where_role
from accounts.services import alerts_of, users_alerted
from integrations.events.models import Alert, Delivery, Event, EventType
from integrations.events.payloads import sources_seen_by
from jobs.mail import mail_to
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.documents.models import of_base_in_use
from kb.sources.models import FollowedSource
from qa.calibration.models import DriftReading
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap
from qa.inbox.models import Kind as InboxKind

KIND: Final = "integrations.mail_alerts"
Chosen = Preferences.Alert
SOON: Final = (Chosen.FAILURES, Chosen.DRIFT, Chosen.ESCALATIONS)
DAILY: Final = (Chosen.GAPS,)
_APART: Final[Mapping[tuple[Chosen, ...], timedelta]] = {
    SOON: timedelta(hours=1),
    DAILY: timedelta(hours=20),  # so that a late digest does not delay the next
}
_MAX_EVENTS = 5_000  # per mail; the rest goes into the next one


@dataclass(frozen=True, slots=True)
class _Source:
    """The rows that a type of event is about, and how a mail describes them.

    Attributes:
        key: The key of the row's id in the event's data.
        seen: The rows that a user may see and that are still as reported.
        one, many: The text for one and for several; "{}" is the count.
        page, query: The page that lists them.
    """

    alert: Chosen
    key: str
    seen: Callable[[User], QuerySet[Any]]
    one: str
    many: str
    page: str
    query: Mapping[str, str]


def _drifted(user: User) -> QuerySet[DriftReading]:
    rows = DriftReading.objects.filter(has_drifted=True)
    active = rows.filter(certificate__policy__is_active=True)
    return active if user.has_perm("qa.view_driftreading") else rows.none()


def _failed_jobs(user: User) -> QuerySet[Job]:
    """Leave out jobs that check a source, since the source reports its own failure."""
    said = FollowedSource.objects.filter(job_id=OuterRef("pk")).exclude(error="")
    failed = Job.objects.visible_to(user).filter(state=Job.State.FAILED)
    return failed.filter(~Exists(said))


def _waiting_escalations(user: User) -> QuerySet[Escalation]:
    """Leave out those that the user raised or that another expert holds."""
    base = "answer__knowledge_base"
    mine = where_role(user, Role.SME, base)
    free = ~where_holder(Role.SME, "assignee", base) | Q(assignee=user)
    waiting = Escalation.objects.visible_to(user).waiting()
    used = of_base_in_use(base)
    return waiting.filter(mine, free, used).exclude(raised_by=user)


_SOURCES: Final[Mapping[str, _Source]] = {
    EventType.JOB_FAILED: _Source(
        Chosen.FAILURES, "job", _failed_jobs,
        "{} background job failed", "{} background jobs failed",
        "admin:jobs_job_changelist", {"state__exact": Job.State.FAILED},
    ),
    EventType.SOURCE_FAILED: _Source(
        Chosen.FAILURES, "source",
        lambda user: sources_seen_by(user).exclude(error=""),
        "{} followed source can't be read", "{} followed sources can't be read",
        "admin:kb_followedsource_changelist", {},
    ),
    EventType.DELIVERY_FAILED: _Source(
        Chosen.FAILURES, "delivery",
        lambda user: Delivery.objects.visible_to(user).filter(
            state=Delivery.State.FAILED
        ),
        "{} message to a webhook endpoint was given up",
        "{} messages to webhook endpoints were given up",
        "admin:integrations_delivery_changelist",
        {"state__exact": Delivery.State.FAILED},
    ),
    EventType.DRIFT_FOUND: _Source(
        Chosen.DRIFT, "reading", _drifted,
        "{} check found that live questions drifted",
        "{} checks found that live questions drifted",
        "admin:qa_driftreading_changelist", {},
    ),
    EventType.ESCALATION_RAISED: _Source(
        Chosen.ESCALATIONS, "escalation", _waiting_escalations,
        "{} question waits for an expert", "{} questions wait for an expert",
        "inbox", {"kind": InboxKind.ESCALATION},
    ),
    EventType.GAP_OPENED: _Source(
        Chosen.GAPS, "gap", lambda user: Gap.objects.visible_to(user).open().filter(of_base_in_use()),
        "{} new gap", "{} new gaps",
        "inbox", {"kind": InboxKind.GAP},
    ),
}  # fmt: skip


def note_alerts(events: Sequence[Event]) -> None:
    """Store alerts for users who want mail about these events, if mail is set up."""
    about = [event for event in events if event.type in _SOURCES]
    if not about or not settings.MAIL_URL:
        return
    kinds = {_SOURCES[event.type].alert for event in about}
    wanting = {kind: list(users_alerted(kind)) for kind in kinds}
    alerts = [
        Alert(user=user, event=event, kind=kind)
        for event in about
        for kind in [_SOURCES[event.type].alert]
        for user in wanting[kind]
    ]
    Alert.objects.bulk_create(alerts, ignore_conflicts=True)


def enqueue_mails(kinds: tuple[Chosen, ...]) -> None:
    """Enqueue mails of pending alerts, if there are any; `kinds` is SOON or DAILY."""
    if settings.MAIL_URL and Alert.objects.pending(kinds).exists():
        names = [kind.value for kind in kinds]
        key = f"{KIND} {' '.join(names)}"
        enqueue(KIND, {"kinds": names}, idempotency_key=key)


def mail_alerts(run: JobRun) -> dict[str, object]:
    """Send each user one mail about the alerts since the last, one user per step.

    Handles jobs of the kind "integrations.mail_alerts".
    """
    kinds = tuple(Chosen(name) for name in run.parameters["kinds"])
    after: int = run.cursor.get("after", 0)
    mails: int = run.cursor.get("mails", 0)
    pending = Alert.objects.pending(kinds).filter(user=OuterRef("pk"))
    users = User.objects.filter(Exists(pending), pk__gt=after).order_by("pk")
    for user in users.select_related("preferences"):
        with run.step() as step, acting_for(user):
            mails += _mail(user, kinds, at=timezone.now())
            step.advance(done=mails, cursor={"after": user.pk, "mails": mails})
    return {"mails": mails}


def _mail(user: User, kinds: tuple[Chosen, ...], *, at: datetime) -> bool:
    """Mail a user's pending alerts and delete those that no longer apply."""
    own = Alert.objects.filter(user=user, kind__in=kinds)
    if own.filter(mailed_at__gt=at - _APART[kinds]).exists():
        return False
    rows = own.pending(kinds).select_related("event__knowledge_base")
    pending = list(rows.order_by("event_id")[:_MAX_EVENTS])
    chosen = alerts_of(user) if user.is_active and user.email else ()
    true = _still_true(user, [each for each in pending if each.kind in chosen])
    kept = {each.pk for each in true}
    own.filter(pk__in=[each.pk for each in pending if each.pk not in kept]).delete()
    if not true:
        return False
    own.filter(pk__in=kept).update(mailed_at=at)
    return _send(user, true)


def _still_true(user: User, alerts: Iterable[Alert]) -> list[Alert]:
    """Return the alerts whose rows the user may see and that are still as reported."""
    by_type: dict[str, dict[str, Alert]] = {}
    for alert in alerts:
        about = str(alert.event.data[_SOURCES[alert.event.type].key])
        # Of two alerts on the same row, keep the newer.
        by_type.setdefault(alert.event.type, {})[about] = alert
    found: list[Alert] = []
    for kind, rows in by_type.items():
        seen = (
            _SOURCES[kind].seen(user).filter(pk__in=rows).values_list("pk", flat=True)
        )
        found += [rows[str(pk)] for pk in seen]
    return found


def _send(user: User, alerts: Sequence[Alert]) -> bool:
    sections = [
        _section(source, found)
        for kind, source in _SOURCES.items()
        if (found := [each for each in alerts if each.event.type == kind])
    ]
    return mail_to(
        user,
        subject=", ".join(str(section["said"]) for section in sections),
        body=render_to_string(
            "integrations/alert.txt",
            {
                "user": user,
                "sections": sections,
                "profile": f"{settings.PUBLIC_URL}{reverse('profile')}#alerts",
            },
        ),
    )


def _section(source: _Source, alerts: Sequence[Alert]) -> dict[str, object]:
    """Return the number of alerts, in total and by knowledge base or kind of job."""
    parts = Counter(
        str(each.event.knowledge_base or each.event.data.get("kind", ""))
        for each in alerts
    )
    words = source.one if len(alerts) == 1 else source.many
    query = f"?{urlencode(source.query)}" if source.query else ""
    return {
        "said": words.format(f"{len(alerts):,}"),
        "parts": [(part, count) for part, count in parts.most_common() if part],
        "link": f"{settings.PUBLIC_URL}{reverse(source.page)}{query}",
    }
