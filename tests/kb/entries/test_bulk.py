"""One change of many entries: the same rules as for one, told entry by entry."""

from datetime import UTC, datetime

import pytest

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from kb.entries import bulk as bulk_jobs
from kb.entries.bulk import (
    Action,
    BulkChange,
    Failure,
    change_entries,
    change_visible,
    enqueue_change,
)
from kb.exceptions import InvalidKnowledgeError
from kb.models import Entry, EntryEmbedding, Upkeep
from tests.factories import (
    make_audience,
    make_curator,
    make_entries,
    make_entry,
    make_user,
)

pytestmark = pytest.mark.django_db


def change(entries, action, value=None, reason="", *, by=None, may_verify=True):
    return change_entries(
        [entry.pk for entry in entries],
        BulkChange(Action(action), value, reason),
        by=by or make_curator(),
        may_verify=may_verify,
    )


def test_verifying_many_vouches_for_each_with_a_revision():
    made = [make_entry("A.", state="draft"), make_entry("B.", state="needs_review")]
    olga = make_user(Role.CURATOR, username="olga")

    report = change(made, "verify", reason="Read the tariff.", by=olga)

    assert (report.changed, report.unchanged, report.failures) == (2, 0, ())
    for entry in Entry.objects.all():
        assert (entry.state, entry.confidence) == ("verified", 1)
        assert entry.verified_by == olga
        newest = entry.revisions.latest("number")
        assert (newest.number, newest.state, newest.author) == (2, "verified", olga)
        assert newest.reason == "Read the tariff."


def test_who_may_not_verify_verifies_nothing_in_bulk():
    entry = make_entry(state="in_review")

    with pytest.raises(InvalidKnowledgeError, match="role curator"):
        change([entry], "verify", may_verify=False)

    entry.refresh_from_db()
    assert entry.state == "in_review"
    assert entry.revisions.count() == 1


def test_marking_takes_verifications_back():
    verified, doubted = make_entry("A."), make_entry("B.", state="needs_review")

    report = change([verified, doubted], "mark_for_review", may_verify=False)

    assert (report.changed, report.unchanged) == (1, 1)
    verified.refresh_from_db()
    assert (verified.state, verified.verified_by) == ("needs_review", None)
    assert verified.confidence < 1
    assert doubted.revisions.count() == 1


def test_what_cannot_be_changed_is_told_and_keeps_nothing_else_back():
    retired, draft = make_entry("A.", state="retired"), make_entry("B.", state="draft")
    expired = make_entry("C.", valid_until=datetime(2026, 3, 31, 9, tzinfo=UTC))

    report = change_entries(
        [retired.pk, draft.pk, expired.pk, 10**9],
        BulkChange(Action.VERIFY),
        by=make_curator(),
        may_verify=True,
    )

    assert report.changed == 1
    assert set(report.failures) == {
        Failure(10**9, f"There is no entry {10**9}.", "entry_not_found"),
        Failure(
            retired.pk,
            f"Entry {retired.pk} is retired; restore it first.",
            "entry_retired",
        ),
        Failure(
            expired.pk,
            f"Entry {expired.pk} was valid until 2026-03-31; give it a later end of "
            "validity, or retire it.",
            "entry_expired",
        ),
    }


def test_retiring_and_restoring_many_gives_each_its_state_back():
    made = [make_entry("A."), make_entry("B.", state="draft")]

    assert change(made, "retire").changed == 2
    assert change(made, "retire").unchanged == 2
    EntryEmbedding.objects.filter(entry=made[0]).delete()
    assert change(made, "restore").changed == 2

    states = Entry.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["verified", "draft"]
    assert EntryEmbedding.objects.count() == 2
    assert made[0].revisions.latest("number").number == 3


