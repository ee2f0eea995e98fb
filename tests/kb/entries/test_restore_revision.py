"""Going back to an earlier revision."""

from datetime import UTC, datetime

import pytest

from kb.documents.services import SectionNode, create_document, edit_document
from kb.embedding.services import embedded
from kb.entries.services import edit_entry
from kb.entries.states import restore_revision, retire_entry
from kb.exceptions import (
    EntryNotFoundError,
    EntryRetiredError,
    RevisionConflictError,
    RevisionNotFoundError,
)
from kb.models import Document, Entry
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db


def changed_entry() -> Entry:
    """Make an entry of two revisions that differ in all that can be restored."""
    entry = make_entry("It costs five euros.", question="What does it cost?")
    return edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        text="It costs six euros.",
        question="",
        language="de",
        valid_until=datetime(2031, 1, 1, tzinfo=UTC),
        document=make_document(),
    )


def restore(entry: Entry, number: int = 1, **options) -> Entry:
    options = {"by": make_curator(), "may_verify": True, **options}
    return restore_revision(entry_id=entry.pk, number=number, **options)


def test_a_restored_entry_says_what_it_said_as_a_new_revision():
    entry = changed_entry()

    restored = restore(entry)

    first, newest = (entry.revisions.get(number=number) for number in (1, 3))
    assert (restored.text, restored.question) == (first.text, first.question)
    said = ["text", "question", "language", "valid_until", "document_id", "section_id"]
    assert [getattr(newest, each) for each in said] == [
        getattr(first, each) for each in said
    ]
    assert (newest.author, newest.reason) == (make_curator(), "Restored revision 1.")
    (now,) = embedded([restored])
    assert {each.part for each in entry.embeddings.all()} == set(now.parts)


def test_who_may_not_verify_leaves_a_restored_entry_for_review():
    entry = changed_entry()

    restored = restore(entry, may_verify=False)

    assert (restored.state, restored.verified_by) == (Entry.State.NEEDS_REVIEW, None)


def test_who_may_verify_vouches_for_what_was_restored():
    entry, other = changed_entry(), make_user()

    restored = restore(entry, by=other)

    assert (restored.state, restored.verified_by) == (Entry.State.VERIFIED, other)


def test_going_back_shows_to_nobody_what_was_since_kept_from_them():
    entry = make_entry("Five.", owner=make_user(username="olga"))
    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        text="Six.",
        audience=make_audience("finance", groups=["finance"]),
        owner=None,
    )

    restored = restore(entry)

    assert (restored.text, restored.audience.slug) == ("Five.", "finance")
    assert restored.owner is None


def test_restoring_what_it_says_already_writes_nothing():
    entry = changed_entry()

    restore(entry, number=2)

    assert entry.revisions.count() == 2


def test_a_place_that_is_gone_is_left_as_it_is():
    document = create_document(
        knowledge_base=make_knowledge_base(),
        title="Prices",
        audience=make_audience(),
        author=make_curator(),
        sections=[SectionNode("Cards")],
    )
    entry = make_entry("Five.", section=document.sections.get())
    other = make_document("Other")
    edit_document(document_id=document.pk, sections=[])
    back = restore(entry)
    assert (back.document, back.section) == (document, None)

    edit_entry(
        entry_id=entry.pk,
        author=None,
        may_verify=False,
        document=other,
        text="Six.",
    )
    Document.objects.filter(pk=document.pk).delete()

    restored = restore(entry)

    assert (restored.text, restored.document) == ("Five.", other)


def test_what_is_not_there_is_not_restored():
    entry = make_entry()

    with pytest.raises(RevisionNotFoundError, match="has no revision 7"):
        restore(entry, number=7)
    with pytest.raises(EntryNotFoundError):
        restore_revision(entry_id=0, number=1, by=None, may_verify=False)


def test_a_retired_entry_is_restored_from_retirement_first():
    entry = changed_entry()
    retire_entry(entry_id=entry.pk, by=make_curator())

    with pytest.raises(EntryRetiredError):
        restore(entry)


def test_a_restoration_meant_for_another_revision_is_refused():
    entry = changed_entry()

    with pytest.raises(RevisionConflictError):
        restore(entry, expected_revision=1)
