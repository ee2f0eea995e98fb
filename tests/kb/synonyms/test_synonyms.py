"""Synonyms: what they make of a question, who adds them, and what comes of it."""

import string

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from accounts.acting import acting_for
from accounts.models import AuditEntry, KnowledgeRole
from accounts.roles import Role
from kb.exceptions import InvalidKnowledgeError, SynonymExistsError
from kb.models import Synonym
from kb.synonyms import services
from kb.synonyms.services import add_synonym, unused_words
from kb.text.synonyms import reworded
from qa.answers.asking import ask
from qa.models import Answer
from tests.clients import page_client, rest_client
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)

REST = "/api/v1/synonyms"
CARD = {"card": "reader's card", "amex": "American Express", "IT": "information technology"}  # fmt: skip

_words = st.text(string.ascii_letters, min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("Can I use a biro?", "Can I use a pen?"),
        ("BIROS, or a Biro's cap", "pens, or a pen's cap"),
        ("biroscope, autobiro", "biroscope, autobiro"),
        ("Is my card lost?", "Is my reader's card lost?"),
        ("Is my reader's card lost?", "Is my reader's card lost?"),
        ("ball  point or ball-point", "pen or ball-point"),
        ("Does IT help? Is it it?", "Does information technology help? Is it it?"),
        ("Two quid, a box", "Two pound, a dish"),
        ("boxes of it", "dishes of it"),
    ],
)
def test_whole_words_are_read_as_their_synonyms(asked, read):
    means = CARD | {"biro": "pen", "ball point": "pen", "quid": "pound", "box": "dish"}

    assert reworded(asked, means, language="en") == read


def test_other_languages_have_no_english_plurals():
    assert reworded("Etats", {"Etat": "Haushalt"}, language="de") == "Etats"
    assert reworded("ein etat", {"Etat": "Haushalt"}, language="de") == "ein Haushalt"


@given(st.dictionaries(_words, _words, max_size=4), st.lists(_words, max_size=8))
def test_other_words_stay_and_so_does_what_lies_between(means, words):
    text = " - ".join(words)

    read = reworded(text, means, language="de").split(" - ")

    assert len(read) == len(words) or not words
    taken = {word.lower() for word in means}
    for said, became in zip(words, read, strict=False):
        if said.lower() not in taken:
            assert became == said


@pytest.mark.django_db
def test_a_question_is_asked_with_the_words_of_the_entries():
    entry = make_entry("Only pens may be used.", question="Can I use a pen?")
    asker, curator = make_user(), make_user(Role.CURATOR)
    add_synonym(
        knowledge_base=entry.knowledge_base, word="biro", means="pen", by=curator
    )

    with acting_for(asker):
        answer = ask("Can I use a biro?", asker=asker, channel=Answer.Channel.API)

    assert answer.outcome == Answer.Outcome.ANSWERED
    assert (answer.typed, answer.question) == ("Can I use a biro?", "Can I use a pen?")


@pytest.mark.django_db
def test_synonyms_cost_no_query_of_their_own():
    base = make_entry().knowledge_base
    desk = rest_client(make_user())

    def queries_of_asking() -> int:
        with CaptureQueriesContext(connection) as queries:
            desk.post("/api/v1/ask", {"question": "Who pays the fee?"}, format="json")
        return len(queries)

    queries_of_asking()
    before = queries_of_asking()
    add_synonym(knowledge_base=base, word="biro", means="pen", by=make_curator())

    assert queries_of_asking() == before


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("word", "means", "field"),
    [
        ("", "pen", "word"),
        ("biro", "x" * 61, "means"),
        ("Biro", "biro", "means"),
        ("it", "information technology", "word"),
        ("biro", "fee", "means"),  # which is read as "price"
        ("price", "cost", "means"),  # as which another is read
        ("-", "pen", "word"),
        ("two\nlines", "pen", "word"),
    ],
)
def test_what_is_no_synonym_is_refused(word, means, field):
    base, curator = make_knowledge_base(), make_user(Role.CURATOR)
    add_synonym(knowledge_base=base, word="fee", means="price", by=curator)

    with pytest.raises(InvalidKnowledgeError) as refused:
        add_synonym(knowledge_base=base, word=word, means=means, by=curator)

    assert refused.value.field == field
    assert Synonym.objects.count() == 1


