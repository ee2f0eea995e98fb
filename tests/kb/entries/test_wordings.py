"""Questions in other words that an entry answers: added, found by, embedded, removed."""

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from accounts.acting import acting_for
from accounts.exceptions import ForbiddenError
from accounts.models import AuditEntry
from accounts.roles import Role
from kb.embedding.models import EmbeddingModel, EntryEmbedding
from kb.embedding.services import embed_question
from kb.entries.services import edit_entry
from kb.entries.wordings import (
    Wording,
    add_wordings,
    confirm_question,
    deny_question,
    remove_wordings,
    wordings_of,
)
from kb.exceptions import InvalidKnowledgeError
from kb.models import Entry
from kb.search import search
from kb.text.cleaning import MAX_WORDINGS
from kb.types import Scope
from tests.clients import page_client
from tests.factories import make_audience, make_entry, make_staff, make_user

pytestmark = pytest.mark.django_db

ASKED = "my plastic has vanished, now what"
PARTS = EntryEmbedding.Part.WORDINGS


@pytest.fixture
def expert():
    return make_user(Role.SME)


@pytest.fixture
def entry():
    return make_entry("A lost card is blocked in the app under Security.")


def near(entry: Entry, question: str):
    scope = Scope(
        knowledge_base_id=entry.knowledge_base_id,
        audience_ids=(entry.audience_id,),
        unverified_floor=1.0,
        at=timezone.now(),
    )
    return search(embed_question(question), question, scope=scope, top_k=3).hits


def test_an_entry_is_found_by_a_question_in_other_words(expert, entry):
    make_entry("The museum shop closes at five.")
    add_wordings(entry, ["where is the shop"], by=expert)
    before = near(entry, ASKED)[0]

    add_wordings(entry, [ASKED], by=expert)

    hit = near(entry, ASKED)[0]
    assert (hit.entry_id, hit.wordings) == (entry.pk, ("where is the shop", ASKED))
    assert hit.distance == pytest.approx(0, abs=1e-3)
    assert before.distance > 0.5


def test_wordings_outlive_a_change_of_the_text_and_go_with_their_vectors(expert, entry):
    add_wordings(entry, [ASKED, ASKED, "  card gone  "], by=expert)
    parts = entry.embeddings.filter(part__gte=PARTS).order_by("part")
    assert list(parts.values_list("part", flat=True)) == [PARTS, PARTS + 1]

    edit_entry(
        entry_id=entry.pk, author=make_user(Role.CURATOR), may_verify=True,
        text="A lost card is blocked by phone.",
    )  # fmt: skip
    assert parts.count() == 2

    remove_wordings(Wording.objects.filter(text="card gone"))
    assert list(parts.values_list("part", flat=True)) == [PARTS]
    assert [str(each) for each in entry.wordings.all()] == [ASKED]


def test_the_newest_are_kept_and_none_twice(expert, entry):
    add_wordings(entry, [f"question {n}" for n in range(MAX_WORDINGS)], by=expert)
    add_wordings(entry, ["question 3", "one more"], by=expert)

    kept = [str(each) for each in entry.wordings.all()]
    assert (len(kept), kept[0], kept[-1]) == (MAX_WORDINGS, "question 1", "one more")
    assert kept.count("question 3") == 1


def test_agents_confirm_nothing_and_an_empty_one_is_none(expert, entry):
    with pytest.raises(ForbiddenError, match="Only experts"):
        add_wordings(entry, [ASKED], by=make_user())
    with pytest.raises(InvalidKnowledgeError, match="wording"):
        add_wordings(entry, ["  "], by=expert)
    assert not Wording.objects.exists()


def test_the_audit_says_who_let_an_entry_answer_more_without_the_words(expert, entry):
    add_wordings(entry, [ASKED], by=expert)
    remove_wordings(Wording.objects.all())

    rows = AuditEntry.objects.filter(kind="wording").order_by("at")
    assert [row.action for row in rows] == ["insert", "delete"]
    assert {row.subject for row in rows} == {f"entry {entry.pk}"}
    assert not any("plastic" in str(row.changes) for row in rows)


