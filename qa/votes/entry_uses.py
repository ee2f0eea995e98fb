"""Counting how entries are used and voted on, and tagging answers by their evidence.

Answering a question writes no counts. Evidence must be counted exactly once, but ids
are assigned before their transaction commits, so that a smaller id may appear after a
larger one was read. Therefore the largest id is noted, and then the number of a
transaction that began later. Once all earlier transactions with a write lock on the
evidence have ended, no further id up to the noted one can appear. A transaction has its
number before it takes ids of evidence because `record_outcome` writes the answer first.
"""

from dataclasses import replace

from django.db import connection, transaction
from django.db.models import Count, Max, QuerySet, Sum
from django.db.models.functions import Coalesce

from accounts.acting import unrestricted
from kb.upkeep.services import EntryUse, add_uses
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.votes.models import UseCursor, VoteChange

_BATCH = 5_000
_BATCHES = 200  # a million pieces of evidence per run, which takes some minutes
# Whether a session writes evidence in a transaction from before the noted number. Locks
# show only the last 32 bits; a transaction without a number yet may be earlier.
_UNSETTLED = """
SELECT EXISTS (
    SELECT FROM pg_locks l LEFT JOIN pg_locks x
        ON x.pid = l.pid AND x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock'
    WHERE l.locktype = 'relation' AND l.relation = 'qa_answerevidence'::regclass
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid()
        AND (x.transactionid IS NULL OR
             (%s - x.transactionid::text::bigint) & 4294967295 BETWEEN 1 AND 2147483647)
)
"""
# Only rows that gain a tag are rewritten.
_TAG_ANSWERS = """
UPDATE qa_answer a SET
    product_line_id = coalesce(a.product_line_id, e.product_line_id),
    line_of_business_id = coalesce(a.line_of_business_id, e.line_of_business_id)
FROM qa_answerevidence v JOIN kb_entry e ON e.id = v.entry_id
WHERE v.answer_id = a.id AND v.rank = 1 AND v.id > %s AND v.id <= %s AND (
    a.product_line_id IS NULL AND e.product_line_id IS NOT NULL
    OR a.line_of_business_id IS NULL AND e.line_of_business_id IS NOT NULL
)
"""


def count_uses(*, batches: int = _BATCHES, batch: int = _BATCH) -> int:
    """Add new evidence and votes to the entries' counts; return how many rows were read.

    Safe to run concurrently: the second run does nothing. Each batch is one
    transaction.
    """
    read = 0
    for _ in range(batches):
        counted = _count_evidence(batch) + _count_votes(batch)
        if not counted and not _note():
            break
        read += counted
    return read


@transaction.atomic
def _count_evidence(batch: int) -> int:
    """Count the next settled pieces of evidence; return how many."""
    cursor = _lock_cursor()
    if (
        cursor is None
        or cursor.counted_to >= cursor.noted_to
        or not _is_settled(cursor)
    ):
        return 0
    settled = AnswerEvidence.objects.filter(
        pk__gt=cursor.counted_to, pk__lte=cursor.noted_to
    )
    ids = list(settled.order_by("pk").values_list("pk", flat=True)[:batch])
    upto = ids[-1] if len(ids) == batch else cursor.noted_to
    rows = (
        _cited()
        .filter(pk__gt=cursor.counted_to, pk__lte=upto)
        .values("entry_id")
        .annotate(
            uses=Count("pk"),
            last=Max(Coalesce("answer__decided_at", "answer__created_at")),
        )
        .values_list("entry_id", "uses", "last")
    )
    add_uses([EntryUse(entry, uses, last) for entry, uses, last in rows.order_by()])
    with unrestricted("what answers are about"), connection.cursor() as sql:
        sql.execute(_TAG_ANSWERS, [cursor.counted_to, upto])
    cursor.counted_to = upto
    cursor.save(update_fields=["counted_to"])
    return len(ids)


@transaction.atomic
def _count_votes(batch: int) -> int:
    """Add the next changes of votes and delete them; return how many."""
    waiting = VoteChange.objects.select_for_update(skip_locked=True).order_by("pk")
    changes = list(waiting[:batch])
    if not changes:
        return 0
    sums = VoteChange.objects.filter(pk__in=[change.pk for change in changes])
    by_answer = {
        answer: (up, down)
        for answer, up, down in sums.values("answer_id")
        .annotate(ups=Sum("up"), downs=Sum("down"))
        .values_list("answer_id", "ups", "downs")
    }
    found: dict[int, EntryUse] = {}
    cited = _cited().filter(answer__in=list(by_answer)).order_by()
    for answer, entry in cited.values_list("answer_id", "entry_id"):
        up, down = by_answer[answer]
        one = found.get(entry, EntryUse(entry))
        found[entry] = replace(one, up=one.up + up, down=one.down + down)
    add_uses(list(found.values()))
    sums.delete()
    return len(changes)


def _note() -> bool:
    """Note the largest id of evidence; return whether counting can go on at once."""
    with transaction.atomic():
        UseCursor.objects.get_or_create(pk=1)
        cursor = _lock_cursor()
        if cursor is None or cursor.counted_to < cursor.noted_to:
            return False  # another run counts, or the noted ids are not settled yet
        largest = AnswerEvidence.objects.aggregate(largest=Max("pk"))["largest"] or 0
        if largest <= cursor.counted_to:
            return False
        cursor.noted_to, cursor.noted_before = largest, None
        cursor.save(update_fields=["noted_to", "noted_before"])
    # Its own transaction: the number must be given after the ids were read.
    with transaction.atomic():
        cursor = _lock_cursor()
        if cursor is None:
            return False
        _is_settled(cursor)  # notes the number
    return True


def _is_settled(cursor: UseCursor) -> bool:
    """Return whether all transactions have ended that may hold a noted id."""
    with connection.cursor() as sql:
        if cursor.noted_before is None:  # killed between the two notes
            sql.execute("SELECT pg_current_xact_id()::text::bigint")
            cursor.noted_before = sql.fetchone()[0]
            cursor.save(update_fields=["noted_before"])
        sql.execute(_UNSETTLED, [cursor.noted_before])
        is_unsettled: bool = sql.fetchone()[0]
        return not is_unsettled


def _lock_cursor() -> UseCursor | None:
    return (
        UseCursor.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(pk=1)
        .first()
    )


def _cited() -> QuerySet[AnswerEvidence]:
    """Return the cited evidence of all answers except those of evaluations."""
    return AnswerEvidence.objects.filter(role=AnswerEvidence.Role.CITED).exclude(
        answer__channel=Answer.Channel.EVALUATION
    )
