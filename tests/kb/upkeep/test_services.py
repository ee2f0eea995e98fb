"""When entries are due for review, whoever writes them, and what becomes of overdue ones."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from jobs.run import run_job
from kb.entries.due import EXPIRY_NOTICE, Place, Reason
from kb.entries.services import edit_entry
from kb.entries.states import mark_for_review, retire_entry, verify_entry
from kb.exceptions import (
    EntryNotFoundError,
    InvalidKnowledgeError,
    NeverDueError,
)
from kb.models import Entry, KnowledgeBase, Upkeep
from kb.upkeep import services as upkeep
from kb.upkeep.services import doubt, flag_outdated, postpone_review
from tests.factories import make_curator, make_entries, make_entry, make_knowledge_base

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def row(entry: Entry) -> Upkeep:
    return Upkeep.objects.select_related("entry").get(entry=entry)


def make_verified(days_ago: float, **fields) -> Entry:
    entry = make_entry(f"Verified {days_ago} days ago.", **fields)
    Entry.objects.filter(pk=entry.pk).update(
        verified_at=timezone.now() - days_ago * DAY
    )
    return entry


def reasons(entry: Entry) -> list[str]:
    return [due.reason.value for due in row(entry).reasons(timezone.now())]


def is_due(entry: Entry) -> bool:
    return Entry.objects.due(timezone.now()).filter(pk=entry.pk).exists()


def test_a_verified_entry_is_due_when_its_knowledge_bases_interval_has_passed():
    fresh, old = make_verified(179), make_verified(181)

    assert (is_due(fresh), is_due(old)) == (False, True)
    assert reasons(old) == ["overdue"]
    verified_at = Entry.objects.get(pk=old.pk).verified_at
    assert verified_at is not None
    assert row(old).review_due == verified_at + 180 * DAY


def test_an_interval_of_its_own_goes_before_the_knowledge_bases():
    often = make_verified(8, review_interval_days=7)
    seldom = make_verified(400, review_interval_days=730)

    assert (is_due(often), is_due(seldom)) == (True, False)


def test_without_any_interval_age_makes_nothing_due():
    KnowledgeBase.objects.filter(pk=make_knowledge_base().pk).update(
        review_interval_days=None
    )

    entry = make_verified(9_000)

    assert row(entry).review_due is None
    assert not is_due(entry)


@pytest.mark.parametrize(
    ("days", "expected"), [(-1, ["expired"]), (29, ["expiring"]), (31, [])]
)
def test_what_has_expired_or_soon_will_is_due(days, expected):
    entry = make_entry(valid_until=timezone.now() + days * DAY)

    assert reasons(entry) == expected
    assert is_due(entry) is bool(expected)


@pytest.mark.parametrize("state", ["in_review", "needs_review"])
def test_what_waits_for_a_reviewer_is_due_at_once(state):
    entry = make_entry(state=state)

    assert reasons(entry) == [state]
    assert is_due(entry)


def test_drafts_and_retired_entries_are_never_due():
    past = timezone.now() - DAY
    draft = make_entry("A draft.", state="draft", valid_until=past)
    retired = make_verified(999, valid_until=past)
    retire_entry(entry_id=retired.pk, by=make_curator())

    assert (is_due(draft), is_due(retired)) == (False, False)
    assert row(retired).due_at is None


def test_waiting_is_as_old_as_the_state_and_not_as_the_last_edit():
    entry = make_entry(state="in_review")
    long_ago = timezone.now() - 40 * DAY
    Upkeep.objects.filter(entry=entry).update(waiting_since=long_ago)

    edit_entry(entry_id=entry.pk, author=make_curator(), may_verify=False, text="New.")
    mark_for_review(entry_id=entry.pk, by=make_curator())

    assert row(entry).waiting_since == long_ago


def test_verifying_makes_an_entry_young_again():
    entry = make_verified(400)

    verify_entry(entry_id=entry.pk, by=make_curator())

    assert not is_due(entry)
    due = row(entry).review_due
    assert due is not None
    assert due > timezone.now() + 179 * DAY


def test_bulk_inserts_and_sql_by_hand_keep_the_dates():
    one, other = make_entries(["One.", "Other."])
    with connection.cursor() as sql:
        sql.execute(
            "UPDATE kb_entry SET verified_at = '2020-01-01 00:00+00' WHERE id = %s",
            [one.pk],
        )

    assert row(one).review_due == datetime(2020, 6, 29, tzinfo=UTC)
    assert not is_due(other)


def test_sql_and_python_agree_on_the_notice_of_an_expiry():
    until = timezone.now() + 300 * DAY

    entry = make_entry(valid_until=until)

    assert row(entry).expiry_notice_at == until - EXPIRY_NOTICE
    assert row(entry).valid_until == until


def test_queue_begins_with_the_most_used_then_the_longest_due():
    made = [make_verified(200 + n) for n in range(4)]
    for entry, uses in zip(made, [0, 5, 0, 9], strict=True):
        Upkeep.objects.filter(entry=entry).update(uses=uses)
    twins = make_entries(["Twin one.", "Twin two."])
    Entry.objects.filter(pk__in=[entry.pk for entry in twins]).update(
        verified_at=timezone.now() - 300 * DAY
    )
    Entry.objects.filter(pk=twins[1].pk).update(
        language="xx", updated_at="2000-01-01T00:00Z"
    )
    queue = Entry.objects.due(timezone.now()).in_queue_order()

    found = list(queue)

    assert found == [made[3], made[1], *twins, made[2], made[0]]
    for position, entry in enumerate(found):
        kept = row(entry)
        place = Place(kept.uses, kept.due_at, entry.pk)
        assert list(queue.after(Place.read(place.token()))) == found[position + 1 :]


@pytest.mark.parametrize("token", ["", "x", "é", "MSAyIDM", "A" * 200, "LTEgMjAyMCAx"])
def test_a_forged_place_is_refused(token):
    with pytest.raises(ValueError, match="place in the queue"):
        Place.read(token)


def test_the_queue_narrows_to_each_reason():
    now = timezone.now()
    made = {
        Reason.EXPIRED: make_entry("a", valid_until=now - DAY),
        Reason.EXPIRING: make_entry("b", valid_until=now + DAY),
        Reason.OVERDUE: make_verified(999),
        Reason.IN_REVIEW: make_entry("c", state="in_review"),
        Reason.NEEDS_REVIEW: make_entry("d", state="needs_review"),
        Reason.VOTED_DOWN: make_entry("e"),
        Reason.FLAGGED: make_entry("f"),
    }
    flag_outdated(entry_id=made[Reason.FLAGGED].pk, by=make_curator())
    now = timezone.now()
    doubt([made[Reason.VOTED_DOWN].pk], at=now)

    found = {reason: list(Entry.objects.due_for(reason, now)) for reason in Reason}

    assert found == {reason: [entry] for reason, entry in made.items()}


def test_postponing_hides_an_entry_until_then_and_changes_nothing_of_it():
    entry = make_verified(400)
    before = Entry.objects.values().get(pk=entry.pk)

    postpone_review(entry_id=entry.pk, by=make_curator(), days=7)

    assert not is_due(entry)
    assert Entry.objects.due(timezone.now() + 8 * DAY).filter(pk=entry.pk).exists()
    assert Entry.objects.values().get(pk=entry.pk) == before
    assert row(entry).postponed_by == make_curator()


def test_a_postponement_ends_with_the_state_that_was_postponed():
    entry = make_verified(400)
    postpone_review(entry_id=entry.pk, by=make_curator(), days=300)

    mark_for_review(entry_id=entry.pk, by=make_curator())

    assert is_due(entry)
    assert row(entry).postponed_by is None


@pytest.mark.parametrize("days", [0, -1, 366])
def test_postponing_has_bounds(days):
    with pytest.raises(InvalidKnowledgeError, match="between 1 and 365"):
        postpone_review(entry_id=make_verified(400).pk, by=make_curator(), days=days)


def test_what_is_never_due_and_what_is_not_there_is_not_postponed():
    with pytest.raises(NeverDueError):
        postpone_review(
            entry_id=make_entry(state="draft").pk, by=make_curator(), days=7
        )
    with pytest.raises(EntryNotFoundError):
        postpone_review(entry_id=10**9, by=make_curator(), days=7)


def do_round():
    upkeep.enqueue_round()
    from jobs.models import Job

    job = Job.objects.unfinished().get(kind=upkeep.KIND)
    run_job(job.pk, {upkeep.KIND: upkeep.keep_upkeep})
    job.refresh_from_db()
    assert job.state == "succeeded", job.error
    return job.result


@pytest.mark.django_db(transaction=True)
def test_a_changed_interval_reaches_the_entries_that_follow_it(monkeypatch):
    monkeypatch.setattr(upkeep, "_RECKON_ENTRIES", 2)
    follows = [make_verified(100) for _ in range(3)]
    own = make_verified(100, review_interval_days=365)
    before = Entry.objects.order_by("pk").values()
    stood = list(before)
    KnowledgeBase.objects.update(review_interval_days=90)

    result = do_round()

    assert result == {"moved": 3, "doubted": 0}
    assert [is_due(entry) for entry in follows] == [True, True, True]
    assert not is_due(own)
    assert list(before.all()) == stood
    assert do_round()["moved"] == 0


@pytest.mark.django_db(transaction=True)
def test_overdue_stays_verified_unless_its_knowledge_base_doubts_it():
    young, old, later = make_verified(200), make_verified(220), make_verified(230)
    postpone_review(entry_id=later.pk, by=make_curator(), days=30)
    do_round()
    assert Entry.objects.filter(state="verified").count() == 3

    KnowledgeBase.objects.update(
        when_overdue=KnowledgeBase.Overdue.DOUBT, overdue_grace_days=30
    )
    result = do_round()

    assert result["doubted"] == 1
    assert Entry.objects.get(state="needs_review") == old
    newest = old.revisions.latest("number")
    assert newest.author is None
    assert newest.reason == "Its review was overdue by more than 30 days."
    assert newest.confidence < 1
    assert is_due(young)