def test_a_switch_of_models_embeds_again_what_was_added_meanwhile(expert, entry):
    other = EmbeddingModel.objects.create(
        name="other", fingerprint="f" * 64, dimensions=384
    )
    vector = entry.embeddings.first().vector
    EntryEmbedding.objects.create(
        entry=entry, model=other, part=1, vector=vector, text_sha256="0" * 64
    )

    add_wordings(entry, [ASKED], by=expert)

    assert not entry.embeddings.filter(model=other).exists()


def test_who_may_not_see_the_entry_sees_no_question_of_it(expert):
    hidden = make_entry(
        "Board pay is secret.", audience=make_audience("board", groups=["board"])
    )
    add_wordings(hidden, ["what does the board earn"], by=expert)

    with acting_for(make_user()), connection.cursor() as cursor:
        cursor.execute("SELECT text FROM kb_wording")
        assert cursor.fetchall() == []


def test_curators_read_add_and_remove_them_on_the_entrys_page(entry):
    curator = make_staff(Role.CURATOR)
    client = page_client(curator)
    add_wordings(entry, [ASKED], by=curator)
    page = reverse("admin:kb_entry_change", args=[entry.pk])
    shown = client.get(page)
    assert ASKED in shown.content.decode()

    form = {
        name: value if value is not None else ""
        for name, value in shown.context["adminform"].form.initial.items()
    }
    wording = Wording.objects.get()
    sent = {
        **{k: getattr(v, "pk", v) for k, v in form.items()},
        "wordings-TOTAL_FORMS": "2", "wordings-INITIAL_FORMS": "1",
        "wordings-0-id": wording.pk, "wordings-0-entry": entry.pk,
        "wordings-0-DELETE": "on",
        "wordings-1-entry": entry.pk, "wordings-1-text": "card gone",
        "revisions-TOTAL_FORMS": "0", "revisions-INITIAL_FORMS": "0",
    }  # fmt: skip
    saved = client.post(page, sent)

    assert saved.status_code == 302, saved.context["errors"]
    (kept,) = entry.wordings.all()
    assert (kept.text, kept.added_by) == ("card gone", curator)


def test_another_system_reads_and_says_which_questions_an_entry_answers_too(api, entry):
    curator = make_user(Role.CURATOR)
    address = f"/api/v1/entries/{entry.pk}/also_asked"
    add_wordings(entry, [ASKED], by=curator)
    said = ["card gone", "u\u0308ber Karten"]  # is composed where it is kept

    read = api(curator).get(address)
    written = api(curator).put(address, {"also_asked": said}, format="json")

    assert read.json() == {"also_asked": [ASKED]}
    assert written.json() == {"also_asked": ["card gone", "\u00fcber Karten"]}
    assert near(entry, "card gone")[0].distance == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    "body", [{}, {"also_asked": "one"}, {"also_asked": [1]}, {"also_asked": ["x"] * 31}]
)
def test_what_is_no_list_of_questions_changes_nothing(api, entry, body):
    curator = make_user(Role.CURATOR)
    add_wordings(entry, [ASKED], by=curator)

    response = api(curator).put(
        f"/api/v1/entries/{entry.pk}/also_asked", body, format="json"
    )

    assert response.status_code == 400
    assert [str(each) for each in entry.wordings.all()] == [ASKED]


def test_agents_neither_read_nor_say_what_others_asked(api, entry):
    address = f"/api/v1/entries/{entry.pk}/also_asked"
    agent = api(make_user())

    assert agent.get(address).status_code == 403
    assert agent.put(address, {"also_asked": []}, format="json").status_code == 403


def test_what_an_expert_denies_is_no_longer_what_another_confirmed(expert, entry):
    add_wordings(entry, [ASKED], by=expert)
    assert entry.embeddings.filter(part__gte=PARTS).exists()

    deny_question(entry, ASKED, by=expert)

    (kept,) = entry.wordings.all()
    assert (kept.text, kept.answers) == (ASKED, False)
    assert not entry.embeddings.filter(part__gte=PARTS).exists()
    assert wordings_of(entry, by=expert) == []
    hit = near(entry, ASKED)[0]
    assert (hit.wordings, hit.denied) == ((), (ASKED,))

    confirm_question(entry, ASKED, by=expert)
    assert [each.answers for each in entry.wordings.all()] == [True]
