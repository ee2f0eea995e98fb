"""Every change of an entry is in its history, whoever makes it and by whatever way."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from kb.documents.services import SectionNode, create_document, edit_document
from kb.entries.services import edit_entry
from kb.models import Entry, Revision
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
)

pytestmark = pytest.mark.django_db

OUTSIDE = "Written outside of the services."
BOOKKEEPING = {
    "id", "entry", "number", "author", "reason", "database_user", "created_at",
}  # fmt: skip
# Of an entry, what its history does not repeat: what never changes, what is computed,
# when it was last touched, which the revision's own time tells, and where the import
# finds it again.
UNRECORDED = {
    "id", "knowledge_base", "origin", "created_at", "updated_at", "search_vector",
    "place", "own_key", "source_key", "source_digest",
}  # fmt: skip


def commit() -> None:
    """Let what waits for the end of the transaction happen now."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def sql(statement: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
    commit()


def history(entry: Entry) -> list[tuple[int, str, str]]:
    rows = entry.revisions.order_by("number")
    return list(rows.values_list("number", "text", "reason"))


def test_history_holds_every_field_of_an_entry_that_may_change():
    of_entry = {field.name for field in Entry._meta.concrete_fields}
    of_revision = {field.name for field in Revision._meta.concrete_fields}

    assert of_revision - BOOKKEEPING == of_entry - UNRECORDED


def test_the_services_write_one_revision_a_change():
    entry = make_entry("It costs five euros.")
    commit()
    for price in ("six", "seven"):
        edit_entry(
            entry_id=entry.pk,
            author=make_curator(),
            may_verify=True,
            text=f"It costs {price} euros.",
        )
    commit()

    assert [number for number, _, _ in history(entry)] == [1, 2, 3]
    assert not entry.revisions.filter(Q(author=None) | ~Q(database_user="")).exists()


def test_bulk_creation_by_the_services_writes_one_revision_each():
    entries = make_entries(["One.", "Two.", "Three."])
    commit()

    assert Revision.objects.filter(entry__in=entries).count() == 3


def test_a_bulk_update_is_recorded_for_every_row_it_changed():
    one, other = make_entries(["One.", "Two."])
    commit()

    Entry.objects.filter(pk__in=[one.pk, other.pk]).update(text="Two.")
    commit()

    assert history(one)[1:] == [(2, "Two.", OUTSIDE)]
    assert history(other)[1:] == []
    revision = one.revisions.latest("number")
    assert revision.author is None
    assert revision.database_user == connection.settings_dict["USER"]
    assert (revision.state, revision.verified_by) == ("verified", one.verified_by)


def other_value(name: str) -> Any:
    """Return a value for a column of an entry that none of these tests gives it."""
    return {
        "question": "Why?",
        "text": "Something else.",
        "state": "retired",
        "confidence": 0.3,
        "valid_until": datetime(2031, 1, 1, tzinfo=UTC),
        "language": "de",
        "audience": make_audience("finance").pk,
        "document": make_document().pk,
        "section": None,
        "owner": make_user().pk,
        "product_line": make_tag().pk,
        "line_of_business": make_tag("retail", facet="line_of_business").pk,
        "verified_by": make_user().pk,
        "verified_at": datetime(2020, 1, 1, tzinfo=UTC),
        "review_interval_days": 30,
    }[name]


@pytest.mark.slow
def test_raw_sql_is_recorded_whatever_column_it_changes():
    document = create_document(
        knowledge_base=make_knowledge_base(),
        title="Prices",
        audience=make_audience(),
        author=make_curator(),
        sections=[SectionNode("Cards")],
    )
    written = {"confidence": 0.5, "section": document.sections.get()}
    columns = {field.name: field.attname for field in Revision._meta.concrete_fields}
    for name in sorted(columns.keys() - BOOKKEEPING):
        verified = {} if name in ("confidence", "section") else {"verify": True}
        entry = make_entry(**(verified or written))
        value = other_value(name)
        sql(f"UPDATE kb_entry SET {columns[name]} = %s WHERE id = %s", value, entry.pk)

        newest = entry.revisions.latest("number")
        assert (name, newest.number, newest.reason) == (name, 2, OUTSIDE)
        assert getattr(newest, columns[name]) == value


def test_an_entry_inserted_by_raw_sql_gets_its_first_revision():
    sql(
        "INSERT INTO kb_entry (knowledge_base_id, question, text, state, origin,"
        " confidence, audience_id, language, created_at, updated_at)"
        " VALUES (%s, '', 'A fact.', 'draft', 'manual', 0.8, %s, 'en', now(), now())",
        make_knowledge_base().pk,
        make_audience().pk,
    )

    assert history(Entry.objects.get()) == [(1, "A fact.", OUTSIDE)]


def test_only_what_stands_at_the_end_of_a_transaction_is_recorded():
    entry = make_entry("First.")
    commit()
    Entry.objects.filter(pk=entry.pk).update(text="Second.")
    Entry.objects.filter(pk=entry.pk).update(text="Third.")
    commit()
    Entry.objects.filter(pk=entry.pk).update(text="Fourth.")
    Entry.objects.filter(pk=entry.pk).update(text="Third.")
    commit()

    assert [text for _, text, _ in history(entry)] == ["First.", "Third."]


def test_a_change_that_is_not_history_is_not_recorded():
    entry = make_entry()
    commit()

    Entry.objects.filter(pk=entry.pk).update(
        updated_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    commit()

    assert len(history(entry)) == 1


def test_a_service_goes_on_from_what_was_written_outside():
    entry = make_entry("First.")
    commit()
    Entry.objects.filter(pk=entry.pk).update(text="Second.")
    commit()

    edit_entry(entry_id=entry.pk, author=make_curator(), may_verify=True, text="Third.")
    commit()

    assert [number for number, _, _ in history(entry)] == [1, 2, 3]


def test_raw_sql_deletes_no_entry_that_has_a_history():
    entry = make_entry()
    commit()

    with pytest.raises(IntegrityError), transaction.atomic():
        sql("DELETE FROM kb_entry WHERE id = %s", entry.pk)

    assert Entry.objects.filter(pk=entry.pk).exists()


def test_an_entry_changed_and_erased_in_one_transaction_leaves_nothing():
    entry = make_entry()
    commit()

    Entry.objects.filter(pk=entry.pk).update(text="Other.")
    entry.delete()
    commit()

    assert not Revision.objects.exists()


@pytest.mark.parametrize("column", ["origin", "knowledge_base_id"])
def test_no_way_leads_an_entry_to_another_origin_or_knowledge_base(column):
    entry = make_entry()
    value = "imported" if column == "origin" else make_knowledge_base("other").pk

    with pytest.raises(IntegrityError, match="keeps its"), transaction.atomic():
        sql(f"UPDATE kb_entry SET {column} = %s WHERE id = %s", value, entry.pk)


def test_an_entry_that_loses_its_section_says_who_took_it_away():
    author = make_curator()
    document = create_document(
        knowledge_base=make_knowledge_base(),
        title="Prices",
        audience=make_audience(),
        author=author,
        sections=[SectionNode("Cards")],
    )
    entry = make_entry(section=document.sections.get())

    edit_document(document_id=document.pk, author=author, sections=[])
    commit()

    newest = entry.revisions.latest("number")
    assert (newest.number, newest.author, newest.section_id) == (2, author, None)
    assert entry.revisions.get(number=1).section_id == entry.section_id
