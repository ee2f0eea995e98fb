import pytest
from django.core.management import call_command

from accounts.acting import acting_for
from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.conflicts.background import (
    enqueue_comparison,
    enqueue_entries,
    find_conflicts,
)
from kb.conflicts.finding import find_entry_conflicts, pending_entries
from kb.entries.services import edit_entry
from kb.entries.states import restore_entry, retire_entry
from kb.exceptions import (
    ConflictNotFoundError,
    ConflictResolvedError,
    InvalidKnowledgeError,
)
from kb.models import Conflict, Entry, JudgedEntry
from kb.upkeep.conflict_resolution import (
    keep_both,
    merge_conflict,
    override_conflict,
    resolve_conflict,
    resolve_written,
    verify_undisputed,
)
from tests.factories import (
    make_audience,
    make_curator,
    make_entries,
    make_entry,
    make_user,
)

pytestmark = pytest.mark.django_db

FIVE = "The Savings account costs 5 euros a month."
SEVEN = "The Savings account costs 7 euros a month."
PARAPHRASE = "Per month the Savings account costs 5 euros."


@pytest.fixture
def pair():
    """Return two verified entries that contradict each other."""
    return make_entry(FIVE), make_entry(SEVEN)


@pytest.fixture
def conflict(pair):
    """Return the open conflict of the pair."""
    (found,) = find_entry_conflicts(pair[1].pk)
    return found


def test_a_contradiction_is_kept_with_what_clashes(pair, conflict):
    assert conflict.kind == Conflict.Kind.CONTRADICTION
    assert (conflict.first, conflict.second) == pair
    assert (conflict.first_revision, conflict.second_revision) == (1, 1)
    place = conflict.reasons[0]["first"]
    assert FIVE[place["start"] : place["end"]] == "5 euros"


def test_a_duplicate_is_found():
    make_entry(FIVE)

    (found,) = find_entry_conflicts(make_entry(PARAPHRASE).pk)

    assert found.kind == Conflict.Kind.DUPLICATE


def test_another_account_is_no_conflict():
    make_entry(FIVE)

    assert (
        find_entry_conflicts(make_entry("The Current account costs 7 euros.").pk) == ()
    )


def test_the_same_question_with_another_answer_is_a_contradiction():
    make_entry("The registry office.", question="Who issues the permit?")
    other = make_entry("The town hall.", question="Who issues the permit?")

    (found,) = find_entry_conflicts(other.pk)

    assert found.kind == Conflict.Kind.CONTRADICTION


def test_drafts_and_retired_entries_are_in_no_conflict():
    make_entry(FIVE, state=Entry.State.DRAFT)
    make_entry(FIVE, state=Entry.State.RETIRED)

    assert find_entry_conflicts(make_entry(SEVEN).pk) == ()


def test_an_edit_that_ends_the_contradiction_makes_it_outdated(pair, conflict):
    edit_entry(
        entry_id=pair[1].pk,
        author=make_curator(),
        may_verify=True,
        text="The branch in Mill Street has a lift.",
    )

    conflict.refresh_from_db()
    assert conflict.state == Conflict.State.OUTDATED


def test_retiring_an_entry_makes_its_conflicts_outdated(pair, conflict):
    retire_entry(entry_id=pair[0].pk, by=make_curator())

    conflict.refresh_from_db()
    assert conflict.state == Conflict.State.OUTDATED


def test_an_entry_that_is_a_draft_again_holds_up_no_other(pair, conflict):
    by = make_curator()

    edit_entry(entry_id=pair[1].pk, author=by, may_verify=True, state="draft")

    conflict.refresh_from_db()
    assert conflict.state == Conflict.State.OUTDATED
    assert verify_undisputed(entry_id=pair[0].pk, by=by).state == Entry.State.VERIFIED


def test_what_was_kept_is_not_asked_again_until_a_text_changes(pair, conflict):
    keep_both(conflict_id=conflict.pk, by=make_curator(), reason="Two tariffs.")

    assert find_entry_conflicts(pair[0].pk) == ()

    edit_entry(
        entry_id=pair[0].pk, author=make_curator(), may_verify=True,
        text="The Savings account costs 6 euros a month.",
    )  # fmt: skip
    (again,) = find_entry_conflicts(pair[0].pk)
    assert again.pk == conflict.pk


def test_merging_retires_the_other_entry_with_a_note(pair, conflict):
    merged = merge_conflict(conflict_id=conflict.pk, keep=pair[0].pk, by=make_curator())

    pair[1].refresh_from_db()
    assert pair[1].state == Entry.State.RETIRED
    assert f"Merged into entry {pair[0].pk}" in pair[1].revisions.first().reason
    assert (merged.state, merged.kept_id) == (Conflict.State.MERGED, pair[0].pk)


