"""What is written is what is found: in the same transaction, neither before nor after."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from kb.entries.services import edit_entry
from kb.entries.states import erase_entry, restore_entry, retire_entry, verify_entry
from kb.exceptions import InvalidKnowledgeError
from kb.models import Entry
from kb.search import embed_question, search
from kb.types import Scope
from tests.factories import (
    make_audience,
    make_curator,
    make_entries,
    make_entry,
    make_knowledge_base,
)

pytestmark = pytest.mark.django_db

QUESTION = "What does a replacement card cost?"


def _found(question: str = QUESTION, *, floor: float = 0.75, at=None):
    """Return text and confidence of all that may be evidence for everybody."""
    scope = Scope(
        knowledge_base_id=make_knowledge_base().pk,
        audience_ids=(make_audience().pk,),
        unverified_floor=floor,
        at=at or timezone.now(),
    )
    vector = embed_question(question)
    result = search(vector, question, scope=scope, top_k=10, deep=False)
    return {hit.text: hit for hit in result.hits}


def test_new_entry_is_found_before_its_transaction_ends():
    with transaction.atomic():
        entry = make_entry("A replacement card costs 12 euros.")

        hit = _found()[entry.text]

    assert hit.revision_id == entry.revisions.get().pk
    assert hit.is_verified
    assert hit.distance < 0.85


def test_entry_that_rolled_back_was_never_known():
    with transaction.atomic():
        make_entry("A replacement card costs 12 euros.")
        transaction.set_rollback(True)

    assert _found() == {}


def test_edited_entry_is_found_as_it_says_now_with_its_new_revision():
    entry = make_entry("Our office is closed on Sundays.")
    before = _found()[entry.text].distance

    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        text="A replacement card costs 15 euros.",
    )

    found = _found()
    assert list(found) == ["A replacement card costs 15 euros."]
    hit = found["A replacement card costs 15 euros."]
    assert hit.revision_id == entry.revisions.latest("number").pk
    assert hit.distance < before


def test_refused_edit_changes_nothing_that_is_found():
    entry = make_entry()
    before = _found()

    with pytest.raises(InvalidKnowledgeError):
        edit_entry(
            entry_id=entry.pk,
            author=make_curator(),
            may_verify=True,
            text="A new text.",
            confidence=0.0,
        )

    assert _found() == before


def test_retired_entry_is_gone_until_it_is_restored():
    entry = make_entry()
    curator = make_curator()

    retire_entry(entry_id=entry.pk, by=curator)
    while_retired = _found()
    restore_entry(entry_id=entry.pk, by=curator)

    assert while_retired == {}
    assert list(_found()) == [entry.text]


def test_erased_entry_is_gone():
    entry = make_entry()

    erase_entry(entry_id=entry.pk)

    assert _found() == {}


def test_draft_is_not_found_and_verifying_makes_it_certain():
    entry = make_entry(state="draft")
    while_draft = _found()

    verify_entry(entry_id=entry.pk, by=make_curator())

    assert while_draft == {}
    assert _found()[entry.text].confidence == 1.0


def test_edit_that_takes_verification_away_lowers_what_is_measured():
    entry = make_entry()

    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=False,
        text="A replacement card costs 15 euros.",
    )

    hit = _found()["A replacement card costs 15 euros."]
    assert (hit.confidence, hit.is_verified) == (0.8, False)
    assert _found(floor=1.0) == {}


def test_entry_expires_at_its_very_moment():
    until = timezone.now() + timedelta(days=1)
    entry = make_entry(valid_until=until)

    assert entry.text in _found(at=until - timedelta(microseconds=1))
    assert _found(at=until) == {}


def test_moving_an_entry_to_another_audience_hides_it():
    entry = make_entry()
    secret = make_audience("fraud-desk", groups=["fraud-desk"])

    edit_entry(
        entry_id=entry.pk, author=make_curator(), may_verify=True, audience=secret
    )

    assert _found() == {}


def test_entries_written_in_bulk_are_found():
    make_entries(["A replacement card costs 12 euros.", "Cash costs 3 percent."])

    assert set(_found()) == set(Entry.objects.values_list("text", flat=True))
