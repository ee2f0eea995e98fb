"""What of an entry is embedded, and that the vectors follow what it says and where."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from jobs.models import Job
from jobs.run import run_job
from kb.documents.services import SectionNode, edit_document
from kb.embedding.embedder import load_embedder
from kb.embedding.services import Embedded
from kb.embedding.switch import KIND, embed_and_switch, enqueue_where_stale
from kb.entries.bulk import Action, BulkChange, change_entries
from kb.entries.services import edit_entry
from kb.models import Document, Entry, EntryEmbedding, Section
from tests.factories import make_audience, make_document, make_entry

PLACE, FIRST = EntryEmbedding.Part.PLACE, EntryEmbedding.Part.FIRST
LONG = " ".join(f"Rule {at} says that a card of kind {at} is blue." for at in range(40))


def stored(entry: Entry) -> dict[int, np.ndarray]:
    rows = EntryEmbedding.objects.filter(entry=entry).order_by("part")
    return {row.part: np.asarray(row.vector) for row in rows}


def assert_stored(entry: Entry, texts: Sequence[str]) -> None:
    vectors = stored(entry)
    assert len(vectors) == len(texts)
    made = load_embedder("bundled").encode(texts)
    assert np.allclose(np.array(list(vectors.values())), made, atol=1e-5)


def test_a_sentence_without_a_place_is_embedded_once():
    assert Embedded("", "", "", "A card costs 5 euros.").parts == {
        FIRST: "A card costs 5 euros."
    }


def test_an_answer_is_embedded_beside_its_question():
    assert Embedded("Fees", "Cards", "What is it?", "It costs 5 euros.").parts == {
        PLACE: "Fees > Cards\nWhat is it? It costs 5 euros.",
        FIRST: "What is it?",
        FIRST + 1: "It costs 5 euros.",
    }


@given(st.lists(st.sampled_from(["Yes.", "A card is blue.", LONG]), min_size=2))
def test_the_pieces_of_a_long_text_hold_every_word_of_it_in_order(several: list[str]):
    text = " ".join(several)

    parts = Embedded("", "", "", text).parts

    pieces = [parts[part] for part in sorted(parts) if part > FIRST]
    assert not pieces or " ".join(pieces) == text
    assert len(text) < 200 or len(pieces) > 1
    assert len(pieces) <= 64


@pytest.mark.slow
@pytest.mark.django_db
def test_an_edit_drops_the_vectors_of_what_is_no_longer_said():
    entry = make_entry(LONG)
    assert len(stored(entry)) > 5

    edit_entry(entry_id=entry.pk, author=None, may_verify=False, text="It is blue.")

    assert_stored(entry, ["It is blue."])


@pytest.mark.django_db
def test_the_title_that_another_audience_reads_is_not_embedded():
    document = make_document("Layoffs in May", audience=make_audience("board"))

    entry = make_entry("It is blue.", document=document, audience=make_audience())

    assert_stored(entry, ["It is blue."])


@pytest.mark.django_db(transaction=True)
def test_a_new_title_or_heading_is_embedded_in_the_background():
    document = make_document("Cards")
    section = Section.objects.create(document=document, heading="Colour", position=0)
    entry = make_entry("It is blue.", document=document, section=section)
    assert_stored(entry, ["Cards > Colour\nIt is blue.", "It is blue."])
    enqueue_where_stale()
    assert not Job.objects.exists()

    edit_document(
        document_id=document.pk,
        title="Gold card",
        sections=[SectionNode("Its colour", (), section.pk)],
    )
    enqueue_where_stale()
    run_job(Job.objects.get().pk, {KIND: embed_and_switch})

    assert_stored(entry, ["Gold card > Its colour\nIt is blue.", "It is blue."])
    enqueue_where_stale()
    assert Job.objects.count() == 1


@pytest.mark.django_db
def test_only_what_was_written_lately_is_looked_through_again_and_again():
    document = make_document("Cards")
    entry = make_entry("It is blue.", document=document)
    EntryEmbedding.objects.update(text_sha256="0" * 64)
    long_ago = timezone.now() - timedelta(days=30)
    Entry.objects.update(updated_at=long_ago)
    Document.objects.update(updated_at=long_ago)

    enqueue_where_stale()
    assert not Job.objects.exists()

    change = BulkChange(Action.AUDIENCE, make_audience("board").pk)
    change_entries([entry.pk], change, by=None, may_verify=False)
    enqueue_where_stale()
    assert Job.objects.count() == 1
