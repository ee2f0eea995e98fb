"""Undoing changes to entries: content, states, owners, due dates, conflicts.

A change is recorded as the revisions before and after it, with the data that revisions
do not store.
"""

from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from accounts.exceptions import ForbiddenError, NescioError
from accounts.people import person_name
from accounts.roles import Role, bases_of_role
from accounts.undo import ChangedSinceError, some_of, undoes
from kb.audiences.models import Audience
from kb.conflicts.background import enqueue_entries
from kb.conflicts.finding import (
    APART,
    outdate_conflicts,
    refresh_conflicts,
    texts_digest,
)
from kb.conflicts.models import Conflict
from kb.embedding.services import active_model, write_vectors
from kb.enrichment.models import Proposal
from kb.entries.models import Entry, Revision
from kb.entries.revisions import KEPT, lock_all, record
from kb.entries.values import REASON_LIMIT
from kb.exceptions import EntryNotFoundError, KnowledgeBaseArchivedError
from kb.upkeep.models import Upkeep

KIND = "kb.entries"
EACH = "kb.entries_each"
Done = TypeVar("Done")

_DATES = ("waiting_since", "flagged_since", "doubted_since", "postponed_until")
_HAPPENED = {
    "flagged_since": "flagged",
    "doubted_since": "voted down",
    "postponed_until": "postponed",
    "waiting_since": "sent to review",
}
_EMBEDDED = {"question", "text", "document_id", "section_id", "audience_id"}
_BATCH = 500


@transaction.atomic
def undoable(
    change: Callable[[], Done], *entry_ids: int, by: User
) -> tuple[Done, dict[str, Any]]:
    """Make a change to these entries; return its result, and the data to undo it.

    Conflicts with entries that `by` may not see are left out, because `by` may read
    that data: a worker compares them again.
    """
    active_model(for_share=True)  # locked first everywhere
    lock_all(entry_ids)
    conflicts = Conflict.objects.open().of_entry(*entry_ids).visible_to(by)
    open_before = set(conflicts.values_list("pk", flat=True))
    proposals = Proposal.objects.undecided().filter(entry__in=entry_ids)
    undecided = set(proposals.values_list("pk", flat=True))
    before = _states(*entry_ids)
    done = change()
    closed = Conflict.objects.filter(pk__in=open_before).exclude(pk__in=conflicts)
    return done, {
        "before": before,
        "after": _states(*entry_ids),
        "conflicts": {row.pk: _decision(row) for row in closed},
        "proposals": list(undecided.difference(proposals.values_list("pk", flat=True))),
    }


@undoes(KIND, lambda noted: (f"entry {key}" for key in noted["before"]))
@transaction.atomic
def undo_change(noted: Mapping[str, Any], by: User) -> None:
    """Restore entries and their conflicts to before the change: all or none.

    Raises:
        ChangedSinceError: One of them was changed since.
    """
    turn = _Turn(noted, by)
    for refused in turn.refused.values():
        raise type(refused)(f"{refused}; nothing is undone.")
    for row in turn.conflicts.values():
        if _decision(row) != noted["conflicts"][str(row.pk)]:
            raise ChangedSinceError(
                f"Conflict {row.pk} is {row.get_state_display()} since; nothing is undone."
            )
    turn.take_back()


def undoable_each(
    change: Callable[[], Done], *entry_ids: int, by: User
) -> tuple[Done, Mapping[str, Any]]:
    """Make a change as `undoable` does, to entries that are undone independently.

    The returned data is one of the `rows` of `undo_each`, with only the changed
    entries.
    """
    done, noted = undoable(change, *entry_ids, by=by)
    same = [key for key, then in noted["before"].items() if then == noted["after"][key]]
    for key in same:
        del noted["before"][key], noted["after"][key]
    return done, noted


@undoes(
    EACH,
    lambda noted: (f"entry {key}" for row in noted["rows"] for key in row["before"]),
)
@transaction.atomic
def undo_each(noted: Mapping[str, Any], by: User) -> Sequence[str]:
    """Undo the `rows` of `undoable_each`, except entries changed since; return which.

    The number of statements does not grow with the number of entries, unless questions
    or texts change back.

    Raises:
        ChangedSinceError: All of them were changed since.
    """
    turn = _Turn(_merged(noted["rows"]), by)
    stays = [f"{refused}; it stays as it is." for refused in turn.refused.values()]
    if stays and not turn.entries:
        raise ChangedSinceError(some_of(stays))
    turn.take_back()
    return stays


