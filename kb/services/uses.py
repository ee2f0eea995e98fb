"""What is counted of an entry's use; who knows the answers hands the counts in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from kb.models import Upkeep

_ADD = """
UPDATE kb_upkeep k SET
    uses = k.uses + n.uses,
    last_used_at = greatest(k.last_used_at, n.last_used_at),
    up = k.up + n.up,
    down = k.down + n.down
FROM unnest(%s::bigint[], %s::int[], %s::timestamptz[], %s::int[], %s::int[])
    AS n (entry_id, uses, last_used_at, up, down)
WHERE k.entry_id = n.entry_id
"""


@dataclass(frozen=True, slots=True)
class EntryUse:
    """What came to an entry's counts.

    Attributes:
        uses: Answered questions that cited it.
        last_used_at: When the last of them was decided; None where there is none.
        up: Votes for such answers; below 0 where more were taken back than given.
        down: Votes against them, likewise.
    """

    entry_id: int
    uses: int = 0
    last_used_at: datetime | None = None
    up: int = 0
    down: int = 0


@transaction.atomic
def add_uses(additions: Sequence[EntryUse]) -> None:
    """Add to the counts of entries, each named once; those erased since are left out.

    Counts are no change of an entry: neither a revision nor `updated_at` is written.
    """
    ids = [each.entry_id for each in additions]
    # In the order in which bulk changes of entries come to these rows.
    locked = Upkeep.objects.select_for_update(no_key=True).order_by("pk")
    list(locked.filter(pk__in=ids).values_list("pk"))
    columns: tuple[list[int] | list[datetime | None], ...] = (
        ids,
        [each.uses for each in additions],
        [each.last_used_at for each in additions],
        [each.up for each in additions],
        [each.down for each in additions],
    )
    with connection.cursor() as cursor:
        cursor.execute(_ADD, columns)
