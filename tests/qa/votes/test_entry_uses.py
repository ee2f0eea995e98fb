"""How often entries were used and how they were voted for: counted once, and none missed."""

import threading

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from kb.models import Entry, Upkeep
from qa.models import AnswerEvidence, UseCursor, VoteChange
from qa.votes.entry_uses import count_uses
from qa.votes.services import vote
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db


def counts(entry: Entry) -> tuple[int, int, int]:
    return Upkeep.objects.values_list("uses", "up", "down").get(entry=entry)


def test_only_what_an_answer_cites_is_used():
    cited, unused, missed = (make_entry(f"{n}.") for n in range(3))
    asker = make_user()
    make_answer(asker, cited=(cited,), unused=(unused,), decided_at=timezone.now())
    make_answer(asker, near_misses=(missed,))
    make_answer(asker, cited=(unused,), channel="evaluation")

    count_uses()

    assert [counts(each)[0] for each in (cited, unused, missed)] == [1, 0, 0]
    assert Upkeep.objects.get(entry=cited).last_used_at == (
        AnswerEvidence.objects.get(entry=cited).answer.decided_at
    )
    assert Upkeep.objects.get(entry=missed).last_used_at is None


def test_a_second_count_adds_only_what_is_new():
    entry, asker = make_entry(), make_user()
    make_answer(asker, cited=(entry,))
    count_uses()

    assert count_uses() == 0
    assert counts(entry)[0] == 1
    make_answer(asker, cited=(entry,))
    count_uses()
    assert counts(entry)[0] == 2


def test_small_batches_count_the_same():
    entries = [make_entry(f"{n}.") for n in range(3)]
    for _ in range(4):
        make_answer(make_user(), cited=tuple(entries))

    count_uses(batch=2)

    assert [counts(each)[0] for each in entries] == [4, 4, 4]


def test_bounded_batches_leave_the_rest_to_the_next_run():
    entry = make_entry()
    for _ in range(6):
        make_answer(make_user(), cited=(entry,))

    count_uses(batches=2, batch=2)  # the first only finds out how far there is to go

    assert counts(entry)[0] == 2
    count_uses()
    assert counts(entry)[0] == 6


def test_votes_count_for_what_the_answer_cites_and_are_taken_back():
    entry, other = make_entry("Cited."), make_entry("Read.")
    asker = make_user()
    answer = make_answer(asker, cited=(entry,), unused=(other,))
    refusal = make_answer(asker, near_misses=(other,))
    vote(answer.pk, user=asker, is_up=True)
    vote(refusal.pk, user=asker, is_up=False)
    count_uses()
    assert counts(entry) == (1, 1, 0)
    assert counts(other) == (0, 0, 0)

    vote(answer.pk, user=asker, is_up=False, comment="Out of date.")
    vote(answer.pk, user=asker, is_up=False, comment="Out of date, see the tariff.")
    count_uses()
    assert counts(entry) == (1, 0, 1)

    vote(answer.pk, user=asker, is_up=None)
    count_uses()
    assert counts(entry) == (1, 0, 0)
    assert not VoteChange.objects.exists()


def test_counting_changes_neither_the_entry_nor_its_age():
    entry, asker = make_entry(), make_user()
    before = Entry.objects.values().get(pk=entry.pk)
    due = Upkeep.objects.get(entry=entry).due_at
    answer = make_answer(asker, cited=(entry,))
    vote(answer.pk, user=asker, is_up=True)

    count_uses()

    assert Entry.objects.values().get(pk=entry.pk) == before
    assert Upkeep.objects.get(entry=entry).due_at == due
    assert entry.revisions.count() == 1


def test_an_erased_answer_and_an_erased_entry_stop_nothing():
    entry, kept, asker = make_entry(), make_entry("Kept."), make_user()
    answer = make_answer(asker, cited=(entry, kept))
    gone = make_answer(asker, cited=(kept,))
    vote(answer.pk, user=asker, is_up=True)
    vote(gone.pk, user=asker, is_up=True)
    entry.delete()
    gone.delete()

    count_uses()

    assert counts(kept) == (1, 1, 0)


@pytest.mark.django_db(transaction=True)
def test_evidence_that_commits_late_under_a_smaller_id_is_counted():
    entry, asker = make_entry(), make_user()
    late = make_answer(asker)
    settings = connection.get_connection_params()
    with psycopg.connect(**{**settings, "cursor_factory": None}) as slow:
        # As `record_outcome` writes: the answer first, then its evidence.
        slow.execute("UPDATE qa_answer SET gate = '', reason = '', outcome = 'answered' WHERE id = %s", [late.pk])  # fmt: skip
        slow.execute(
            "INSERT INTO qa_answerevidence (answer_id, entry_id, revision_id, rank, role,"
            " quote, distance, confidence) VALUES (%s, %s, %s, 1, 'cited', '', 0.5, 1)",
            [late.pk, entry.pk, entry.revisions.get().pk],
        )
        make_answer(asker, cited=(entry,))

        count_uses()
        assert counts(entry)[0] == 0  # the smaller id may still appear
        slow.commit()

    count_uses()
    assert counts(entry)[0] == 2


@pytest.mark.django_db(transaction=True)
def test_counting_at_the_same_time_counts_once():
    entry = make_entry()
    for _ in range(20):
        make_answer(make_user(), cited=(entry,))

    def count() -> None:
        count_uses(batch=3)
        connection.close()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count_uses()

    assert counts(entry)[0] == 20
    assert UseCursor.objects.get().counted_to == AnswerEvidence.objects.latest("pk").pk


@pytest.mark.django_db(transaction=True)
def test_a_count_that_was_killed_between_its_notes_goes_on():
    entry = make_entry()
    make_answer(make_user(), cited=(entry,))
    UseCursor.objects.create(pk=1, noted_to=AnswerEvidence.objects.get().pk)

    count_uses()

    assert counts(entry)[0] == 1
