"""Proposals by followed sources to retire entries they no longer have; people decide.

A proposal is a flag that names its source. A declined one is kept, so that it is not
made again.
"""

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from kb.entries.models import SERVED_STATES, EntryQuerySet
from kb.upkeep.models import Flag, Upkeep


@transaction.atomic
def propose_retirement(entries: EntryQuerySet, *, source_id: int, note: str) -> int:
    """Make entries due because their source no longer has them; return how many."""
    known = Flag.objects.filter(source=source_id, entry=OuterRef("pk"))
    fresh = entries.filter(~Exists(known), state__in=SERVED_STATES)
    ids = list(fresh.order_by("pk").values_list("pk", flat=True))
    now = timezone.now()
    rows = list(Upkeep.objects.select_for_update(no_key=True).filter(pk__in=ids))
    for row in rows:
        row.flagged_since = row.flagged_since or now
        row.postponed_until = row.postponed_by = None
    Upkeep.objects.bulk_update(
        rows, ["flagged_since", "postponed_until", "postponed_by"], batch_size=500
    )
    Flag.objects.bulk_create(
        [
            Flag(entry_id=key, source_id=source_id, note=note, created_at=now)
            for key in ids
        ],
        batch_size=500,
    )
    return len(ids)


@transaction.atomic
def withdraw_retirement(entries: EntryQuerySet, *, source_id: int) -> int:
    """Withdraw proposals for entries that their source has again; return how many."""
    flags = Flag.objects.filter(source=source_id, entry__in=entries)
    ids = sorted(set(flags.values_list("entry", flat=True)))
    if not ids:
        return 0
    rows = Upkeep.objects.select_for_update(no_key=True).filter(pk__in=ids)
    list(rows.order_by("pk"))
    flags.delete()
    left = Flag.objects.open().filter(entry=OuterRef("pk"))
    rows.filter(~Exists(left)).update(flagged_since=None)
    return len(ids)
