import pytest
from django.db import IntegrityError, connection, transaction

from kb.models import Entry, Revision
from tests.factories import make_entry

pytestmark = pytest.mark.django_db


def _check_deferred() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_revision_is_not_changed_even_by_sql():
    entry = make_entry()

    with (
        pytest.raises(IntegrityError, match=f"revision 1 of entry {entry.pk}"),
        transaction.atomic(),
    ):
        Revision.objects.filter(entry=entry).update(text="It was always so.")

    assert entry.revisions.get().text == entry.text


def test_revision_is_not_deleted_while_its_entry_stands():
    entry = make_entry()

    with transaction.atomic():
        Revision.objects.filter(entry=entry).delete()
        with pytest.raises(IntegrityError, match="goes only with its entry"):
            _check_deferred()
        transaction.set_rollback(True)

    assert entry.revisions.count() == 1


def test_revision_goes_when_its_entry_is_erased():
    entry = make_entry()

    Entry.objects.filter(pk=entry.pk).delete()
    _check_deferred()

    assert not Revision.objects.exists()


def test_revision_number_is_taken_once():
    entry = make_entry()

    with pytest.raises(IntegrityError), transaction.atomic():
        Revision.objects.create(
            entry=entry, number=1, text="Twin", state="draft", confidence=0.5
        )