def test_owner_audience_and_interval_leave_the_verification():
    entry, olga = make_entry(), make_user(username="olga")
    staff = make_audience("staff", groups=["staff"])

    change([entry], "owner", olga.pk)
    change([entry], "audience", staff.pk)
    change([entry], "interval", 30)

    entry.refresh_from_db()
    assert entry.state == "verified"
    assert (entry.owner, entry.audience, entry.review_interval_days) == (
        olga,
        staff,
        30,
    )
    assert list(
        entry.revisions.order_by("number").values_list("reason", flat=True)
    ) == ["", "Changed owner.", "Changed audience.", "Changed review_interval_days."]
    due = Upkeep.objects.get(entry=entry).review_due
    assert due is not None
    assert entry.verified_at is not None
    assert due.date() > entry.verified_at.date()
    assert change([entry], "owner", olga.pk).unchanged == 1
    assert change([entry], "owner").changed == 1
    assert change([entry], "interval").changed == 1


@pytest.mark.parametrize(
    ("action", "value", "said"),
    [
        ("interval", 0, "1 to 3650"),
        ("interval", 10**6, "1 to 3650"),
        ("audience", None, "audience is missing"),
        ("audience", 10**6, "There is no audience"),
        ("owner", 10**6, "There is no owner"),
    ],
)
def test_a_value_that_may_not_be_written_changes_nothing(action, value, said):
    entry = make_entry()

    with pytest.raises(InvalidKnowledgeError, match=said):
        change([entry], action, value)

    assert entry.revisions.count() == 1


@pytest.mark.parametrize("number", [2, 40])
def test_a_batch_costs_the_same_statements_for_any_number(
    number, django_assert_max_num_queries
):
    made = make_entries([f"Fact {n}." for n in range(number)], verify=False)
    by = make_curator()

    with django_assert_max_num_queries(12):
        change(made, "verify", by=by)


def test_what_one_may_not_see_is_told_like_what_is_not_there():
    hidden = make_entry("Secret.", audience=make_audience("board", groups=["board"]))
    seen = make_entry("Plain.")

    report = change_visible(
        [hidden.pk, seen.pk], BulkChange(Action.RETIRE), by=make_curator()
    )

    assert report.changed == 1
    missing = f"There is no entry {hidden.pk}."
    assert report.failures == (Failure(hidden.pk, missing, "entry_not_found"),)
    hidden.refresh_from_db()
    assert hidden.state == "verified"


def run_change(job: Job, **options) -> Job:
    run_job(job.pk, {bulk_jobs.KIND: bulk_jobs.change_in_background}, **options)
    job.refresh_from_db()
    return job


@pytest.mark.django_db(transaction=True)
def test_a_job_changes_batch_by_batch_and_goes_on_after_an_interruption(monkeypatch):
    monkeypatch.setattr(bulk_jobs, "BATCH", 2)
    made = make_entries([f"Fact {n}." for n in range(5)], verify=False)
    retired = make_entry("Gone.", state="retired")
    ids = [entry.pk for entry in (*made, retired)]
    job = enqueue_change(ids, BulkChange(Action.VERIFY), by=make_curator())
    asked = iter([False, False, True])  # before the run, and before each step

    run_change(job, is_stopping=lambda: next(asked, True))
    assert (job.state, job.done) == ("queued", 2)
    run_change(job)

    assert job.state == "succeeded", job.error
    assert job.result == {
        "changed": 5,
        "unchanged": 0,
        "failed": 1,
        "failures": [[retired.pk, f"Entry {retired.pk} is retired; restore it first."]],
    }
    assert {entry.revisions.count() for entry in made} == {2}


@pytest.mark.django_db(transaction=True)
def test_a_job_asks_anew_whether_its_owner_may():
    entry, owner = make_entry(state="draft"), make_user(Role.CURATOR)
    job = enqueue_change([entry.pk], BulkChange(Action.VERIFY), by=owner)
    owner.groups.clear()

    with pytest.raises(InvalidKnowledgeError, match="role curator"):
        run_change(job)

    job.refresh_from_db()
    assert job.state == "failed"
    entry.refresh_from_db()
    assert entry.state == "draft"


def test_too_many_entries_for_one_job_are_refused(monkeypatch):
    monkeypatch.setattr(bulk_jobs, "MAX_ENTRIES", 2)

    with pytest.raises(InvalidKnowledgeError, match="3 entries exceed the limit 2"):
        enqueue_change([1, 2, 3], BulkChange(Action.RETIRE), by=make_curator())

    assert not Job.objects.exists()
