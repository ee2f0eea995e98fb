"""Deliver events to the endpoints: route, post in order, retry, give up.

A process claims an endpoint for a while, posts what is due there and records the
results. If it is killed in between, its claim expires and the same message is posted
again: at least once, with the same id.
"""

import logging
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.mail import fault_of
from integrations.events.alerts import note_alerts
from integrations.events.models import Delivery, Endpoint, Event
from integrations.events.payloads import body_for
from integrations.events.posting import Message, Result, post

logger = logging.getLogger(__name__)

# Waits before the next attempt: eight attempts within about 28 hours.
RETRY_WAITS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)
)
MAX_ATTEMPTS = len(RETRY_WAITS) + 1
# Pauses of a failing endpoint, longer after each failure.
_PAUSES = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 300, 600))
SWITCHED_OFF_AFTER = timedelta(days=3)
_JITTER = 0.2
_CLAIM = timedelta(minutes=2)
_ROUND_SECONDS = 20.0
_MAX_ENDPOINTS = 8  # at a time, each in a thread
_MAX_POSTS = 20  # per endpoint at a time
_MAX_ROUTED = 500
OUT_OF_SIGHT = "Its owner may no longer see what it is about."


@dataclass(frozen=True, slots=True)
class _Batch:
    """The deliveries due at one endpoint, oldest first."""

    endpoint_id: int
    url: str
    keys: tuple[bytes, ...]
    posts: tuple[tuple[int, Message], ...]


def deliver_due() -> int:
    """Route new events and post what is due, for about 20 seconds; count the posts."""
    while _route() == _MAX_ROUTED:
        pass
    deadline, posted = time.monotonic() + _ROUND_SECONDS, 0
    while time.monotonic() < deadline:
        batches = _claim(timezone.now())
        if not batches:
            break
        # The threads only post; they open no database connection.
        with ThreadPoolExecutor(len(batches)) as pool:
            each = pool.map(lambda batch: _post_in_order(batch, deadline), batches)
            for batch, results in zip(batches, each, strict=True):
                _record(batch, results)
                posted += len(results)
    return posted


def message_of(event: Event, endpoint: Endpoint) -> Message | None:
    body = body_for(event, endpoint.owner)
    return None if body is None else Message(event.message_id, body)


def attempt_fields(result: Result, at: datetime) -> dict[str, Any]:
    return {
        "last_attempt_at": at,
        "status": result.status,
        "milliseconds": result.milliseconds,
        "response": result.response,
        "error": result.error,
    }


@transaction.atomic
def _route() -> int:
    """Write the deliveries and alerts of new events, for those who may see them.

    Returns the number of events.
    """
    fresh = Event.objects.filter(routed_at__isnull=True).order_by("pk")
    locked = fresh.select_for_update(skip_locked=True, of=("self",), no_key=True)
    events = list(locked.select_related("knowledge_base")[:_MAX_ROUTED])
    now = timezone.now()
    Delivery.objects.bulk_create(
        [
            Delivery(endpoint=endpoint, event=event, next_attempt_at=now)
            for event in events
            for endpoint in Endpoint.objects.wanting(event)
            if body_for(event, endpoint.owner) is not None
        ],
        ignore_conflicts=True,
    )
    note_alerts(events)
    Event.objects.filter(pk__in=[each.pk for each in events]).update(routed_at=now)
    return len(events)


@transaction.atomic
def _claim(now: datetime) -> list[_Batch]:
    free = Endpoint.objects.with_due(now).select_related("owner")
    locked = free.select_for_update(skip_locked=True, of=("self",), no_key=True)
    endpoints = list(locked.order_by("not_before", "pk")[:_MAX_ENDPOINTS])
    ids = [each.pk for each in endpoints]
    Endpoint.objects.filter(pk__in=ids).update(not_before=now + _CLAIM)
    return [_batch(endpoint, now) for endpoint in endpoints]


