"""Notices of what became of a question: in the page, by mail, by webhook.

A notice is written in the transaction of its event. Mail and webhook are jobs of their
own, so that a server that is down delays nothing and is tried again.

The webhook gets signed JSON, at public addresses only. Its host is looked up once, every
address that it has is checked, and the connection goes to the very address that was
checked, so that no second look-up can lead inside (DNS rebinding). Redirects are not
followed and proxies not used.
"""

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Mapping
from datetime import timedelta
from smtplib import SMTPException
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role, has_role
from jobs.exceptions import RetryableJobError
from jobs.run import JobRun
from jobs.services import enqueue
from kb.entries.due import Reason
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.exceptions import NoticeNotFoundError, WebhookRefusedError
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import Repeat
from qa.votes.doubts import Doubt

MAIL_KIND: Final = "qa.mail_notice"
POST_KIND: Final = "qa.post_notice"
# A day is how long a mail server or a webhook may be down.
_TRIED_FOR: Final = timedelta(days=1)
TIMEOUT_SECONDS: Final = 10.0
DOUBTED_QUERY: Final = f"?whose=mine&reason={Reason.VOTED_DOWN}"
_LATER = frozenset({408, 425, 429})
_PORTS = {"https": 443, "http": 80}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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

    An earlier unread notice of the same question is marked as read.
    """
    asker, answer = repeat.before.asker, repeat.before
    if asker is None:
        return
    earlier = Notice.objects.of(asker).unread().filter(answer=answer)
    earlier.update(read_at=timezone.now())
    _send(user=asker, kind=Notice.Kind.ANSWERED, answer=answer, repeat=repeat)


def notify_doubted(doubt: Doubt) -> None:
    """Notify an entry's owner who may look up answers that it was voted down.

    Once for each verification, whatever votes are taken back and given again.
    """
    entry = doubt.entry
    owner = entry.owner
    if owner is None or not owner.is_active or not has_role(owner, Role.SME):
        return
    if not Entry.objects.visible_to(owner).filter(pk=entry.pk).exists():
        return
    known = Notice.objects.filter(user=owner, entry=entry)
    if known.filter(created_at__gt=entry.verified_at).exists():
        return
    _send(user=owner, kind=Notice.Kind.DOUBTED, answer=doubt.vote.answer, entry=entry)


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
        if not Notice.objects.of(notice.user).filter(pk=notice.pk).exists():
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
            "entry_id": notice.entry_id,
            "link": _link(notice),
        },
        delivery=f"notice-{notice.pk}",
    )
    with run.step():
        Notice.objects.filter(pk=notice.pk).update(posted_at=timezone.now())
    return {"sent": True, "status": status}


def _send(**values: Any) -> None:  # noqa: ANN401  # a notice's
    notice = Notice.objects.create(**values)
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


def _unsent(run: JobRun, sent_at: str) -> Notice | None:
    rows = Notice.objects.filter(pk=run.parameters["notice"])
    rows = rows.filter(**{f"{sent_at}__isnull": True})
    return rows.select_related("user", "answer", "entry", "repeat__after").first()


def _link(notice: Notice) -> str:
    if notice.kind == Notice.Kind.DOUBTED:
        return f"{settings.PUBLIC_URL}{reverse('admin:kb_entry_due')}{DOUBTED_QUERY}"
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


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return what `X-Nescio-Signature` holds: HMAC-SHA256 of "timestamp.body", in hex."""
    signed = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def post_signed(payload: Mapping[str, object], *, delivery: str) -> int:
    """Post `payload` to the configured address and return the status, 200 to 299.

    Args:
        delivery: By which the receiver knows what came twice.

    Raises:
        WebhookRefusedError: The address is not allowed, or it refused for good.
        RetryableJobError: It could not be reached, or was not ready.
    """
    url = _checked_url(settings.WEBHOOK_URL)
    body = json.dumps(payload, ensure_ascii=False).encode()
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "nescio",
        "X-Nescio-Delivery": delivery,
        "X-Nescio-Timestamp": timestamp,
        "X-Nescio-Signature": signature(settings.WEBHOOK_SECRET, timestamp, body),
    }
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = _connection(url)
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise RetryableJobError(
            f"{_name(url)} could not be reached: {error}"
        ) from error
    finally:
        connection.close()
    if status in _LATER or status >= 500:
        raise RetryableJobError(f"{_name(url)} answered {status}; it is tried again.")
    if not 200 <= status < 300:
        raise WebhookRefusedError(
            f"{_name(url)} answered {status}; correct NESCIO_WEBHOOK_URL or the receiver, "
            "then start the job again."
        )
    return status


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the internet, whatever form it hides in."""
    found: _Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        found = _inner(found)
    return found.is_global and not found.is_multicast


def _inner(address: ipaddress.IPv6Address) -> _Address:
    """Return the IPv4 address that an IPv6 address stands for, or itself."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or address


def _checked_url(text: str) -> SplitResult:
    url = urlsplit(text)
    schemes = ("https", "http") if settings.WEBHOOK_ALLOW_PRIVATE else ("https",)
    if url.scheme not in schemes or not url.hostname:
        raise WebhookRefusedError(
            f"NESCIO_WEBHOOK_URL begins with {url.scheme or 'nothing'!r}; it must be an "
            f"address of the kind {' or '.join(schemes)}."
        )
    if url.username or url.password:
        raise WebhookRefusedError(
            "NESCIO_WEBHOOK_URL holds a name or a password; take it out, the posts are "
            "signed."
        )
    return url


def _connection(url: SplitResult) -> http.client.HTTPConnection:
    """Return a connection that will go to an address which was checked.

    Raises:
        WebhookRefusedError: The host has an address that is not public.
        RetryableJobError: The host could not be looked up.
    """
    host, port = url.hostname or "", url.port or _PORTS[url.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RetryableJobError(f"{host} could not be looked up: {error}") from error
    addresses = [str(each[4][0]) for each in found]
    private = [each for each in addresses if not is_public(each)]
    if private and not settings.WEBHOOK_ALLOW_PRIVATE:
        raise WebhookRefusedError(
            f"{host} is {private[0]}, which is no public address; name another "
            "NESCIO_WEBHOOK_URL, or set NESCIO_WEBHOOK_ALLOW_PRIVATE."
        )
    kind = _PinnedTls if url.scheme == "https" else _Pinned
    return kind(host, port, address=addresses[0])


class _Pinned(http.client.HTTPConnection):
    """A connection to an address that was checked before."""

    def __init__(self, host: str, port: int, *, address: str) -> None:
        super().__init__(host, port, timeout=TIMEOUT_SECONDS)
        self._address = address

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)


class _PinnedTls(_Pinned):
    """The same with TLS, whose certificate must be the host's."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)


def _name(url: SplitResult) -> str:
    """Return the address without what its query may hold."""
    return f"{url.scheme}://{url.netloc}{url.path}"
