"""Manual changes to endpoints and deliveries, and events that are due to time."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Min
from django.utils import timezone

from accounts.acting import unrestricted
from accounts.exceptions import ConflictError, NotFoundError
from integrations.events.delivery import attempt_fields, message_of
from integrations.events.models import (
    TEST,
    Delivery,
    Endpoint,
    Event,
    EventType,
    new_seed,
)
from integrations.events.posting import EndpointStateError, checked_url, post
from kb.documents.models import of_base_in_use
from kb.entries.models import Entry

_LOOKED_BACK = timedelta(days=1)  # for entries that expired while no worker ran


def create_endpoint(*, by: User, **fields: Any) -> Endpoint:
    """Create an endpoint that gets what `by` may see."""
    return _saved(Endpoint(owner=by, **fields), fields)


def edit_endpoint(endpoint_id: int, *, by: User, **changes: Any) -> Endpoint:
    """Change one's own endpoint, as `create_endpoint`; any admin may switch one off."""
    is_anyones = changes == {"is_active": False}
    with transaction.atomic():
        endpoint = _editable(endpoint_id, by, is_anyones=is_anyones, is_held=True)
        for name, value in changes.items():
            setattr(endpoint, name, value)
        if endpoint.is_active and changes:
            switch_on(endpoint)
        return _saved(endpoint, changes)


def delete_endpoint(endpoint_id: int, *, by: User) -> None:
    _editable(endpoint_id, by).delete()


def rotate_secret(endpoint_id: int, *, by: User) -> Endpoint:
    """Give an endpoint a new secret; the former one also signs for a day."""
    with transaction.atomic():
        endpoint = _editable(endpoint_id, by, is_held=True)
        endpoint.former_seed, endpoint.secret_seed = endpoint.secret_seed, new_seed()
        endpoint.rotated_at = timezone.now()
        endpoint.save(update_fields=["former_seed", "secret_seed", "rotated_at"])
    return endpoint


def switch_on(endpoint: Endpoint) -> None:
    """Activate an endpoint and clear its failures, without saving it."""
    endpoint.is_active, endpoint.failures = True, 0
    endpoint.failing_since = endpoint.switched_off_at = endpoint.not_before = None
    endpoint.switched_off_reason = ""


def send_test(endpoint_id: int, *, by: User) -> Delivery:
    """Post a test event at once, even if the endpoint is inactive, without retries.

    Takes as long as the endpoint does, at most 10 seconds.
    """
    endpoint, now = _editable(endpoint_id, by), timezone.now()
    event = Event.objects.create(
        type=TEST, data={"endpoint": endpoint.name}, created_at=now, routed_at=now
    )
    delivery = Delivery(endpoint=endpoint, event=event, attempts=1)
    message = message_of(event, endpoint)
    if message is None:
        raise EndpointStateError(
            "The endpoint's owner is gone or not active, so nothing is sent; make a new "
            "endpoint."
        )
    result = post(endpoint.url, message, endpoint.signing_keys(now))
    accepted = result.is_accepted
    delivery.state = Delivery.State.DELIVERED if accepted else Delivery.State.FAILED
    for name, value in attempt_fields(result, timezone.now()).items():
        setattr(delivery, name, value)
    delivery.save()
    return delivery


def replay(delivery_id: int, *, by: User) -> Delivery:
    """Schedule a delivery again under its old id, with all its attempts to spend.

    Raises:
        NotFoundError: There is none that `by` may see.
        EndpointStateError: The endpoint is off.
    """
    with transaction.atomic():
        rows = Delivery.objects.visible_to(by).select_related("endpoint")
        delivery = rows.select_for_update(of=("self",)).filter(pk=delivery_id).first()
        if delivery is None:
            raise NotFoundError(f"There is no delivery {delivery_id} that you may see.")
        if not delivery.endpoint.is_active:
            raise EndpointStateError(
                f"The endpoint {delivery.endpoint} is off; switch it on, then replay."
            )
        delivery.state, delivery.attempts = Delivery.State.PENDING, 0
        delivery.next_attempt_at = timezone.now()
        delivery.save(update_fields=["state", "attempts", "next_attempt_at"])
    return delivery


def note_expired() -> int:
    """Write an event for each entry that expired in the last day; return the count."""
    now = timezone.now()
    wanting = Endpoint.objects.filter(
        is_active=True, types__contains=[EventType.ENTRY_EXPIRED]
    )
    first: datetime | None = wanting.aggregate(first=Min("created_at"))["first"]
    if first is None:
        return 0
    since = max(first, now - _LOOKED_BACK)
    with unrestricted("expired entries"):
        expired = Entry.objects.servable().expired(now)
        expired = expired.filter(of_base_in_use(), valid_until__gt=since)
        rows = list(expired.values_list("pk", "knowledge_base_id", "valid_until"))
    events = [
        Event(
            type=EventType.ENTRY_EXPIRED,
            knowledge_base_id=base_id,
            data={"entry": entry_id, "valid_until": until.isoformat()},
            key=f"{EventType.ENTRY_EXPIRED} {entry_id} {until.isoformat()}",
            created_at=now,
        )
        for entry_id, base_id, until in rows
        if until is not None
    ]
    known = Event.objects.filter(key__in=[each.key for each in events])
    before = set(known.values_list("key", flat=True))
    fresh = [each for each in events if each.key not in before]
    Event.objects.bulk_create(fresh, ignore_conflicts=True)
    return len(fresh)


def prune_events(older_than: timedelta) -> int:
    """Delete old events with their deliveries; return the number deleted."""
    old = Event.objects.filter(created_at__lt=timezone.now() - older_than)
    Delivery.objects.filter(event__in=old).delete()
    _, deleted = old.delete()
    return deleted.get(Event._meta.label, 0)  # without the alerts of the events


def _saved(endpoint: Endpoint, changed: Iterable[str]) -> Endpoint:
    if "url" in changed:
        checked_url(endpoint.url)
    try:
        with transaction.atomic():
            endpoint.save()
    except IntegrityError as error:
        raise ConflictError(
            f"There is a webhook endpoint {endpoint.name!r} already; take another name."
        ) from error
    return endpoint


def _editable(
    endpoint_id: int, by: User, *, is_anyones: bool = False, is_held: bool = False
) -> Endpoint:
    """Return an endpoint; `is_held` locks it against concurrent changes by a worker."""
    rows = Endpoint.objects.select_related("owner", "knowledge_base")
    if not is_anyones:
        rows = rows.editable_by(by)
    if is_held:
        rows = rows.select_for_update(of=("self",), no_key=True)
    endpoint = rows.filter(pk=endpoint_id).first()
    if endpoint is None:
        raise NotFoundError(f"You have no endpoint {endpoint_id}.")
    return endpoint
