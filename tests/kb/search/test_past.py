"""The search as of a moment: what it finds is what was found then."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.acting import acting_for, as_owner
from accounts.roles import Role
from kb.audiences.models import Audience
from kb.conflicts.models import Conflict
from kb.documents.services import edit_document
from kb.embedding.models import FormerVector
from kb.embedding.services import active_model, write_vectors
from kb.entries.services import edit_entry
from kb.entries.states import erase_entry, mark_for_review, retire_entry, verify_entry
from kb.exceptions import PastNotReadyError
from kb.models import Entry, FormerRow, Section
from kb.search import (
    contradictions_between,
    embed_question,
    nearest_excluded,
    past,
    search,
)
from kb.search.past import contradictions_then, make_past_vectors
from kb.types import Evidence, Past, Scope, SearchResult
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ASKED = "How much is a replacement card?"
FEE = "A replacement card costs 12 euros."
TEXTS = (
    FEE,
    "Support answers the phone from 8 to 20.",
    "A blocked card can be replaced within three days.",
    "The Gold card costs 72 euros a year.",
    "Cash at our own machines is free.",
)


def scope(at: datetime | None = None, *, past: Past | None = Past.AS_THEN) -> Scope:
    audiences = Audience.objects.order_by().values_list("pk", flat=True)
    moment = at or timezone.now()
    return Scope(
        make_knowledge_base().pk,
        tuple(audiences),
        0.5,
        moment,
        past=past if at else None,
    )


def find(within: Scope, *, question: str = ASKED) -> SearchResult:
    if within.past:
        make_past_vectors(within.knowledge_base_id, within.at)
    return search(embed_question(question), question, scope=within, top_k=4)


def plain(result: SearchResult) -> tuple[object, ...]:
    return result.visible, [shown(hit) for hit in result.hits]


def shown(hit: Evidence) -> tuple[object, ...]:
    numbers = (round(hit.distance, 6), round(hit.score, 5), hit.confidence)
    return (
        hit.entry_id, hit.revision_id, hit.text, hit.document_title, hit.section,
        hit.vector_rank, hit.text_rank, hit.is_verified, hit.valid_until, *numbers,
    )  # fmt: skip


def test_what_was_not_changed_is_found_as_it_is():
    document = make_document()
    section = Section.objects.create(document=document, heading="Cards", position=0)
    make_entries(TEXTS)
    make_entry("A second card costs 5 euros.", section=section)

    assert plain(find(scope(timezone.now()))) == plain(find(scope()))


def test_each_change_is_undone_as_of_the_moment_before_it():
    document = make_document()
    section = Section.objects.create(document=document, heading="Cards", position=0)
    fee, phone, blocked, gold, cash = make_entries(TEXTS)
    second = make_entry("A second card costs 5 euros.", section=section)
    curator = make_curator()
    make_audience("vault", groups=["vault"])
    moments = []

    def note() -> None:
        moments.append((timezone.now(), plain(find(scope()))))

    def retitle() -> None:
        edit_document(document_id=document.pk, title="Prices of 2027")
        write_vectors([Entry.objects.get(pk=second.pk)], model=active_model())

    changes = (
        lambda: edit_entry(
            entry_id=fee.pk, author=curator, may_verify=True, text="A replacement card costs 15 euros."
        ),
        lambda: retire_entry(entry_id=blocked.pk, by=curator),
        lambda: make_entry("A replacement card for abroad costs 40 euros."),
        lambda: edit_entry(
            entry_id=gold.pk, author=curator, may_verify=True, audience=make_audience("vault")
        ),
        lambda: mark_for_review(entry_id=phone.pk, by=curator),
        retitle,
        lambda: edit_entry(
            entry_id=cash.pk, author=curator, may_verify=True,
            valid_until=timezone.now() - timedelta(days=1),
        ),
        lambda: edit_entry(entry_id=fee.pk, author=curator, may_verify=True, text=FEE),
        lambda: verify_entry(entry_id=phone.pk, by=curator),
    )  # fmt: skip
    note()
    for change in changes:
        change()
        note()

    for at, found in moments:
        assert plain(find(scope(at))) == found


def test_vectors_that_no_model_kept_are_made_again_once():
    fee, *_ = make_entries(TEXTS)
    before = timezone.now()
    was = plain(find(scope()))
    edit_entry(
        entry_id=fee.pk,
        author=make_curator(),
        may_verify=True,
        text="It costs 15 euros.",
    )
    FormerVector.objects.all().delete()
    base = make_knowledge_base().pk

    with pytest.raises(PastNotReadyError, match="More than 0 entries were different"):
        make_past_vectors(base, before, limit=0)

    assert make_past_vectors(base, before) == 1
    assert make_past_vectors(base, before) == 0
    assert plain(find(scope(before))) == was


def test_what_another_request_embedded_meanwhile_is_not_embedded_again(monkeypatch):
    fee, *_ = make_entries(TEXTS)
    before = timezone.now()
    edit_entry(
        entry_id=fee.pk, author=make_curator(), may_verify=True, text="It is 15 euros."
    )
    FormerVector.objects.all().delete()
    base = make_knowledge_base().pk
    locked: list[str] = []

    def lock(_name: str) -> None:  # the first to wait finds that the second was quicker
        monkeypatch.setattr(past, "lock_until_commit", locked.append)
        assert make_past_vectors(base, before) == 1

    monkeypatch.setattr(past, "lock_until_commit", lock)

    assert make_past_vectors(base, before) == 0
    assert len(locked) == 1


def test_nobody_sees_more_as_of_a_moment_than_today():
    audience = make_audience("vault", groups=["vault"])
    moved = make_entry(FEE)
    opened = make_entry("A replacement card is free for staff.", audience=audience)
    before = timezone.now()
    curator = make_curator()
    for entry, to in ((moved, audience), (opened, make_audience())):
        edit_entry(entry_id=entry.pk, author=curator, may_verify=True, audience=to)
    stranger = make_user(Role.CURATOR)
    make_past_vectors(make_knowledge_base().pk, before)

    with acting_for(stranger):
        own = Audience.objects.ids_visible_to(stranger)
        within = Scope(
            make_knowledge_base().pk, own, 0.5, before, past=Past.ALLOWED_NOW
        )
        found = search(embed_question(ASKED), ASKED, scope=within, top_k=4)
        hidden = nearest_excluded(embed_question(ASKED), scope=within)

    assert found.hits == ()
    assert [each.cause for each in hidden] == ["not_entitled"]


def test_why_nothing_was_found_is_as_it_was():
    entry = make_entry(FEE, state=Entry.State.IN_REVIEW, confidence=0.3)
    before, vector = timezone.now(), embed_question(ASKED)
    was = nearest_excluded(vector, scope=scope())
    verify_entry(entry_id=entry.pk, by=make_curator())

    assert was
    assert nearest_excluded(vector, scope=scope(before)) == was
    assert nearest_excluded(vector, scope=scope()) == ()


def test_a_contradiction_is_open_until_it_was_resolved():
    first, second = make_entries((FEE, "A replacement card costs 15 euros."))
    early = timezone.now()
    conflict = Conflict.objects.create(
        first=first, second=second, first_revision=1, second_revision=1,
        kind=Conflict.Kind.CONTRADICTION, score=0.9, distance=0.1, model="tests",
    )  # fmt: skip
    ids, before = (first.pk, second.pk), timezone.now()
    was = contradictions_between(ids)
    Conflict.objects.filter(pk=conflict.pk).update(state=Conflict.State.KEPT)

    assert was
    assert contradictions_then(ids, early) == ()
    assert contradictions_then(ids, before) == was
    assert contradictions_then(ids, timezone.now()) == contradictions_between(ids) == ()


def test_what_is_erased_leaves_nothing_behind():
    fee, other = make_entries((FEE, "A replacement card costs 15 euros."))
    conflict = Conflict.objects.create(
        first=fee, second=other, first_revision=1, second_revision=1,
        kind=Conflict.Kind.CONTRADICTION, score=0.9, distance=0.1, model="tests",
    )  # fmt: skip
    Conflict.objects.filter(pk=conflict.pk).update(state=Conflict.State.KEPT)
    edit_entry(
        entry_id=fee.pk, author=make_curator(), may_verify=True, text="It is 15 euros."
    )
    assert FormerVector.objects.filter(entry=fee.pk).exists()

    erase_entry(entry_id=fee.pk)

    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert not FormerVector.objects.filter(entry=fee.pk).exists()
    assert not FormerRow.objects.filter(source="kb_conflict").exists()


def test_former_names_are_read_by_nobody_who_does_not_see_everything():
    document = make_document("The secret price list")
    edit_document(document_id=document.pk, title="Price list")

    with acting_for(make_user(Role.ADMIN)):
        assert not FormerRow.objects.exists()
    with as_owner("tests"):
        was = FormerRow.objects.get().was or {}
    assert was == {
        "title": "The secret price list",
        "audience_id": document.audience_id,
    }