@pytest.mark.django_db
def test_a_word_has_one_synonym_and_there_is_a_limit(monkeypatch):
    base, curator = make_knowledge_base(), make_user(Role.CURATOR)
    add_synonym(knowledge_base=base, word="Biro", means="pen", by=curator)

    with pytest.raises(SynonymExistsError, match="'Biro' is already read as 'pen'"):
        add_synonym(knowledge_base=base, word="biro", means="pencil", by=curator)

    monkeypatch.setattr(services, "MAX_SYNONYMS", 1)
    with pytest.raises(InvalidKnowledgeError, match="remove one first"):
        add_synonym(knowledge_base=base, word="amex", means="card", by=curator)


@pytest.mark.django_db
def test_over_rest_curators_write_them_and_agents_read_them():
    base, curator = make_knowledge_base(), make_user(Role.CURATOR)
    new = {"knowledge_base": base.slug, "word": "biro", "means": "pen"}

    made = rest_client(curator).post(REST, new, format="json")
    again = rest_client(curator).post(REST, new, format="json")
    read = rest_client(make_user(Role.AGENT, username="agent")).get(REST)
    agents = rest_client(make_user(Role.SME, username="sme")).post(
        REST, new, format="json"
    )
    gone = rest_client(curator).delete(f"{REST}/{made.json()['id']}")

    assert (made.status_code, again.status_code) == (201, 409)
    assert made.json()["added_by"] == curator.username
    assert again.json()["error"]["code"] == "synonym_exists"
    assert [row["means"] for row in read.json()["results"]] == ["pen"]
    assert (agents.status_code, gone.status_code) == (403, 204)
    assert not Synonym.objects.exists()
    kept = AuditEntry.objects.filter(kind="synonym").order_by("pk")
    assert [(row.action, row.subject) for row in kept] == [
        ("insert", base.slug), ("delete", base.slug),
    ]  # fmt: skip


@pytest.mark.django_db
def test_curators_of_another_knowledge_base_add_none():
    mine, other = make_knowledge_base("mine"), make_knowledge_base("other")
    curator = make_user()
    KnowledgeRole.objects.create(knowledge_base=mine, user=curator, role="curator")
    new = {"word": "biro", "means": "pen"}

    refused = rest_client(curator).post(
        REST, {**new, "knowledge_base": other.slug}, format="json"
    )
    made = rest_client(curator).post(
        REST, {**new, "knowledge_base": mine.slug}, format="json"
    )

    assert (refused.status_code, made.status_code) == (403, 201)


@pytest.mark.django_db
def test_the_admin_says_where_entries_use_the_word_themselves():
    entry = make_entry("A biro is lent at the desk.")
    page = page_client(make_staff(Role.CURATOR))
    new = {"knowledge_base": entry.knowledge_base_id, "word": "biro", "means": "pen"}

    made = page.post("/admin/kb/synonym/add/", new, follow=True)

    assert Synonym.objects.get().means == "pen"
    assert "An entry uses “biro” too" in made.content.decode()
    again = page.post("/admin/kb/synonym/add/", new)
    assert "is already read as &#x27;pen&#x27;" in again.content.decode()


@pytest.mark.django_db
def test_unused_words_are_those_of_no_entry_that_the_reader_sees():
    base = make_entry("Pens are not allowed.").knowledge_base
    make_entry("A biro costs 2 euros.", audience=make_audience("board", groups=["board"]))  # fmt: skip
    question = "May I use a biro or pens, say 12, for the crossword?"

    with acting_for(make_user()):
        assert unused_words(question, base) == ["use", "biro", "say", "crossword"]
    with acting_for(make_user(username="member", groups=["board"])):
        assert unused_words(question, base) == ["use", "say", "crossword"]