def _merged(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    by_key = ("before", "after", "conflicts")
    return {
        **{name: dict(ChainMap(*(dict(row[name]) for row in rows))) for name in by_key},
        "proposals": [key for row in rows for key in row["proposals"]],
    }


class _Turn:
    """The entries to undo, locked; `refused` maps the others to the reason."""

    def __init__(self, noted: Mapping[str, Any], by: User) -> None:
        self.model = active_model(for_share=True)
        self.noted, self.by = noted, by
        self.before = {int(key): then for key, then in noted["before"].items()}
        self.after = {int(key): noted["after"][str(key)] for key in self.before}
        locked = {entry.pk: entry for entry in lock_all(self.before)}
        seen = Entry.objects.visible_to(by).filter(pk__in=self.before)
        there = locked.keys() & set(seen.values_list("pk", flat=True))
        self.revisions = _revisions(there, self.before, self.after)
        self.refused = self._refusals({key: locked[key] for key in sorted(there)})
        self.entries = [e for key, e in locked.items() if key not in self.refused]
        decided = Conflict.objects.select_for_update(no_key=True).order_by("pk")
        self.conflicts = decided.in_bulk([int(key) for key in noted["conflicts"]])

    def _refusals(self, there: Mapping[int, Entry]) -> dict[int, NescioError]:
        refused: dict[int, NescioError] = {}
        now = _states(*there)
        changed = [
            key for key in there if now[key]["revision"] != self.after[key]["revision"]
        ]
        newest = {row.entry_id: row for row in _newest(changed, self.by)}
        bases = bases_of_role(self.by, Role.CURATOR)
        for key in self.before:
            happened = [
                what
                for name, what in _HAPPENED.items()
                if key in there and now[key][name] != self.after[key][name]
            ]
            if key not in there or self._is_hidden(key):
                refused[key] = EntryNotFoundError(
                    "An entry was deleted, or you may no longer see it"
                )
            elif bases is not None and there[key].knowledge_base_id not in bases:
                refused[key] = ForbiddenError("Only a curator can change an entry")
            elif there[key].knowledge_base.archived_at is not None:
                refused[key] = KnowledgeBaseArchivedError(
                    f"The knowledge base {there[key].knowledge_base} is archived"
                )
            elif key in changed:
                refused[key] = ChangedSinceError(
                    f"Entry {key} was changed since{_said(newest.get(key))}"
                )
            elif happened:
                refused[key] = ChangedSinceError(f"Entry {key} was {happened[0]} since")
        return refused

    def _is_hidden(self, key: int) -> bool:
        """Return whether a needed revision is no longer visible to the user."""
        numbers = {self.before[key]["revision"], self.after[key]["revision"]}
        return len(numbers) > 1 and not self.revisions[key].keys() >= numbers

    def take_back(self) -> None:
        moved = [
            entry
            for entry in self.entries
            if self.before[entry.pk]["revision"] != self.after[entry.pk]["revision"]
        ]
        said_else = self._restore(moved)
        self._restore_dates()
        for entry in said_else:
            refresh_conflicts(entry.pk)
        apart = [entry.pk for entry in moved if entry.state in APART]
        outdate_conflicts(*apart)
        to_compare = self._reopen()
        if not Audience.objects.all().are_all_visible_to(self.by):
            to_compare |= {entry.pk for entry in self.entries}
        if to_compare:
            enqueue_entries(to_compare)
        Proposal.objects.filter(
            pk__in=self.noted["proposals"], entry__in=self.entries
        ).update(
            state=Proposal.State.PROPOSED, decided_by=None, decided_at=None, reason=""
        )

    def _restore(self, moved: Sequence[Entry]) -> list[Entry]:
        """Restore the entries' content; return those whose question or text changed."""
        names, embedded, said_else = {"updated_at"}, [], []
        reasons = defaultdict(list)
        at = timezone.now()
        for entry in moved:
            rows = self.revisions[entry.pk]
            then = rows[self.before[entry.pk]["revision"]]
            undone = rows[self.after[entry.pk]["revision"]]
            differing = {n for n in KEPT if getattr(then, n) != getattr(entry, n)}
            if differing & _EMBEDDED or entry.state == Entry.State.RETIRED:
                embedded.append(entry)
            if differing & {"question", "text"}:
                said_else.append(entry)
            for name in differing:
                setattr(entry, name, getattr(then, name))
            entry.updated_at = at
            names |= differing
            reasons[f"Undone: {undone.reason}"[:REASON_LIMIT]].append(entry)
        Entry.objects.bulk_update(moved, sorted(names), batch_size=_BATCH)
        for reason, alike in reasons.items():
            record(alike, author=self.by, reason=reason)
        if embedded:
            write_vectors(embedded, model=self.model)
        return said_else

    def _restore_dates(self) -> None:
        rows = _locked_dates([entry.pk for entry in self.entries])
        names = set()
        for row in rows:
            for name, noted in self.before[row.pk].items():
                is_date = name in _DATES and noted is not None
                then = datetime.fromisoformat(noted) if is_date else noted
                if name != "revision" and getattr(row, name) != then:
                    setattr(row, name, then)
                    names.add(name)
        if names:
            Upkeep.objects.bulk_update(rows, sorted(names), batch_size=_BATCH)

    def _reopen(self) -> set[int]:
        """Reopen the conflicts that were closed; return the entries to compare instead.

        A conflict is not reopened if its other entry was changed since, now has another
        text or is no longer visible.
        """
        known = Entry.objects.defer("search_vector").in_bulk(
            {key for row in self.conflicts.values() for key in _pair(row)}
        )
        opened, to_compare = [], set()
        for row in self.conflicts.values():
            pair = [known[key] for key in _pair(row) if key in known]
            if (
                len(pair) == len(_pair(row))
                and not self.refused.keys() & set(_pair(row))
                and _decision(row) == self.noted["conflicts"][str(row.pk)]
                and not {entry.state for entry in pair} & set(APART)
                and texts_digest(*pair) == row.texts_sha256
            ):
                opened.append(row.pk)
            else:
                to_compare |= {e.pk for e in self.entries} & set(_pair(row))
        Conflict.objects.filter(pk__in=opened).update(
            state=Conflict.State.OPEN,
            kept=None,
            resolved_by=None,
            resolved_at=None,
            reason="",
        )
        return to_compare


def _pair(row: Conflict) -> tuple[int, int]:
    return row.first_id, row.second_id


def _revisions(
    entry_ids: Collection[int], *states: Mapping[int, Mapping[str, Any]]
) -> Mapping[int, dict[int, Revision]]:
    """Return by entry and number the revisions that the states refer to."""
    numbers = {each["revision"] for state in states for each in state.values()}
    found: dict[int, dict[int, Revision]] = {key: {} for key in entry_ids}
    rows = Revision.objects.filter(entry__in=entry_ids, number__in=numbers)
    for row in rows.order_by():
        found[row.entry_id][row.number] = row
    return found


def _newest(entry_ids: Collection[int], by: User) -> QuerySet[Revision]:
    rows = Revision.objects.visible_to(by).filter(entry__in=entry_ids)
    newest = rows.order_by("entry_id", "-number").distinct("entry_id")
    return newest.select_related("author")


def _states(*entry_ids: int) -> dict[int, dict[str, Any]]:
    revisions = Revision.objects.filter(entry__in=entry_ids).order_by()
    numbers = dict(revisions.values_list("entry").annotate(newest=Max("number")))
    return {
        row.pk: {
            "revision": numbers[row.pk],
            "postponed_by_id": row.postponed_by_id,
            **{name: _noted(getattr(row, name)) for name in _DATES},
        }
        for row in _locked_dates(entry_ids)
    }


def _locked_dates(entry_ids: Collection[int]) -> list[Upkeep]:
    """Lock the rows after their entries: flagging an entry locks only these."""
    rows = Upkeep.objects.select_for_update(no_key=True).order_by("pk")
    return list(rows.filter(pk__in=entry_ids))


def _noted(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _decision(row: Conflict) -> list[str | None]:
    return [row.state, _noted(row.resolved_at)]


def _said(newest: Revision | None) -> str:
    if newest is None:
        return ""
    by = f" by {person_name(newest.author)}" if newest.author else ""
    at = timezone.localtime(newest.created_at)
    why = f' ("{newest.reason}")' if newest.reason else ""
    return f"{by} on {at:%Y-%m-%d %H:%M}{why}"