def test_a_merge_may_bring_a_wording_for_both(pair, conflict):
    text = "The Savings account costs 5 euros a month, paid on the first."
    curator = make_curator()

    with pytest.raises(InvalidKnowledgeError, match="text goes with merge"):
        resolve_conflict(
            conflict_id=conflict.pk, action="keep_both", keep=None, by=curator,
            reason="Two tariffs.", text=text,
        )  # fmt: skip
    with pytest.raises(InvalidKnowledgeError, match="may have"):
        merge_conflict(
            conflict_id=conflict.pk, keep=pair[1].pk, by=curator, text="x" * 9_000
        )
    conflict.refresh_from_db()
    assert conflict.state == Conflict.State.OPEN
    merged = merge_conflict(
        conflict_id=conflict.pk, keep=pair[1].pk, by=curator, text=text
    )

    for entry in pair:
        entry.refresh_from_db()
    assert (pair[0].state, pair[1].text) == (Entry.State.RETIRED, text)
    assert pair[1].state == Entry.State.VERIFIED
    merged.refresh_from_db()
    assert (merged.state, merged.kept_id) == (Conflict.State.MERGED, pair[1].pk)


@pytest.mark.parametrize(
    ("retire", "state"),
    [(False, Entry.State.NEEDS_REVIEW), (True, Entry.State.RETIRED)],
)
def test_an_override_takes_the_other_entry_out(pair, conflict, retire, state):
    override_conflict(
        conflict_id=conflict.pk, keep=pair[1].pk, by=make_curator(),
        reason="New price list.", retire=retire,
    )  # fmt: skip

    pair[0].refresh_from_db()
    conflict.refresh_from_db()
    assert pair[0].state == state
    assert conflict.state == Conflict.State.OVERRIDDEN
    assert conflict.resolved_by == make_curator()


def test_an_override_needs_a_reason(pair, conflict):
    with pytest.raises(InvalidKnowledgeError, match="The reason is empty; write why"):
        override_conflict(
            conflict_id=conflict.pk, keep=pair[0].pk, by=make_curator(), reason=" "
        )

    conflict.refresh_from_db()
    assert conflict.state == Conflict.State.OPEN


def test_an_entry_of_another_conflict_can_not_be_kept(pair, conflict):
    with pytest.raises(InvalidKnowledgeError, match="not an entry of conflict"):
        merge_conflict(conflict_id=conflict.pk, keep=0, by=make_curator())


def test_a_conflict_is_resolved_once(conflict):
    keep_both(conflict_id=conflict.pk, by=make_curator(), reason="Two tariffs.")

    with pytest.raises(ConflictResolvedError, match="already both kept"):
        keep_both(conflict_id=conflict.pk, by=make_curator(), reason="Again.")


def test_who_may_not_see_both_entries_sees_no_conflict():
    make_entry(FIVE, audience=make_audience("board", groups=["board"]))
    (conflict,) = find_entry_conflicts(make_entry(SEVEN).pk)
    outsider = make_user(Role.CURATOR)

    assert not Conflict.objects.visible_to(outsider).exists()
    assert Conflict.objects.visible_to(
        make_user(Role.CURATOR, groups=["board"])
    ).exists()
    with pytest.raises(ConflictNotFoundError):
        keep_both(conflict_id=conflict.pk, by=outsider, reason="Unseen.")


def test_what_contradicts_a_verified_entry_goes_to_review(pair):
    found = resolve_written(pair[1].pk, by=make_curator())

    pair[1].refresh_from_db()
    assert pair[1].state == Entry.State.NEEDS_REVIEW
    assert [conflict.state for conflict in found] == [Conflict.State.OPEN]


def test_an_override_at_writing_sends_the_other_to_review(pair):
    found = resolve_written(pair[1].pk, by=make_curator(), override="New price list.")

    pair[0].refresh_from_db()
    pair[1].refresh_from_db()
    assert found == ()
    assert pair[0].state == Entry.State.NEEDS_REVIEW
    assert pair[1].state == Entry.State.VERIFIED


def test_what_the_writer_may_not_see_does_not_touch_what_they_write():
    make_entry(FIVE, audience=make_audience("board", groups=["board"]))
    written = make_entry(SEVEN)

    assert resolve_written(written.pk, by=make_user(Role.CURATOR)) == ()

    written.refresh_from_db()
    assert written.state == Entry.State.VERIFIED


