"""The body sent for an event: ids, states and links that the owner may see.

Built when it is sent, with the rights that the endpoint's owner has then. Text is
fetched over REST.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse

from accounts.acting import acting_for
from accounts.roles import Role, has_role, where_role
from integrations.events.models import TEST, Delivery, Event, EventType
from jobs.models import Job
from kb.conflicts.models import Conflict
from kb.entries.models import Entry
from kb.sources.models import FollowedSource
from qa.answers.models import Answer, readable_reason
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import Gap
from qa.gaps.notices import link as notice_link
from qa.policies.models import Policy
from qa.votes.models import Vote

Fields = dict[str, Any]
_Data = Mapping[str, Any]


def body_for(event: Event, owner: User | None) -> bytes | None:
    """Return the body of an event for `owner`, or None if they may not see it."""
    if owner is None or not owner.is_active:
        return None
    with acting_for(owner):
        found = _READERS[event.type](owner, event.data)
    if found is None:
        return None
    base = event.knowledge_base
    data = {"knowledge_base": base.slug, **found} if base else found
    sent = {"type": event.type, "timestamp": event.created_at.isoformat(), "data": data}
    return json.dumps(sent, ensure_ascii=False).encode()


def _address(name: str, *arguments: object) -> str:
    return f"{settings.PUBLIC_URL}{reverse(name, args=arguments)}"


def _answer(owner: User, data: _Data) -> Fields | None:
    reason = readable_reason(owner)
    rows = Answer.objects.visible_to(owner).filter(pk=data["answer"])
    found = rows.values_list(reason, "channel", "language").first()
    if found is None:
        return None
    return {
        **data,
        **dict(zip(("reason", "channel", "language"), found, strict=True)),
        "link": _address("answer", data["answer"]),
    }


def _vote(owner: User, data: _Data) -> Fields | None:
    if not Vote.objects.visible_to(owner).filter(pk=data["vote"]).exists():
        return None
    return {**data, "link": _address("answer", data["answer"])}


def _row(
    name: str, page: str, visible: Callable[[User], QuerySet[Any]]
) -> Callable[[User, _Data], Fields | None]:
    """Return a reader of events about the row whose id is `data[name]`."""

    def read(owner: User, data: _Data) -> Fields | None:
        is_seen = visible(owner).filter(pk=data[name]).exists()
        return {**data, "link": _address(page, data[name])} if is_seen else None

    return read


def _conflicts(owner: User) -> QuerySet[Conflict]:
    rows = Conflict.objects.visible_to(owner)
    return rows if has_role(owner, Role.SME) else rows.none()


def sources_seen_by(user: User) -> QuerySet[FollowedSource]:
    """Return the sources that `user` sees as a curator of their knowledge base."""
    mine = where_role(user, Role.CURATOR)
    return FollowedSource.objects.visible_to(user).filter(mine)


def _policy(owner: User, data: _Data) -> Fields | None:
    if not has_role(owner, Role.SME):
        return None
    found = Policy.objects.filter(pk=data["policy"]).values("name", "version").first()
    link = _address("admin:qa_policy_change", data["policy"])
    return {**data, **found, "link": link} if found else None


def _notice(owner: User, data: _Data) -> Fields | None:
    notice = (
        Notice.objects.filter(pk=data["notice"])
        .select_related("user", "answer", "repeat__after")
        .first()
    )
    if notice is None or not _sees(owner, notice):
        return None
    new = notice.repeat.after_id if notice.repeat else None
    return {
        **data,
        "user": notice.user.get_username(),
        "answer": str(notice.answer_id) if notice.answer_id else None,
        "new_answer": str(new) if new else None,
        "entry": notice.entry_id,
        "link": notice_link(notice),
    }


def _sees(owner: User, notice: Notice) -> bool:
    is_seen = []
    if notice.answer_id is not None:
        answers = Answer.objects.visible_to(owner).filter(pk=notice.answer_id)
        is_seen.append(answers.exists())
    if notice.entry_id is not None:
        entries = Entry.objects.visible_to(owner).filter(pk=notice.entry_id)
        is_seen.append(entries.exists())
    if notice.escalation_id is not None:
        sent = Escalation.objects.visible_to(owner).filter(pk=notice.escalation_id)
        is_seen.append(sent.exists())
    return all(is_seen)


def _test(owner: User, data: _Data) -> Fields:
    return {**data, "link": _address("admin:integrations_delivery_changelist")}


_escalation = _row(
    "escalation", "admin:qa_escalation_change", Escalation.objects.visible_to
)
_gap = _row("gap", "admin:qa_gap_change", Gap.objects.visible_to)
_entry = _row("entry", "entry", Entry.objects.readable_by)
_job = _row("job", "admin:jobs_job_change", Job.objects.visible_to)

_READERS: Mapping[str, Callable[[User, _Data], Fields | None]] = {
    EventType.ANSWER_REFUSED: _answer,
    EventType.ANSWER_VOTED: _vote,
    EventType.ESCALATION_RAISED: _escalation,
    EventType.ESCALATION_REPLIED: _escalation,
    EventType.GAP_OPENED: _gap,
    EventType.GAP_FILLED: _gap,
    EventType.ENTRY_CHANGED: _entry,
    EventType.ENTRY_VERIFIED: _entry,
    EventType.ENTRY_EXPIRED: _entry,
    EventType.CONFLICT_FOUND: _row("conflict", "admin:kb_conflict_change", _conflicts),
    EventType.DRIFT_FOUND: _policy,
    EventType.POLICY_ACTIVATED: _policy,
    EventType.JOB_SUCCEEDED: _job,
    EventType.JOB_FAILED: _job,
    EventType.SOURCE_FAILED: _row(
        "source", "admin:kb_followedsource_change", sources_seen_by
    ),
    EventType.DELIVERY_FAILED: _row(
        "delivery", "admin:integrations_delivery_change", Delivery.objects.visible_to
    ),
    EventType.NOTICE_SENT: _notice,
    TEST: _test,
}
