from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from accounts.roles import Role
from kb.embedding.embedder import get_embedder
from kb.embedding.services import active_model
from kb.entries.services import create_entry, edit_entry
from kb.entries.states import (
    erase_entry,
    mark_for_review,
    restore_entry,
    retire_entry,
    verify_entry,
)
from kb.entries.values import UNVERIFIED_CONFIDENCE
from kb.exceptions import (
    EntryNotFoundError,
    EntryRetiredError,
    InvalidKnowledgeError,
    RevisionConflictError,
)
from kb.models import Entry, EntryEmbedding, Revision, Section
from kb.text.cleaning import clean_line, clean_text
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db


def _draft(**options):
    return create_entry(
        **{
            "knowledge_base": make_knowledge_base(),
            "audience": make_audience(),
            "author": make_curator(),
            "text": "A card can be blocked by telephone.",
            **options,
        }
    )


def test_new_entry_has_its_first_revision_and_its_vector():
    entry = _draft(confidence=0.6, reason="From the manual.")

    revision = Revision.objects.get(entry=entry)
    vector = EntryEmbedding.objects.get(entry=entry, model=active_model()).vector
    expected = get_embedder(active_model()).encode([entry.text])[0]
    assert (revision.number, revision.text) == (1, entry.text)
    assert (revision.confidence, revision.reason) == (0.6, "From the manual.")
    assert np.allclose(vector, expected, atol=1e-5)


def test_question_and_answer_entry_is_embedded_as_its_question():
    entry = _draft(question="How do I block my card?")

    vector = EntryEmbedding.objects.get(entry=entry, part=1).vector
    expected = get_embedder(active_model()).encode(["How do I block my card?"])[0]
    assert np.allclose(vector, expected, atol=1e-5)


def test_verified_entry_is_certain_and_says_who_verified_it():
    curator = make_curator()

    entry = make_entry(verify=True)

    assert (entry.state, entry.confidence) == (Entry.State.VERIFIED, 1.0)
    assert entry.verified_by == curator
    assert entry.verified_at is not None


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n "}, "text"),
        ({"text": "\u200b"}, "text"),
        ({"text": "nul \x00"}, "text"),
        ({"text": "bell \x07"}, "text"),
        ({"text": "half \ud800"}, "text"),
        ({"text": "x" * 8001}, "text"),
        ({"question": "x" * 1001}, "question"),
        ({"question": "two\nlines"}, "question"),
        ({"confidence": 0}, "confidence"),
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": 1.1}, "confidence"),
        ({"confidence": 5e-324}, "confidence"),  # a distance over it is no number
        ({"confidence": float("nan")}, "confidence"),
        ({"state": "verified"}, "state"),
        ({"state": "retired"}, "state"),
        ({"state": "lost"}, "state"),
        ({"origin": "lost"}, "origin"),
        ({"language": "kl"}, "language"),
        ({"valid_until": datetime(2026, 1, 1)}, "valid_until"),  # noqa: DTZ001
        (
            {"valid_until": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))},
            "valid_until",
        ),
        ({"audience": None}, "audience"),
        ({"author": None, "verify": True}, "verify"),
        ({"reason": "x" * 301}, "reason"),
    ],
)
def test_what_may_not_be_written_is_refused_and_nothing_is_written(options, field):
    with pytest.raises(InvalidKnowledgeError) as caught:
        _draft(**options)

    assert caught.value.field == field
    assert not Entry.objects.exists()
    assert not Revision.objects.exists()


def test_confidence_of_zero_is_told_the_allowed_range():
    with pytest.raises(
        InvalidKnowledgeError, match=r"confidence 0 is not at least 0.001 and below 1"
    ):
        _draft(confidence=0)


def test_text_is_kept_in_one_unicode_form_with_line_feeds():
    entry = _draft(text="  Cafe\u0301\r\nopen\rtoday ")

    assert entry.text == "Caf\u00e9\nopen\ntoday"


@given(st.text(alphabet=st.characters(codec=None), max_size=60))
def test_cleaned_text_can_be_stored_and_cleaning_again_changes_nothing(value):
    try:
        cleaned = clean_text(value, field="text", limit=100)
    except InvalidKnowledgeError:
        return

    assert clean_text(cleaned, field="text", limit=100) == cleaned
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text", [cleaned])
        assert cursor.fetchone() == (cleaned,)


