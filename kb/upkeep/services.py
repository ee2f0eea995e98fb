"""The review queue: due entries, postponing, flags, the nightly round, usage counts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Prefetch, Q
from django.utils import timezone

from accounts.prepared import execute
from accounts.roles import where_not_elsewhere
from jobs.run import JobRun
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase, check_writable
from kb.entries.bulk import BATCH, Action, BulkChange, change_entries
from kb.entries.due import Place, Reason
from kb.entries.models import Entry, EntryQuerySet
from kb.exceptions import EntryNotFoundError, InvalidKnowledgeError, NeverDueError
from kb.text.cleaning import clean_text
from kb.upkeep.models import Flag, Upkeep

KIND = "kb.keep_upkeep"
MAX_POSTPONE_DAYS = 365
FLAG_NOTE_LIMIT = 1_000

_RECKON_ENTRIES = 5_000
# Both rows are locked, entries first as everywhere: a verification that commits
# meanwhile is waited for and then read.
_RECKON = """
WITH span AS (
    SELECT id FROM kb_entry WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
), stale AS (
    SELECT e.id,
           kb_review_due(e.state, e.verified_at, coalesce(
               e.review_interval_days, b.review_interval_days)) AS review_due,
           kb_expiry_notice(e.state, e.valid_until) AS expiry_notice_at
    FROM kb_entry e
    JOIN kb_knowledgebase b ON b.id = e.knowledge_base_id
    JOIN kb_upkeep k ON k.entry_id = e.id
    WHERE e.id > %(after)s AND e.id <= (SELECT max(id) FROM span)
          AND (k.review_due, k.expiry_notice_at) IS DISTINCT FROM (
              kb_review_due(e.state, e.verified_at, coalesce(
                  e.review_interval_days, b.review_interval_days)),
              kb_expiry_notice(e.state, e.valid_until))
    ORDER BY e.id FOR NO KEY UPDATE OF e, k
), moved AS (
    UPDATE kb_upkeep k
    SET review_due = s.review_due, expiry_notice_at = s.expiry_notice_at
    FROM stale s WHERE k.entry_id = s.id
    RETURNING 1
)
SELECT (SELECT max(id) FROM span), (SELECT count(*) FROM moved)
"""


@transaction.atomic
def postpone_review(*, entry_id: int, by: User, days: int) -> Upkeep:
    """Keep an entry out of the queue for `days`; its content and use are unaffected.

    It ends early when the entry is verified or changes its state.
    """
    if not 1 <= days <= MAX_POSTPONE_DAYS:
        raise InvalidKnowledgeError(
            "days", f"days {days} is not between 1 and {MAX_POSTPONE_DAYS}."
        )
    rows = Upkeep.objects.select_for_update(of=("self",), no_key=True)
    row = rows.select_related("entry").filter(entry=entry_id).first()
    if row is None:
        raise EntryNotFoundError(f"There is no entry {entry_id}.")
    check_writable(by, row.entry.knowledge_base_id)
    if row.due_at is None:
        raise NeverDueError(
            f"Entry {entry_id} is never due; there is nothing to postpone."
        )
    row.postponed_until = timezone.now() + timedelta(days=days)
    row.postponed_by = by
    row.save(update_fields=["postponed_until", "postponed_by"])
    row.refresh_from_db(fields=["due_at"])
    return row


def enqueue_round() -> None:
    enqueue(KIND, {}, idempotency_key=KIND)


def keep_upkeep(run: JobRun) -> dict[str, object]:
    """Update every entry's dates, then unverify entries overdue for too long.

    The handler of jobs of the kind "kb.keep_upkeep". Triggers update the dates of
    single entries; a changed interval of a knowledge base is applied to its entries
    here.
    """
    after: int | None = run.cursor.get("after", 0)
    moved: int = run.cursor.get("moved", 0)
    while after is not None:
        with run.step() as step:
            limits = {"after": after, "limit": _RECKON_ENTRIES}
            ((after, count),) = execute(_RECKON, limits)
            moved += count
            step.advance(done=moved, cursor={"after": after, "moved": moved})
    doubted: int = run.cursor.get("doubted", 0)
    for knowledge_base in KnowledgeBase.objects.in_use().filter(
        when_overdue=KnowledgeBase.Overdue.DOUBT
    ):
        while True:
            with run.step() as step:
                count = unverify_overdue(knowledge_base)
                doubted += count
                step.advance(
                    done=moved + doubted,
                    cursor={"after": None, "moved": moved, "doubted": doubted},
                )
            if not count:
                break
    return {"moved": moved, "doubted": doubted}


def unverify_overdue(knowledge_base: KnowledgeBase) -> int:
    """Withdraw verifications whose review is overdue beyond the grace period.

    Postponed entries are spared until then. Returns how many were changed.
    """
    now = timezone.now()
    grace = timedelta(days=knowledge_base.overdue_grace_days)
    awake = Q(upkeep__postponed_until__isnull=True) | Q(
        upkeep__postponed_until__lte=now
    )
    rows = Entry.objects.filter(
        awake,
        knowledge_base=knowledge_base,
        state=Entry.State.VERIFIED,
        upkeep__review_due__lte=now - grace,
    )
    ids = list(rows.order_by("upkeep__review_due").values_list("pk", flat=True)[:BATCH])
    reason = (
        f"Its review was overdue by more than {knowledge_base.overdue_grace_days} days."
    )
    change = BulkChange(Action.MARK, reason=reason)
    return change_entries(ids, change, by=None, may_verify=False).changed


@transaction.atomic
def doubt(entry_ids: Collection[int], *, at: datetime) -> list[int]:
    """Make verified entries due since `at`; return those that were not doubted before.

    Postponed entries are due at once: the doubt was not known when they were postponed.
    """
    rows = Upkeep.objects.select_for_update(no_key=True).order_by("pk")
    fresh = rows.filter(
        pk__in=entry_ids, doubted_since=None, entry__state=Entry.State.VERIFIED
    )
    ids = list(fresh.values_list("pk", flat=True))
    Upkeep.objects.filter(pk__in=ids).update(
        doubted_since=at, postponed_until=None, postponed_by=None
    )
    return ids


def end_doubts(entry_ids: Collection[int]) -> int:
    """End the doubts about entries whose votes were withdrawn; return how many."""
    rows = Upkeep.objects.filter(pk__in=entry_ids, doubted_since__isnull=False)
    return rows.update(doubted_since=None)


@transaction.atomic
def flag_outdated(
    *, entry_id: int, by: User, reasons: Sequence[str] = (), note: str = ""
) -> Flag:
    """Make an entry due because `by` reports it as wrong or outdated.

    It stays in use. Flagging it again, before anyone has handled the flag, updates
    reasons and note. A postponed entry is due at once: the problem was not known then.
    """
    if unknown := sorted(set(reasons) - set(Flag.Reason.values)):
        known = ", ".join(Flag.Reason.values)
        raise InvalidKnowledgeError(
            "reasons",
            f"The reason {unknown[0][:40]!r} is not known; use one of {known}.",
        )
    given = [reason.value for reason in Flag.Reason if reason in reasons]
    kept = clean_text(note, field="note", limit=FLAG_NOTE_LIMIT, required=False)
    rows = Entry.objects.readable_by(by).servable().defer("search_vector")
    entry = rows.select_related("knowledge_base").filter(pk=entry_id).first()
    if entry is None:
        raise EntryNotFoundError(
            f"There is no entry {entry_id} in use that you may see."
        )
    entry.knowledge_base.check_in_use()
    row = Upkeep.objects.select_for_update(no_key=True).get(pk=entry_id)
    mine = Flag.objects.open().filter(entry=entry_id, user=by).first()
    if mine is not None:
        mine.reasons, mine.note = given or mine.reasons, kept or mine.note
        mine.save(update_fields=["reasons", "note"])
        return mine
    now = timezone.now()
    row.flagged_since = row.flagged_since or now
    row.postponed_until = row.postponed_by = None
    row.save(update_fields=["flagged_since", "postponed_until", "postponed_by"])
    return Flag.objects.create(
        entry_id=entry_id, user=by, reasons=given, note=kept, created_at=now
    )


COUNTED = 1_000  # the limit of counting queue sizes


@dataclass(frozen=True, slots=True)
class QueuePage:
    """A page of the queue; `following` is where the next one begins."""

    entries: tuple[Entry, ...]
    following: Place | None


def due_entries(
    user: User,
    *,
    at: datetime,
    mine: bool = False,
    reason: Reason | None = None,
    base: KnowledgeBase | None = None,
) -> EntryQuerySet:
    """Return entries that `user` may see and that are due at `at`, in queue order.

    Users with roles in single knowledge bases see only the entries of these.
    """
    entries = Entry.objects.visible_to(user).due(at)
    entries = entries.filter(where_not_elsewhere(user))
    if mine:
        entries = entries.filter(owner=user)
    if reason is not None:
        entries = entries.due_for(reason, at)
    if base is not None:
        entries = entries.filter(knowledge_base=base)
    return entries.in_queue_order()


def read_page(entries: EntryQuerySet, *, size: int, after: Place | None) -> QueuePage:
    if after is not None:
        entries = entries.after(after)
    rows = entries.with_revision_number().select_related(
        "upkeep", "owner", "verified_by", "knowledge_base", "audience",
        "document", "section", "product_line", "line_of_business",
    )  # fmt: skip
    flags = Prefetch("flags", Flag.objects.open().select_related("user"), "open_flags")
    found = tuple(rows.defer("search_vector").prefetch_related(flags)[: size + 1])
    page = found[:size]
    following = None
    if len(found) > size:
        kept = page[-1].upkeep
        following = Place(kept.uses, kept.due_at, kept.entry_id)
    return QueuePage(page, following)


def sizes(
    user: User, *, at: datetime, mine: bool, base: KnowledgeBase | None = None
) -> dict[Reason, int]:
    """Return how many entries are due for each reason; `COUNTED` means that or more."""
    return {
        reason: due_entries(user, at=at, mine=mine, reason=reason, base=base)
        .order_by()[:COUNTED]
        .count()
        for reason in Reason
    }


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
    """An addition to an entry's counts; negative for withdrawn votes."""

    entry_id: int
    uses: int = 0
    last_used_at: datetime | None = None
    up: int = 0
    down: int = 0


@transaction.atomic
def add_uses(additions: Sequence[EntryUse]) -> None:
    """Add to the counts of entries, each given once; erased ones are skipped.

    Counts are not a change of the entry: neither a revision nor `updated_at` is
    written.
    """
    ids = [each.entry_id for each in additions]
    # In the same order in which bulk changes of entries lock these rows.
    locked = Upkeep.objects.select_for_update(no_key=True).order_by("pk")
    list(locked.filter(pk__in=ids).values_list("pk"))
    columns: tuple[list[int] | list[datetime | None], ...] = (
        ids,
        [each.uses for each in additions],
        [each.last_used_at for each in additions],
        [each.up for each in additions],
        [each.down for each in additions],
    )
    execute(_ADD, columns)
