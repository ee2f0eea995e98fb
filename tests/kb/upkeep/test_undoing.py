"""What was done to entries is taken back exactly, or not at all."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.exceptions import ForbiddenError
from accounts.roles import Role
from accounts.undo import ChangedSinceError
from kb.conflicts.finding import find_entry_conflicts
from kb.entries.revisions import save
from kb.entries.services import edit_entry
from kb.entries.states import (
    mark_for_review,
    restore_entry,
    retire_entry,
    verify_entry,
)
from kb.models import Conflict, Entry, Flag, Upkeep
from kb.upkeep.conflict_resolution import (
    edit_undisputed,
    resolve_conflict,
    verify_undisputed,
)
from kb.upkeep.services import doubt, flag_outdated, postpone_review
from kb.upkeep.undoing import undo_change, undoable
from tests.factories import make_curator, make_entry, make_staff, make_user

pytestmark = pytest.mark.django_db

FIVE = "The Savings account costs 5 euros a month."
SEVEN = "The Savings account costs 7 euros a month."
_PASSING = {"updated_at"}


def json_of(noted):
    """Return what was noted as it comes back from a page."""
    return json.loads(json.dumps(noted))


def state(*entries):
    """Return all that is kept of entries, their dates and their conflicts."""
    keys = [entry.pk for entry in entries]
    rows = Entry.objects.defer("search_vector").filter(pk__in=keys).order_by("pk")
    names = [
        f.attname for f in Entry._meta.concrete_fields if f.name != "search_vector"
    ]
    return (
        [[getattr(row, n) for n in names if n not in _PASSING] for row in rows],
        list(Upkeep.objects.filter(pk__in=keys).order_by("pk").values_list()),
        list(Conflict.objects.of_entry(*keys).order_by("pk").values_list()),
        list(Flag.objects.open().filter(entry__in=keys).values_list("pk")),
    )


@pytest.fixture
def carla():
    return make_staff(Role.CURATOR, username="carla")


@pytest.fixture
def due():
    """A verified entry that is doubted and flagged, and was postponed before."""
    entry = make_entry(valid_until=timezone.now() + timedelta(days=300))
    postpone_review(entry_id=make_overdue(entry).pk, by=make_curator(), days=3)
    doubt([entry.pk], at=timezone.now())
    flag_outdated(entry_id=entry.pk, by=make_user(), note="Is it?")
    return entry


def make_overdue(entry):
    entry.verified_at = timezone.now() - timedelta(days=400)
    save(entry, number=2, author=make_curator(), reason="Long ago.")
    return entry


CHANGES = {
    "still true": lambda entry, by: verify_undisputed(entry_id=entry.pk, by=by),
    "postponed": lambda entry, by: postpone_review(entry_id=entry.pk, by=by, days=30),
    "handed over": lambda entry, by: edit_entry(
        entry_id=entry.pk, author=by, may_verify=False, owner=by
    ),
    "another day": lambda entry, by: edit_undisputed(
        entry_id=entry.pk, by=by, valid_until=timezone.now() + timedelta(days=500)
    ),
    "other words": lambda entry, by: edit_undisputed(
        entry_id=entry.pk, by=by, text="It costs 13 euros.", question="How much?"
    ),
    "retired": lambda entry, by: retire_entry(entry_id=entry.pk, by=by),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_was_done_to_an_entry_is_taken_back_exactly(carla, due, change):
    before = state(due)

    _, noted = undoable(lambda: change(due, carla), due.pk, by=carla)
    assert state(due) != before
    undo_change(json_of(noted), carla)

    assert state(due) == before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nothing_is_taken_back_where_somebody_changed_the_entry_since(
    carla, due, change
):
    _, noted = undoable(lambda: change(due, carla), due.pk, by=carla)
    ada = make_staff(Role.CURATOR, username="ada")
    ada.first_name, ada.last_name = "Ada", "Byron"
    ada.save()
    if change is CHANGES["retired"]:
        restore_entry(entry_id=due.pk, by=ada, reason="Not yet.")
    else:
        verify_entry(entry_id=due.pk, by=ada, reason="Not yet.")
    now = state(due)

    with pytest.raises(ChangedSinceError, match=r"since by Ada Byron on .*Not yet\."):
        undo_change(json_of(noted), carla)

    assert state(due) == now


def test_a_flag_since_is_not_lost(carla, due):
    _, noted = undoable(lambda: CHANGES["still true"](due, carla), due.pk, by=carla)
    flag_outdated(entry_id=due.pk, by=make_user())

    with pytest.raises(ChangedSinceError, match="flagged since"):
        undo_change(json_of(noted), carla)

    assert Flag.objects.open().filter(entry=due).count() == 1


def test_it_is_taken_back_once(carla, due):
    _, noted = undoable(lambda: CHANGES["handed over"](due, carla), due.pk, by=carla)
    undo_change(json_of(noted), carla)

    with pytest.raises(ChangedSinceError, match="Undone: Changed owner"):
        undo_change(json_of(noted), carla)


def test_who_is_no_curator_any_more_takes_nothing_back(carla, due):
    _, noted = undoable(lambda: CHANGES["still true"](due, carla), due.pk, by=carla)

    with pytest.raises(ForbiddenError):
        undo_change(json_of(noted), make_user(Role.SME))


DECISIONS = {
    "both kept": {"action": "keep_both", "keep": None},
    "one to review": {"action": "override", "keep": "first"},
    "one retired": {"action": "retire_other", "keep": "second"},
    "merged": {"action": "merge", "keep": "first"},
    "merged with other words": {
        "action": "merge",
        "keep": "second",
        "text": "The Savings account costs 6 euros a month.",
    },
}


@pytest.fixture
def conflict():
    nine = make_entry("The Savings account costs 9 euros a month.")
    find_entry_conflicts(nine.pk)
    find_entry_conflicts(make_entry(FIVE).pk)
    found = find_entry_conflicts(make_entry(SEVEN).pk)
    return next(each for each in found if each.first.text == FIVE)


@pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS.keys())
def test_a_decision_is_taken_back_with_all_that_it_changed(carla, conflict, decision):
    mark_for_review(entry_id=conflict.first_id, by=make_curator())
    pair = (conflict.first, conflict.second)
    before, open_before = state(*pair), Conflict.objects.open().count()
    keep = {"first": conflict.first_id, "second": conflict.second_id}
    given = {**decision, "keep": keep.get(decision["keep"])}

    _, noted = undoable(
        lambda: resolve_conflict(
            conflict_id=conflict.pk, by=carla, reason="New list.", **given
        ),
        conflict.first_id,
        conflict.second_id,
        by=carla,
    )
    assert Conflict.objects.get(pk=conflict.pk).state != Conflict.State.OPEN
    undo_change(json_of(noted), carla)

    after = state(*pair)
    assert (after[0], after[1], after[3]) == (before[0], before[1], before[3])
    assert Conflict.objects.open().count() == open_before > 1
    opened = Conflict.objects.get(pk=conflict.pk)
    assert (opened.state, opened.reason, opened.resolved_by) == ("open", "", None)


def test_a_decision_stays_where_an_entry_was_changed_since(carla, conflict):
    _, noted = undoable(
        lambda: resolve_conflict(
            conflict_id=conflict.pk, action="keep_both", keep=None, by=carla,
            reason="Both.",
        ),
        conflict.first_id,
        conflict.second_id,
        by=carla,
    )  # fmt: skip
    edit_entry(
        entry_id=conflict.second_id,
        author=make_curator(),
        may_verify=True,
        owner=carla,
    )

    with pytest.raises(ChangedSinceError, match=r"changed since by curator"):
        undo_change(json_of(noted), carla)

    assert Conflict.objects.get(pk=conflict.pk).state != Conflict.State.OPEN
