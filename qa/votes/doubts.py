"""Verified entries that users vote wrong or outdated after an answer from them.

Such an entry only becomes due for review: it answers as before until a person has
looked at it. Verifying it again dismisses the votes up to then.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from kb.documents.models import of_base_in_use
from kb.entries.models import Entry
from kb.upkeep.models import Upkeep
from kb.upkeep.services import doubt, end_doubts
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.votes.entry_confidence import ABOUT_EVIDENCE, AGAINST
from qa.votes.models import Vote

# How far votes are read back, so that a worker that was down for some days catches up.
_LOOKED_BACK: Final = timedelta(days=7)
_AT_ONCE: Final = 500
# So many votes down without a reason equal one with, if they outnumber the votes up.
_MIN_SILENT: Final = 2


@dataclass(frozen=True, slots=True)
class Said:
    """A rater's newest vote on an entry; `is_reasoned` if it says wrong or outdated."""

    is_up: bool
    is_reasoned: bool


@dataclass(frozen=True, slots=True)
class Doubt:
    """A verified entry that became due, and the newest vote against it."""

    entry: Entry
    vote: Vote


def is_doubted(said: Iterable[Said]) -> bool:
    """Return whether raters, each counted once, give reason to review an entry."""
    given = list(said)
    against = sum(not each.is_up for each in given)
    is_reasoned = any(each.is_reasoned for each in given)
    return is_reasoned or (against >= _MIN_SILENT and 2 * against > len(given))


def doubt_entries(notify: Callable[[Doubt], object]) -> int:
    """Make entries due, or no longer due, by their votes; return how many became due.

    Args:
        notify: Called in the transaction, once for each that became due.
    """
    now = timezone.now()
    cited = AnswerEvidence.objects.filter(
        role=AnswerEvidence.Role.CITED,
        answer__votes__is_up=False,
        answer__votes__updated_at__gte=now - _LOOKED_BACK,
    )
    voted = Q(pk__in=cited.values("entry")) | Q(upkeep__doubted_since__isnull=False)
    rows = Entry.objects.filter(voted, of_base_in_use(), state=Entry.State.VERIFIED)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    made = 0
    for first in range(0, len(ids), _AT_ONCE):
        made += _weigh(ids[first : first + _AT_ONCE], notify, now)
    return made


@transaction.atomic
def _weigh(
    ids: Collection[int], notify: Callable[[Doubt], object], now: datetime
) -> int:
    votes = _newest_votes(ids)
    doubted = {
        entry
        for entry, by_rater in votes.items()
        if is_doubted(
            Said(vote.is_up, not AGAINST.isdisjoint(vote.reasons))
            for vote in by_rater.values()
        )
    }
    known = Upkeep.objects.filter(pk__in=ids, doubted_since__isnull=False)
    end_doubts(set(known.values_list("pk", flat=True)) - doubted)
    fresh = doubt(doubted, at=now)
    entries = (
        Entry.objects.select_related("owner").defer("search_vector").in_bulk(fresh)
    )
    for pk in fresh:
        against = (vote for vote in votes[pk].values() if not vote.is_up)
        newest = max(against, key=lambda vote: vote.updated_at)
        notify(Doubt(entries[pk], newest))
    return len(fresh)


def _newest_votes(ids: Collection[int]) -> dict[int, dict[int, Vote]]:
    """Return {entry: {rater: newest vote}}, on its current text since verification."""
    rows = Vote.objects.filter(
        ABOUT_EVIDENCE,
        answer__evidence__entry__in=ids,
        answer__evidence__role=AnswerEvidence.Role.CITED,
        answer__evidence__revision__text=F("answer__evidence__entry__text"),
        answer__evidence__revision__question=F("answer__evidence__entry__question"),
        updated_at__gt=F("answer__evidence__entry__verified_at"),
    ).exclude(answer__channel=Answer.Channel.EVALUATION)
    pairs = rows.order_by("updated_at", "pk").values_list(
        "pk", "answer__evidence__entry"
    )
    votes = Vote.objects.select_related("answer").in_bulk([pk for pk, _ in pairs])
    found: dict[int, dict[int, Vote]] = {}
    for pk, entry in pairs:
        if pk in votes:  # not taken back since
            found.setdefault(entry, {})[votes[pk].user_id] = votes[pk]
    return found
