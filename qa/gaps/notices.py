"""Telling askers what became of their questions: in the page, by mail, by webhook.

A notice is written in the transaction of what it tells of. The other roads are jobs of
their own, so that a mail server or a webhook that is down delays nothing and is tried
again; where none is configured, the page is the only road.
"""

from datetime import timedelta
from smtplib import SMTPException
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from jobs.exceptions import RetryableJobError
from jobs.run import JobRun
from jobs.services import enqueue
from qa.answers.models import Answer
from qa.exceptions import NoticeNotFoundError
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import Repeat

from .webhook import post_signed

MAIL_KIND: Final = "qa.mail_notice"
POST_KIND: Final = "qa.post_notice"
# A day is how long a mail server or a webhook may be down.
_TRIED_FOR: Final = timedelta(days=1)


def notify_reply(escalation: Escalation) -> None:
    """Tell who sent a question to the experts that one replied."""
    if escalation.raised_by is not None:
        _send(
            Notice(
                user=escalation.raised_by,
                kind=Notice.Kind.REPLY,
                answer=escalation.answer,
                escalation=escalation,
            )
        )


def notify_answered(repeat: Repeat) -> None:
    """Tell an asker that the question is answered now.

    What an unread notice said of the same question before is read with it.
    """
    asker = repeat.before.asker
    if asker is None:
        return
    earlier = Notice.objects.of(asker).unread().filter(answer=repeat.before)
    earlier.update(read_at=timezone.now())
    _send(
        Notice(
            user=asker,
            kind=Notice.Kind.ANSWERED,
            answer=repeat.before,
            repeat=repeat,
        )
    )


def mark_read(*, by: User, notice_id: int | None = None) -> int:
    """Remember that a user read one notice, or all; returns how many were unread.

    Raises:
        NoticeNotFoundError: There is no such notice, or it is another user's.
    """
    own = Notice.objects.of(by)
    if notice_id is not None:
        own = own.filter(pk=notice_id)
        if not own.exists():
            raise NoticeNotFoundError(f"There is no notice {notice_id}.")
    return own.unread().update(read_at=timezone.now())


def mark_read_of(answer: Answer, *, by: User) -> None:
    """Remember that a user opened what notices tell of."""
    of_answer = Q(answer=answer) | Q(repeat__after=answer)
    unread = Notice.objects.of(by).unread().filter(of_answer)
    unread.update(read_at=timezone.now())


def shown_answer(notice: Notice) -> Answer:
    """Return what a notice leads to: the new answer, or the question replied to."""
    return notice.repeat.after if notice.repeat else notice.answer


def send_late() -> None:
    """Try once more what neither mail nor webhook took within the last day."""
    late = Notice.objects.filter(created_at__gte=timezone.now() - _TRIED_FOR)
    for notice in late.filter(mailed_at__isnull=True).select_related("user"):
        _mail_later(notice)
    for notice in late.filter(posted_at__isnull=True):
        _post_later(notice)


def mail_notice(run: JobRun) -> dict[str, object]:
    """Mail one notice; the handler of jobs of the kind "qa.mail_notice".

    Raises:
        RetryableJobError: The mail server did not take it.
    """
    with run.step():
        notice = _unsent(run, "mailed_at")
        if notice is None or not (notice.user.is_active and notice.user.email):
            return {"sent": False}
        notice.mailed_at = timezone.now()
        notice.save(update_fields=["mailed_at"])
        try:
            _mail(notice).send()
        except (SMTPException, OSError) as error:
            raise RetryableJobError(
                f"The mail of notice {notice.pk} could not be sent: {error}"
            ) from error
    return {"sent": True}


def post_notice(run: JobRun) -> dict[str, object]:
    """Post one notice to the webhook; the handler of jobs of the kind "qa.post_notice".

    A worker that is killed between posting and noting it posts it twice; the receiver
    knows it by its id.
    """
    notice = _unsent(run, "posted_at")
    if notice is None:
        return {"sent": False}
    status = post_signed(
        {
            "id": notice.pk,
            "event": notice.kind,
            "created_at": notice.created_at.isoformat(),
            "user": notice.user.get_username(),
            "question": notice.answer.question,
            "answer_id": str(notice.answer_id),
            "new_answer_id": str(notice.repeat.after_id) if notice.repeat else None,
            "link": _link(notice),
        },
        delivery=f"notice-{notice.pk}",
    )
    with run.step():
        Notice.objects.filter(pk=notice.pk).update(posted_at=timezone.now())
    return {"sent": True, "status": status}


def _send(notice: Notice) -> None:
    notice.save(force_insert=True)
    _mail_later(notice)
    _post_later(notice)


def _mail_later(notice: Notice) -> None:
    if settings.MAIL_URL and notice.user.is_active and notice.user.email:
        _enqueue(MAIL_KIND, notice)


def _post_later(notice: Notice) -> None:
    if settings.WEBHOOK_URL:
        _enqueue(POST_KIND, notice)


def _enqueue(kind: str, notice: Notice) -> None:
    enqueue(kind, {"notice": notice.pk}, idempotency_key=f"{kind} {notice.pk}")


def _unsent(run: JobRun, road: str) -> Notice | None:
    rows = Notice.objects.filter(pk=run.parameters["notice"])
    rows = rows.filter(**{f"{road}__isnull": True})
    return rows.select_related("user", "answer", "repeat__after").first()


def _link(notice: Notice) -> str:
    path = reverse("answer", args=[shown_answer(notice).pk])
    return f"{settings.PUBLIC_URL}{path}"


def _mail(notice: Notice) -> EmailMessage:
    context = {"notice": notice, "link": _link(notice)}
    return EmailMessage(
        subject=notice.get_kind_display(),
        body=render_to_string("qa/notice.txt", context),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[notice.user.email],
    )
