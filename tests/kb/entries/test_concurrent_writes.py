"""Writers that meet: one wins, the others are told, nothing is half-done."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from accounts.acting import unrestricted
from kb.demonstration import load_demonstration
from kb.embedding.services import active_model
from kb.entries.services import edit_entry
from kb.exceptions import RevisionConflictError
from kb.models import Entry, EntryEmbedding, KnowledgeBase
from tests.factories import make_curator, make_entry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def _at_once(*calls):
    """Run the calls in threads of their own connections; return results or errors."""
    barrier = Barrier(len(calls))

    def run(call):
        try:
            barrier.wait(timeout=30)
            with unrestricted("tests"):
                return call()
        except RevisionConflictError as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_of_many_changes_made_on_one_revision_one_wins():
    entry, author = make_entry("First."), make_curator()

    def change(number):
        return lambda: edit_entry(
            entry_id=entry.pk,
            author=author,
            may_verify=True,
            expected_revision=1,
            text=f"Change {number}.",
        )

    results = _at_once(*(change(number) for number in range(4)))

    won = [each for each in results if isinstance(each, Entry)]
    lost = [each for each in results if isinstance(each, RevisionConflictError)]
    entry.refresh_from_db()
    assert (len(won), len(lost)) == (1, 3)
    assert entry.text == won[0].text
    assert list(entry.revisions.values_list("number", flat=True)) == [2, 1]


def test_changes_made_on_whatever_is_there_all_get_their_revision():
    entry, author = make_entry("First."), make_curator()

    def change(number):
        return lambda: edit_entry(
            entry_id=entry.pk,
            author=author,
            may_verify=True,
            text=f"Change {number}.",
        )

    _at_once(*(change(number) for number in range(4)))

    entry.refresh_from_db()
    numbers = list(entry.revisions.values_list("number", flat=True))
    assert numbers == [5, 4, 3, 2, 1]
    assert entry.text == entry.revisions.latest("number").text
    assert EntryEmbedding.objects.filter(entry=entry).count() == 1


def test_two_starts_load_the_demonstration_once():
    author = make_curator()
    active_model()

    results = _at_once(*[lambda: load_demonstration(author=author)] * 2)

    assert sorted(results) == [False, True]
    assert KnowledgeBase.objects.count() == 1
    embedded = EntryEmbedding.objects.values("entry").distinct()
    assert Entry.objects.count() == embedded.count()
