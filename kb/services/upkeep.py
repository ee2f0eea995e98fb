"""Postponing what is due, and the nightly round that keeps dates and policies true."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from jobs.run import JobRun
from jobs.services import enqueue
from kb.exceptions import EntryNotFoundError, InvalidKnowledgeError
from kb.models import Entry, KnowledgeBase, Upkeep

from .bulk import BATCH, Action, BulkChange, change_entries

KIND = "kb.keep_upkeep"
POSTPONE_MOST_DAYS = 365

_RECKON_ENTRIES = 5_000
# Both rows are locked, and entries first as everywhere: a verification that commits
# meanwhile is waited for and read as it then stands.
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
    """Keep an entry out of the queue for `days`; what it says and answers stays.

    It ends early when the entry is verified or gets another state.

    Raises:
        EntryNotFoundError: There is no such entry.
        InvalidKnowledgeError: `days` is not from 1 to 365, or the entry is never due.
    """
    if not 1 <= days <= POSTPONE_MOST_DAYS:
        raise InvalidKnowledgeError(
            "days", f"days {days} is not in 1 to {POSTPONE_MOST_DAYS}; give one in it."
        )
    row = Upkeep.objects.select_for_update(no_key=True).filter(entry=entry_id).first()
    if row is None:
        raise EntryNotFoundError(f"There is no entry {entry_id}.")
    if row.due_at is None:
        raise InvalidKnowledgeError(
            "days", f"Entry {entry_id} is never due; there is nothing to postpone."
        )
    row.postponed_until = timezone.now() + timedelta(days=days)
    row.postponed_by = by
    row.save(update_fields=["postponed_until", "postponed_by"])
    row.refresh_from_db(fields=["due_at"])
    return row


def enqueue_round() -> None:
    """Let a worker bring all dates in step with the knowledge bases' intervals."""
    enqueue(KIND, {}, idempotency_key=KIND)


def keep_upkeep(run: JobRun) -> dict[str, object]:
    """Bring every entry's dates in step, then doubt what is overdue for too long.

    The handler of jobs of the kind "kb.keep_upkeep". Triggers keep the dates of single
    entries; a changed interval of a knowledge base reaches its entries here.

    Returns:
        How many dates moved and how many entries fell to needs_review.
    """
    after: int | None = run.cursor.get("after", 0)
    moved: int = run.cursor.get("moved", 0)
    while after is not None:
        with run.step() as step, connection.cursor() as sql:
            sql.execute(_RECKON, {"after": after, "limit": _RECKON_ENTRIES})
            after, count = sql.fetchone()
            moved += count
            step.advance(done=moved, cursor={"after": after, "moved": moved})
    doubted: int = run.cursor.get("doubted", 0)
    for knowledge_base in KnowledgeBase.objects.filter(
        when_overdue=KnowledgeBase.Overdue.DOUBT
    ):
        while True:
            with run.step() as step:
                count = doubt_overdue(knowledge_base)
                doubted += count
                step.advance(
                    done=moved + doubted,
                    cursor={"after": None, "moved": moved, "doubted": doubted},
                )
            if not count:
                break
    return {"moved": moved, "doubted": doubted}


def doubt_overdue(knowledge_base: KnowledgeBase, *, limit: int = BATCH) -> int:
    """Take back verifications whose review is overdue beyond the grace period.

    What was postponed is spared for as long.

    Returns:
        How many of the at most `limit` entries that were looked at.
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
    ids = list(rows.order_by("upkeep__review_due").values_list("pk", flat=True)[:limit])
    reason = (
        f"Its review was overdue by more than {knowledge_base.overdue_grace_days} days."
    )
    change = BulkChange(Action.MARK, reason=reason)
    return change_entries(ids, change, by=None, may_verify=False).changed