def test_only_what_changed_is_judged_again():
    lift, _ = make_entries(["The lift is out of order.", FIVE])
    call_command("find_conflicts", verbosity=0)
    assert pending_entries() == []

    edit_entry(
        entry_id=lift.pk, author=make_curator(), may_verify=True, text="The lift runs."
    )

    assert pending_entries() == [lift.pk]


def test_a_pair_found_from_one_side_stays_when_the_other_is_judged():
    first = make_entry(FIVE)
    # Nearer to each other than to the first, and more than one looks at.
    others = make_entries([SEVEN.replace("7", str(n)) for n in range(20, 32)])
    find_entry_conflicts(first.pk)
    before = set(
        Conflict.objects.open().of_entry(first.pk).values_list("pk", flat=True)
    )

    for other in others:
        find_entry_conflicts(other.pk)

    after = set(Conflict.objects.open().of_entry(first.pk).values_list("pk", flat=True))
    assert before
    assert before <= after


@pytest.mark.django_db(transaction=True)
def test_the_job_finds_all_conflicts_and_goes_on_where_it_stopped():
    make_entries([FIVE, SEVEN, "The lift is out of order.", PARAPHRASE])
    job = enqueue("kb.find_conflicts", {}, total=4)

    run_job(job.pk, {"kb.find_conflicts": find_conflicts})

    job = Job.objects.get(pk=job.pk)
    assert job.state == Job.State.SUCCEEDED, job.error
    assert job.result == {"entries": 4, "open": 3}
    assert JudgedEntry.objects.count() == 4


def test_what_a_writer_may_not_see_is_left_to_the_job():
    secret = make_entry(FIVE, audience=make_audience("board", groups=["board"]))
    written = make_entry(SEVEN)
    (conflict,) = find_entry_conflicts(written.pk)
    JudgedEntry.objects.all().delete()

    with acting_for(make_user(Role.CURATOR)):
        resolve_written(written.pk, by=make_curator())

    conflict.refresh_from_db()
    assert conflict.state == Conflict.State.OPEN
    assert written.pk in pending_entries()
    assert secret.pk in pending_entries()


def test_an_entry_is_compared_until_its_words_change():
    entry = make_entry(FIVE)
    assert entry in Entry.objects.not_compared()
    find_entry_conflicts(entry.pk)
    assert entry not in Entry.objects.not_compared()

    edit_entry(entry_id=entry.pk, author=None, may_verify=False, state="needs_review")
    assert entry not in Entry.objects.not_compared()  # it says what it said

    edit_entry(entry_id=entry.pk, author=None, may_verify=False, text=SEVEN)
    assert entry in Entry.objects.not_compared()


def test_what_was_retired_when_it_was_judged_counts_as_not_compared():
    entry = make_entry(FIVE)
    retire_entry(entry_id=entry.pk, by=make_curator())
    find_entry_conflicts(entry.pk)

    restore_entry(entry_id=entry.pk, by=make_curator())

    assert entry in Entry.objects.not_compared()


def test_writing_compares_at_once_for_who_sees_all_and_by_a_job_for_others():
    by = make_curator()
    seen = make_entry(FIVE)
    resolve_written(seen.pk, by=by)
    assert seen not in Entry.objects.not_compared()
    assert not Job.objects.exists()

    make_audience("board", groups=["board"])
    written = make_entry("The lift is out of order.")
    resolve_written(written.pk, by=by)

    assert written in Entry.objects.not_compared()
    assert Job.objects.get().parameters == {"entries": [written.pk]}


@pytest.mark.django_db(transaction=True)
def test_a_job_compares_the_entries_that_it_names_and_no_others():
    first, _ = make_entries([FIVE, "The lift is out of order."])
    job = enqueue_entries([first.pk])

    run_job(job.pk, {"kb.find_conflicts": find_conflicts})

    job.refresh_from_db()
    assert (job.state, job.done, job.total) == (Job.State.SUCCEEDED, 1, 1)
    assert list(JudgedEntry.objects.values_list("pk", flat=True)) == [first.pk]


@pytest.mark.django_db(transaction=True)
def test_the_job_compares_what_changed_behind_it():
    entries = make_entries([FIVE, "The lift is out of order."])
    job = enqueue_comparison("import 1")
    Job.objects.filter(pk=job.pk).update(cursor={"after": entries[0].pk}, done=1)

    run_job(job.pk, {"kb.find_conflicts": find_conflicts})

    job.refresh_from_db()
    assert (job.state, job.done, job.total) == (Job.State.SUCCEEDED, 3, 3)
    assert pending_entries() == []