@given(st.text(max_size=40))
def test_a_line_has_no_line_break(value):
    try:
        cleaned = clean_line(value, field="title", limit=40, required=False)
    except InvalidKnowledgeError:
        return

    assert "\n" not in cleaned
    assert "\r" not in cleaned


def test_audience_is_by_default_that_of_the_document():
    secret = make_audience("fraud-desk", groups=["fraud-desk"])
    document = make_document(audience=secret)

    entry = _draft(audience=None, document=document)

    assert entry.audience == secret


def test_section_brings_its_document():
    document = make_document()
    section = Section.objects.create(document=document, heading="Fees", position=0)

    entry = _draft(section=section)

    assert entry.document == document


def test_document_of_another_knowledge_base_is_refused():
    document = make_document(knowledge_base=make_knowledge_base("loans"))

    with pytest.raises(InvalidKnowledgeError, match="another knowledge base"):
        _draft(document=document)


def test_section_of_another_document_is_refused():
    section = Section.objects.create(
        document=make_document("Fees"), heading="Cash", position=0
    )

    with pytest.raises(InvalidKnowledgeError, match="another document"):
        _draft(document=make_document("Limits"), section=section)


def test_moving_an_entry_to_another_document_takes_it_out_of_its_section():
    section = Section.objects.create(
        document=make_document("Fees"), heading="Cash", position=0
    )
    entry = _draft(section=section)
    limits = make_document("Limits")

    edit_entry(
        entry_id=entry.pk, author=make_curator(), may_verify=True, document=limits
    )

    entry.refresh_from_db()
    assert (entry.document, entry.section) == (limits, None)


def test_edit_writes_the_next_revision_and_a_new_vector():
    entry = make_entry("A replacement card costs 12 euros.")
    before = EntryEmbedding.objects.get(entry=entry, part=1).vector

    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        text="Cash abroad costs 3 percent.",
    )

    after = EntryEmbedding.objects.get(entry=entry)
    assert list(entry.revisions.values_list("number", "text")) == [
        (2, "Cash abroad costs 3 percent."),
        (1, "A replacement card costs 12 euros."),
    ]
    assert not np.allclose(before, after.vector, atol=1e-2)


def test_edit_that_changes_nothing_writes_nothing():
    entry = make_entry()

    edit_entry(
        entry_id=entry.pk, author=make_curator(), may_verify=True, text=entry.text
    )

    assert entry.revisions.count() == 1


def test_edit_by_one_who_may_verify_keeps_the_entry_verified_by_the_editor():
    entry = make_entry()
    editor = make_user(Role.CURATOR)

    edited = edit_entry(
        entry_id=entry.pk, author=editor, may_verify=True, text="It costs 15 euros."
    )

    assert (edited.state, edited.confidence) == (Entry.State.VERIFIED, 1.0)
    assert edited.verified_by == editor


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "It costs 15 euros."},
        {"question": "What does a card cost?"},
        {"valid_until": datetime(2030, 1, 1, tzinfo=UTC)},
    ],
)
def test_edit_by_one_who_may_not_verify_takes_the_verification_away(changes):
    entry = make_entry()

    edited = edit_entry(
        entry_id=entry.pk, author=make_user(Role.SME), may_verify=False, **changes
    )

    edited.refresh_from_db()
    assert edited.state == Entry.State.NEEDS_REVIEW
    assert edited.confidence == UNVERIFIED_CONFIDENCE
    assert (edited.verified_by, edited.verified_at) == (None, None)


@pytest.mark.parametrize("text", ["", "It costs 15 euros."])
def test_an_edit_by_which_an_entry_has_ended_does_not_verify_it(text):
    entry = make_entry()
    past = datetime.now(UTC) - timedelta(days=1)

    edited = edit_entry(
        entry_id=entry.pk,
        author=make_user(Role.CURATOR),
        may_verify=True,
        valid_until=past,
        **({"text": text} if text else {}),
    )

    edited.refresh_from_db()
    assert (edited.state, edited.valid_until) == (Entry.State.NEEDS_REVIEW, past)
    assert (edited.verified_by, edited.verified_at) == (None, None)


def test_change_that_no_verification_vouches_for_keeps_it():
    entry = make_entry()
    owner = make_user(Role.SME)

    edited = edit_entry(entry_id=entry.pk, author=owner, may_verify=False, owner=owner)

    assert edited.state == Entry.State.VERIFIED
    assert edited.revisions.latest("number").reason == "Changed owner."


