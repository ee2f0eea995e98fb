"""What was done to many entries at once is taken back entry by entry."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.roles import Role
from accounts.undo import ChangedSinceError
from kb.conflicts.finding import find_entry_conflicts
from kb.entries.bulk import Action, BulkChange, change_visible
from kb.entries.services import edit_entry
from kb.entries.states import erase_entry, mark_for_review, retire_entry, verify_entry
from kb.models import Conflict, Entry, Upkeep
from kb.upkeep.services import flag_outdated
from kb.upkeep.undoing import undo_each, undoable_each
from tests.factories import (
    make_audience,
    make_curator,
    make_entries,
    make_entry,
    make_staff,
    make_tag,
    make_user,
)
from tests.kb.upkeep.test_undoing import FIVE, SEVEN, state

pytestmark = pytest.mark.django_db


@pytest.fixture
def carla():
    return make_staff(Role.CURATOR, username="carla", groups=["staff"])


@pytest.fixture
def entries():
    """A verified entry that is flagged, a draft, one to review, and a retired one."""
    flagged = make_entry("The card costs 72 euros.")
    flag_outdated(entry_id=flagged.pk, by=make_user(), note="Is it?")
    waits = make_entry("Cash costs 3 percent.")
    mark_for_review(entry_id=waits.pk, by=make_curator())
    return [
        flagged,
        make_entry("The limit is 900 euros.", state="draft"),
        waits,
        make_entry("A transfer is free.", state="retired"),
    ]


def do(entries, action, by, value=None):
    """Change entries in bulk; return what is noted, as it comes back from a page."""
    ids = [entry.pk for entry in entries]
    change = BulkChange(Action(action), value, "New list.")
    report, noted = undoable_each(
        lambda: change_visible(ids, change, by=by), *ids, by=by
    )
    assert report.changed
    return json.loads(json.dumps({"rows": [noted]}))


@pytest.mark.parametrize("action", Action)
def test_what_was_done_in_bulk_is_taken_back_exactly(carla, entries, action):
    values = {
        Action.OWNER: carla.pk,
        Action.AUDIENCE: make_audience("staff", groups=["staff"]).pk,
        Action.INTERVAL: 30,
        Action.PRODUCT_LINE: make_tag("gold", facet="product_line").pk,
        Action.LINE_OF_BUSINESS: make_tag("cards", facet="line_of_business").pk,
    }
    before = state(*entries)

    noted = do(entries, action, carla, values.get(action))
    assert state(*entries) != before
    assert undo_each(noted, carla) == []

    assert state(*entries) == before
    newest = entries[3 if action == Action.RESTORE else 0].revisions.latest("number")
    assert (newest.author, newest.reason) == (carla, "Undone: New list.")


def test_conflicts_that_a_bulk_retirement_closed_are_open_again(carla):
    five = make_entry(FIVE)
    other = make_entry("The Savings account costs 9 euros a month.")
    seven = make_entry(SEVEN)
    find_entry_conflicts(five.pk)
    find_entry_conflicts(other.pk)
    find_entry_conflicts(seven.pk)
    before = state(five, seven, other)
    assert Conflict.objects.open().count() == 3

    noted = do([five, seven], "retire", carla)
    assert not Conflict.objects.open().exists()
    undo_each(noted, carla)

    assert state(five, seven, other) == before


@pytest.mark.parametrize("change", ["retired", "reworded", "erased"])
def test_a_conflict_with_what_was_changed_since_is_not_opened_but_compared(
    carla, change
):
    five, seven = make_entry(FIVE), make_entry(SEVEN)
    (conflict,) = find_entry_conflicts(seven.pk)
    noted = do([five], "retire", carla)
    if change == "retired":
        retire_entry(entry_id=seven.pk, by=make_curator())
    elif change == "reworded":
        edit_entry(entry_id=seven.pk, author=carla, may_verify=True, text="It is free.")
    else:
        erase_entry(entry_id=seven.pk)

    assert undo_each(noted, carla) == []

    five.refresh_from_db()
    assert five.state == Entry.State.VERIFIED
    assert not Conflict.objects.open().filter(pk=conflict.pk).exists()


def test_what_somebody_changed_since_stays_and_is_named(carla, entries):
    entries = entries[:3]
    noted = do(entries, "verify", carla)
    ada = make_staff(Role.CURATOR, username="ada")
    mark_for_review(entry_id=entries[0].pk, by=ada, reason="A customer complains.")
    flag_outdated(entry_id=entries[1].pk, by=make_user())
    theirs = state(*entries[:2])

    stays = undo_each(noted, carla)

    assert state(*entries[:2]) == theirs
    entries[2].refresh_from_db()
    assert entries[2].state == Entry.State.NEEDS_REVIEW
    changed, flagged = stays
    assert changed.startswith(f"Entry {entries[0].pk} was changed since by ada on ")
    assert changed.endswith('("A customer complains."); it stays as it is.')
    assert flagged == (f"Entry {entries[1].pk} was flagged since; it stays as it is.")


def test_where_all_was_changed_since_nothing_is_taken_back(carla, entries):
    noted = do(entries[:1], "owner", carla, carla.pk)
    verify_entry(entry_id=entries[0].pk, by=make_curator())
    now = state(entries[0])

    with pytest.raises(ChangedSinceError, match="was changed since by"):
        undo_each(noted, carla)

    assert state(entries[0]) == now


def test_it_is_taken_back_once(carla, entries):
    noted = do(entries[:3], "owner", carla, carla.pk)
    undo_each(noted, carla)

    with pytest.raises(ChangedSinceError, match="Undone: New list"):
        undo_each(noted, carla)


def test_what_is_gone_or_hidden_since_is_left_out(carla, entries):
    noted = do(entries[:3], "owner", carla, carla.pk)
    erase_entry(entry_id=entries[0].pk)
    vault = make_audience("vault", groups=["vault"])
    edit_entry(
        entry_id=entries[1].pk, author=make_curator(), may_verify=True, audience=vault
    )

    stays = undo_each(noted, carla)

    gone = "An entry was deleted, or you may no longer see it; it stays as it is."
    assert stays == [gone, gone]
    entries[2].refresh_from_db()
    assert entries[2].owner is None


def test_who_is_no_curator_any_more_takes_nothing_back(carla, entries):
    noted = do(entries[:2], "owner", carla, carla.pk)

    with pytest.raises(ChangedSinceError, match="Only a curator"):
        undo_each(noted, make_user(Role.SME))


@pytest.mark.parametrize("number", [2, 40])
@pytest.mark.parametrize("action", ["verify", "retire"])
def test_it_costs_the_same_statements_for_any_number(
    action, number, django_assert_max_num_queries
):
    texts = [f"Fact {n}." for n in range(number)]
    made = make_entries(texts, verify=False, state="needs_review")
    for days, entry in enumerate(made):
        since = timezone.now() - timedelta(days=days)
        Upkeep.objects.filter(pk=entry.pk).update(waiting_since=since)
    boss = make_curator()
    noted = do(made, action, boss)

    with django_assert_max_num_queries(18):
        undo_each(noted, boss)

    assert set(Entry.objects.values_list("state", flat=True)) == {"needs_review"}
