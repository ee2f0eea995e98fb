"""Notices about a question or an entry: on the page and by mail.

A notice is written in the transaction of its event. A mail is a job of its own, so a
mail server that is down delays nothing and is retried. Webhooks receive notices like
any other event: `integrations/events`.
"""

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role, has_role_in
from accounts.services import preferences_of
from jobs.mail import mail_to
from jobs.run import JobRun
from jobs.services import enqueue
from kb.entries.due import Reason
from kb.entries.models import Entry
from kb.upkeep.models import Flag
from qa.answers.models import Answer
from qa.exceptions import NoticeNotFoundError
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import Repeat
from qa.votes.doubts import Doubt

MAIL_KIND: Final = "qa.mail_notice"
# How long a mail server may be down.
_TRIED_FOR: Final = timedelta(days=1)
DOUBTED_QUERY: Final = f"?whose=mine&reason={Reason.VOTED_DOWN}"


def notify_reply(escalation: Escalation) -> None:
    if escalation.raised_by is not None:
        _send(
            user=escalation.raised_by,
            kind=Notice.Kind.REPLY,
            answer=escalation.answer,
            escalation=escalation,
        )


def notify_answered(repeat: Repeat) -> None:
    """Notify an asker that the question is answered now.

    An earlier unread notice for the same question is marked as read.
    """
    asker, answer = repeat.before.asker, repeat.before
    if asker is None:
        return
    earlier = Notice.objects.of(asker).unread().filter(answer=answer)
    earlier.update(read_at=timezone.now())
    _send(user=asker, kind=Notice.Kind.ANSWERED, answer=answer, repeat=repeat)


def notify_doubted(doubt: Doubt) -> None:
    """Notify those responsible for an entry that it was voted down.

    At most once for each verification, even if votes are withdrawn and given again.
    """
    entry, kind = doubt.entry, Notice.Kind.DOUBTED
    for user in _responsible_for(entry):
        known = Notice.objects.filter(user=user, entry=entry, kind=kind)
        if not known.filter(created_at__gt=entry.verified_at).exists():
            _send(user=user, kind=kind, answer=doubt.vote.answer, entry=entry)


def notify_flagged(flag: Flag) -> None:
    """Notify those responsible that an entry was flagged, once until it is dealt with.

    The person who flagged it is not notified.
    """
    entry, kind = flag.entry, Notice.Kind.FLAGGED
    since = entry.upkeep.flagged_since
    for user in _responsible_for(entry):
        known = Notice.objects.filter(user=user, entry=entry, kind=kind)
        if user.pk != flag.user_id and not known.filter(created_at__gte=since).exists():
            _send(user=user, kind=kind, entry=entry)


def _responsible_for(entry: Entry) -> list[User]:
    """Return the entry's owner, or the experts of its tags if it has no suitable owner.

    Only active experts of the knowledge base who may see the entry are included.
    """
    if entry.owner is not None and _may_judge(entry.owner, entry):
        return [entry.owner]
    tags = [tag for tag in (entry.product_line_id, entry.line_of_business_id) if tag]
    experts = User.objects.filter(expert_tags__in=tags).distinct() if tags else ()
    return [user for user in experts if _may_judge(user, entry)]


def _may_judge(user: User, entry: Entry) -> bool:
    sees = Entry.objects.visible_to(user).filter(pk=entry.pk)
    is_expert = has_role_in(user, Role.SME, entry.knowledge_base_id)
    return user.is_active and is_expert and sees.exists()


def mark_read(*, by: User, notice_id: int | None = None) -> int:
    """Mark one notice of a user as read, or all; return how many were unread.

    Raises:
        NoticeNotFoundError: There is no such notice, or it is another user's.
    """
    own = Notice.objects.of(by)
    if notice_id is not None:
        own = own.filter(pk=notice_id)
        if not own.exists():
            raise NoticeNotFoundError(f"There is no notice {notice_id}.")
    return own.unread().update(read_at=timezone.now())


def mark_answer_read(answer: Answer, *, by: User) -> None:
    of_answer = Q(answer=answer) | Q(repeat__after=answer)
    unread = Notice.objects.of(by).unread().filter(of_answer)
    unread.update(read_at=timezone.now())


def mark_entry_read(entry: Entry, *, by: User) -> None:
    unread = Notice.objects.of(by).unread().filter(entry=entry)
    unread.update(read_at=timezone.now())


def shown_answer(notice: Notice) -> Answer | None:
    """Return the answer a notice links to: the new one, or that of the question.

    None for a flagged entry, which has no question.
    """
    return notice.repeat.after if notice.repeat else notice.answer


def send_late() -> None:
    """Retry the mails of the last day that the mail server has not accepted."""
    late = Notice.objects.filter(created_at__gte=timezone.now() - _TRIED_FOR)
    for notice in late.filter(mailed_at__isnull=True).select_related(
        "user__preferences"
    ):
        _mail_later(notice)


def mail_notice(run: JobRun) -> dict[str, object]:
    """Mail one notice; the handler of jobs of the kind "qa.mail_notice".

    If the address is permanently refused, the notice counts as mailed and is not
    retried.
    """
    with run.step():
        rows = Notice.objects.filter(
            pk=run.parameters["notice"], mailed_at__isnull=True
        )
        notice = rows.select_related(
            "user__preferences", "answer", "entry", "repeat__after"
        ).first()
        if notice is None or not _is_mailed(notice.user):
            return {"sent": False}
        if not Notice.objects.of(notice.user).filter(pk=notice.pk).exists():
            return {"sent": False}
        notice.mailed_at = timezone.now()
        notice.save(update_fields=["mailed_at"])
        is_sent = _mail(notice)
    return {"sent": is_sent}


def _send(**values: Any) -> None:
    notice = Notice.objects.create(**values)
    _mail_later(notice)


def _mail_later(notice: Notice) -> None:
    if settings.MAIL_URL and _is_mailed(notice.user):
        key = f"{MAIL_KIND} {notice.pk}"
        enqueue(MAIL_KIND, {"notice": notice.pk}, idempotency_key=key)


def _is_mailed(user: User) -> bool:
    has_address = bool(user.is_active and user.email)
    return has_address and preferences_of(user).mails_notices


def link(notice: Notice) -> str:
    if notice.kind == Notice.Kind.DOUBTED:
        return f"{settings.PUBLIC_URL}{reverse('admin:kb_entry_due')}{DOUBTED_QUERY}"
    answer = shown_answer(notice)
    page, key = ("answer", answer.pk) if answer else ("entry", notice.entry_id)
    return f"{settings.PUBLIC_URL}{reverse(page, args=[key])}"


def _mail(notice: Notice) -> bool:
    context = {"notice": notice, "link": link(notice)}
    return mail_to(
        notice.user,
        subject=notice.get_kind_display(),
        body=render_to_string("qa/notice.txt", context),
    )