def _batch(endpoint: Endpoint, now: datetime) -> _Batch:
    due = Delivery.objects.due(now).filter(endpoint=endpoint).order_by("event_id")
    posts = []
    for delivery in due.select_related("event__knowledge_base")[:_MAX_POSTS]:
        message = message_of(delivery.event, endpoint)
        if message is None:
            delivery.state, delivery.error = Delivery.State.FAILED, OUT_OF_SIGHT
            delivery.save(update_fields=["state", "error"])
        else:
            posts.append((delivery.pk, message))
    return _Batch(endpoint.pk, endpoint.url, endpoint.signing_keys(now), tuple(posts))


def _post_in_order(batch: _Batch, deadline: float) -> list[Result]:
    """Post until one fails, so that an endpoint that is down is tried only once."""
    results: list[Result] = []
    for _delivery, message in batch.posts:
        if results and time.monotonic() > deadline:
            break
        results.append(post(batch.url, message, batch.keys))
        if not results[-1].is_accepted:
            break
    return results


@transaction.atomic
def _record(batch: _Batch, results: Sequence[Result]) -> None:
    now = timezone.now()
    for (delivery_id, _message), result in zip(batch.posts, results, strict=False):
        _record_one(delivery_id, result, now)
    locked = Endpoint.objects.select_for_update(of=("self",))
    endpoint = locked.filter(pk=batch.endpoint_id).first()
    if endpoint is None:  # deleted meanwhile, with its deliveries
        return
    endpoint.not_before = None
    if any(result.is_accepted for result in results):
        endpoint.failures, endpoint.failing_since = 0, None
    failed = results[-1] if results and not results[-1].is_accepted else None
    if failed is not None:
        pause = _PAUSES[min(endpoint.failures, len(_PAUSES) - 1)]
        endpoint.failures += 1
        endpoint.failing_since = endpoint.failing_since or now
        endpoint.not_before = now + pause
    endpoint.save(update_fields=["failures", "failing_since", "not_before"])
    if failed is not None and endpoint.is_active:
        _switch_off_where_due(endpoint, failed, now)


def _record_one(delivery_id: int, result: Result, now: datetime) -> None:
    rows = Delivery.objects.filter(pk=delivery_id)
    rows.update(attempts=F("attempts") + 1, **attempt_fields(result, now))
    if result.is_accepted:
        rows.update(state=Delivery.State.DELIVERED, next_attempt_at=None)
        return
    attempts = rows.values_list("attempts", flat=True).first() or MAX_ATTEMPTS
    if attempts >= MAX_ATTEMPTS:
        rows.update(state=Delivery.State.FAILED, next_attempt_at=None)
        return
    wait = RETRY_WAITS[attempts - 1] * random.uniform(1, 1 + _JITTER)  # noqa: S311  # spreads load
    rows.update(next_attempt_at=now + wait)


def _switch_off_where_due(endpoint: Endpoint, failed: Result, now: datetime) -> None:
    since = endpoint.failing_since or now
    if failed.status == HTTPStatus.GONE:
        why = "It answered 410: it wants no more messages."
    elif since <= now - SWITCHED_OFF_AFTER:
        why = f"Every attempt since {since:%Y-%m-%d %H:%M} UTC failed. {failed.error}"
    else:
        return
    endpoint.is_active = False
    endpoint.switched_off_at, endpoint.switched_off_reason = now, why[:300]
    endpoint.save(update_fields=["is_active", "switched_off_at", "switched_off_reason"])
    logger.warning("Webhook endpoint %d was switched off: %s", endpoint.pk, why)
    transaction.on_commit(lambda: _mail_owner(endpoint), robust=True)


def _mail_owner(endpoint: Endpoint) -> None:
    owner = endpoint.owner
    if not settings.MAIL_URL or owner is None or not owner.email:
        return
    try:
        send_mail(
            f"The webhook endpoint {endpoint.name} was switched off",
            f"{endpoint.switched_off_reason}\n\nCorrect the receiver, send a test, switch "
            "the endpoint on again and replay what it missed:\n"
            f"{settings.PUBLIC_URL}/admin/integrations/endpoint/{endpoint.pk}/change/\n",
            settings.DEFAULT_FROM_EMAIL,
            [owner.email],
        )
    except (SMTPException, OSError) as error:
        said = fault_of(error).said
        logger.warning("No mail on it was sent: the mail server %s", said)