def test_verified_entry_takes_no_other_confidence_without_another_state():
    entry = make_entry()

    with pytest.raises(InvalidKnowledgeError, match="verified entry, which has 1"):
        edit_entry(
            entry_id=entry.pk, author=make_curator(), may_verify=True, confidence=0.5
        )
    edited = edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        confidence=0.5,
        state="in_review",
    )

    assert (edited.state, edited.confidence) == (Entry.State.IN_REVIEW, 0.5)


@pytest.mark.parametrize("state", ["verified", "retired"])
def test_edit_neither_verifies_nor_retires(state):
    entry = make_entry(state="draft")

    with pytest.raises(InvalidKnowledgeError, match=f"state {state} cannot be set"):
        edit_entry(
            entry_id=entry.pk, author=make_curator(), may_verify=True, state=state
        )

    entry.refresh_from_db()
    assert entry.state == Entry.State.DRAFT


def test_edit_made_on_an_older_revision_is_refused_with_both_numbers():
    entry = make_entry()
    author = make_curator()
    edit_entry(entry_id=entry.pk, author=author, may_verify=True, text="First come.")

    with pytest.raises(RevisionConflictError, match=r"at revision 2.* revision 1"):
        edit_entry(
            entry_id=entry.pk,
            author=author,
            may_verify=True,
            expected_revision=1,
            text="Too late.",
        )

    entry.refresh_from_db()
    assert entry.text == "First come."


def test_verifying_again_renews_the_date():
    entry = make_entry()
    first = entry.verified_at

    again = verify_entry(entry_id=entry.pk, by=make_user(Role.CURATOR))

    assert first is not None
    assert again.verified_at is not None
    assert again.verified_at > first
    assert again.revisions.latest("number").reason == "Verified again."


def test_marking_for_review_takes_certainty_away():
    entry = make_entry()

    marked = mark_for_review(entry_id=entry.pk, by=make_curator())

    assert marked.state == Entry.State.NEEDS_REVIEW
    assert marked.confidence == UNVERIFIED_CONFIDENCE


def test_restoring_undoes_a_retirement():
    entry = make_entry()
    curator = make_curator()
    retire_entry(entry_id=entry.pk, by=curator, reason="Out of print.")

    restored = restore_entry(entry_id=entry.pk, by=curator)

    assert (restored.state, restored.confidence) == (Entry.State.VERIFIED, 1.0)
    assert list(entry.revisions.values_list("state", flat=True)) == [
        "verified",
        "retired",
        "verified",
    ]


def test_retiring_twice_and_restoring_twice_write_one_revision_each():
    entry = make_entry()
    curator = make_curator()

    retire_entry(entry_id=entry.pk, by=curator)
    retire_entry(entry_id=entry.pk, by=curator)
    restore_entry(entry_id=entry.pk, by=curator)
    restore_entry(entry_id=entry.pk, by=curator)

    assert entry.revisions.count() == 3


def test_retired_entry_is_not_changed():
    entry = make_entry(state="retired")
    curator = make_curator()

    with pytest.raises(EntryRetiredError, match="restore it first"):
        edit_entry(entry_id=entry.pk, author=curator, may_verify=True, text="New.")
    with pytest.raises(EntryRetiredError):
        verify_entry(entry_id=entry.pk, by=curator)
    with pytest.raises(EntryRetiredError):
        mark_for_review(entry_id=entry.pk, by=curator)


def test_unknown_entry_is_told_by_its_number():
    with pytest.raises(EntryNotFoundError, match="no entry 4711"):
        retire_entry(entry_id=4711, by=make_curator())


def test_erasing_takes_revisions_and_vectors_along():
    entry = make_entry()

    erase_entry(entry_id=entry.pk)

    assert not Revision.objects.exists()
    assert not EntryEmbedding.objects.exists()


def test_many_entries_are_written_in_a_bounded_number_of_queries(
    django_assert_max_num_queries,
):
    make_entry("Loads the model.")

    with django_assert_max_num_queries(20):
        made = make_entries([f"Fact number {n}." for n in range(100)])

    assert EntryEmbedding.objects.filter(entry__in=made).count() == 100
    assert Revision.objects.filter(entry__in=made, number=1).count() == 100


def test_one_bad_entry_of_many_writes_none():
    with pytest.raises(InvalidKnowledgeError):
        make_entries(["A fact.", "\x00"])

    assert not Entry.objects.exists()


def test_expiry_is_kept_with_its_revision():
    until = datetime.now(UTC) + timedelta(days=3)

    entry = make_entry(valid_until=until)

    assert entry.revisions.get().valid_until == until
