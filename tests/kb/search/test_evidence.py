"""What search finds, on real questions and real vectors."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.acting import as_owner
from kb.embedding import vector_index
from kb.embedding.services import active_model
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from kb.models import Audience, Section
from kb.search import embed_question, evidence, nearest_excluded, search
from kb.search import evidence as words
from kb.search.evidence import _LOOK
from kb.search.sql import COMPARED, INDEXED
from kb.types import Exclusion, Route, Scope, SearchResult
from tests.factories import (
    make_audience,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

REPLACEMENT = "A replacement card costs 12 euros."
ASKED = "How much is a replacement card?"


def scope(*audiences: Audience, floor: float = 0.5) -> Scope:
    ids = tuple(audience.pk for audience in audiences or (make_audience(),))
    return Scope(make_knowledge_base().pk, ids, floor, timezone.now())


def ask(question: str, *, top_k: int = 4, **options) -> SearchResult:
    within = options.pop("within", None) or scope()
    return search(
        embed_question(question), question, scope=within, top_k=top_k, **options
    )


def texts(result: SearchResult) -> list[str]:
    return [hit.text for hit in result.hits]


def test_the_nearest_entry_comes_first_with_its_distance_and_source():
    document = make_document("Price list")
    section = Section.objects.create(document=document, heading="Cards", position=0)
    entry = make_entry(REPLACEMENT, document=document, section=section)
    make_entry("Support answers the phone from 8 to 20.")

    result = ask(ASKED)

    hit = result.hits[0]
    assert (hit.entry_id, hit.revision_id) == (entry.pk, entry.revisions.get().pk)
    assert (hit.document_title, hit.section) == ("Price list", "Cards")
    assert (hit.confidence, hit.is_verified) == (1.0, True)
    assert (hit.vector_rank, hit.text_rank) == (1, 1)
    assert hit.score == pytest.approx(1.5)  # of two, the better one in both ways
    assert result.hits[1].score == pytest.approx(-1.5)
    vectors = active_embedder_vectors(ASKED, REPLACEMENT)
    assert hit.distance == pytest.approx(vectors, abs=1e-5)
    assert (result.visible, result.route) == (2, Route.EXACT)
    assert result.embedder == active_model().fingerprint


def active_embedder_vectors(question: str, text: str) -> float:
    from kb.embedding.embedder import load_embedder

    embedder = load_embedder("bundled")
    return float(
        np.linalg.norm(embedder.encode_question(question) - embedder.encode([text])[0])
    )


def test_one_alone_and_several_alike_are_neither_better_nor_worse():
    first = make_entry(REPLACEMENT)

    assert [hit.score for hit in ask(ASKED).hits] == [0]

    second = make_entry(REPLACEMENT)
    found = ask(ASKED).hits
    assert [hit.score for hit in found] == pytest.approx([0, 0], abs=1e-6)
    assert [hit.entry_id for hit in found] == [first.pk, second.pk]


def test_the_score_is_the_sum_of_both_standardised_numbers():
    make_entries(
        [
            "The gold card costs 40 euros a year.",
            "The silver card costs 20 euros a year.",
            "Zwirbelix is the name of the depot at night.",
            "Support answers the phone from 8 to 20.",
        ]
    )
    question = "What does a gold card at the Zwirbelix cost?"

    hits = ask(question).hits

    distances = np.array([hit.distance for hit in hits])
    rare, gold = np.log(1 + 4 / 1), np.log(1 + 4 / 1)
    shared = np.log(1 + 4 / 2)  # "card" and "cost" are each in two of four
    said = {
        "The gold": gold + 2 * shared,
        "The silver": 2 * shared,
        "Zwirbelix is": rare,
        "Support answers": 0.0,
    }
    words = np.array([said[" ".join(hit.text.split()[:2])] for hit in hits])
    expected = (distances.mean() - distances) / distances.std()
    expected += 0.5 * (words - words.mean()) / words.std()
    assert [hit.score for hit in hits] == pytest.approx(expected.tolist(), abs=1e-4)
    assert sorted(expected, reverse=True) == pytest.approx(expected.tolist())


def test_an_empty_knowledge_base_gives_nothing():
    make_knowledge_base()

    result = ask(ASKED)

    assert (result.hits, result.visible) == ((), 0)


def test_someone_without_an_audience_sees_nothing():
    make_entry(REPLACEMENT)
    nobody = Scope(make_knowledge_base().pk, (), 0.5, timezone.now())

    assert ask(ASKED, within=nobody).hits == ()


def test_a_question_and_answer_entry_is_found_by_its_question():
    make_entry("12 euros.", question=ASKED)

    hit = ask(ASKED).hits[0]

    assert (hit.question, hit.text) == (ASKED, "12 euros.")
    assert hit.distance == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("word", ["E4711-B", "Zwirbelix", "q7/x_9"])
def test_a_rare_word_is_found_where_the_vector_misses_it(word: str):
    make_entries([f"The terminal shows fault number {at}." for at in range(60)])
    rare = make_entry(
        f"Nobody but the night shift at the depot may touch the crate named {word}."
    )
    question = f"The terminal shows a fault, number unknown, {word}"

    found = ask(question)
    by_vector = search(embed_question(question), "", scope=scope(), top_k=4)

    hits = {hit.entry_id: hit for hit in found.hits}
    assert rare.pk not in [hit.entry_id for hit in by_vector.hits]
    assert rare.pk in hits
    assert hits[rare.pk].vector_rank is None
    assert hits[rare.pk].text_rank == 1
    assert hits[rare.pk].distance == pytest.approx(
        active_embedder_vectors(question, rare.text), abs=1e-5
    )


def test_fusing_never_drops_the_entry_that_decides():
    # Many entries match by words and by distance; the one with the least ratio does not.
    make_entries(
        [f"Card fee card fee number {at} for a card." for at in range(30)],
        verify=False,
        state="in_review",
        confidence=0.5,
    )
    certain = make_entry("What one pays when plastic money is issued anew: 12 euros.")

    found = ask("card fee number for a card issued anew", top_k=2)

    ratios = [hit.distance / hit.confidence for hit in found.hits]
    assert len(found.hits) == 2
    assert certain.pk == found.hits[ratios.index(min(ratios))].entry_id


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("route", [Route.EXACT, Route.HNSW])
def test_a_crowd_of_uncertain_entries_never_hides_the_one_that_decides(route: Route):
    make_entries(
        [f"The fee for a replacement card is {at} euros." for at in range(30)],
        verify=False,
        state="in_review",
        confidence=0.1,
    )
    certain = make_entry("One pays when plastic money is issued anew.")
    vector_index.build(active_model())

    found = search(
        embed_question("What is the fee for a replacement card?"),
        "",
        scope=scope(floor=0.1),
        top_k=4,
        deep=True,
        exact_limit=5 if route is Route.HNSW else 100,
    )

    assert found.route is route
    deciding = min(found.hits, key=lambda hit: hit.distance / hit.confidence)
    assert (deciding.entry_id, deciding.vector_rank) == (certain.pk, None)


def test_fusing_never_drops_the_nearest_entry():
    nearest = make_entry("Stolen credit cards are reported to the hotline.")
    make_entries([f"Zwirbelix {at} is shut on Sundays." for at in range(3)])
    question = "Zwirbelix: who blocks my Visa after a theft?"
    by_distance = search(embed_question(question), "", scope=scope(), top_k=4).hits
    assert by_distance[0].entry_id == nearest.pk

    found = ask(question, top_k=2)

    assert nearest.pk in [hit.entry_id for hit in found.hits]


def test_of_the_expired_the_one_that_would_have_decided_is_told():
    past = timezone.now() - timedelta(days=1)
    make_entry(
        REPLACEMENT, valid_until=past, verify=False, state="in_review", confidence=0.5
    )
    make_entry("The price of a new card is 12 euros.", valid_until=past)

    (excluded,) = nearest_excluded(embed_question(ASKED), scope=scope())

    assert (excluded.cause, excluded.confidence) == (Exclusion.EXPIRED, 1.0)


def test_a_bare_question_of_stop_words_is_searched_by_distance():
    make_entry(REPLACEMENT)

    found = ask("how is it and what is that")

    assert found.hits[0].text_rank is None


@pytest.mark.parametrize(
    "question",
    ["it's \\ & | ! ( ) :* <-> ''", "'; DROP TABLE kb_entry; --", "%s %(kb)s"],
)
def test_no_question_breaks_the_statement(question: str):
    make_entry(REPLACEMENT)

    assert texts(ask(question)) == [REPLACEMENT]


def test_german_words_are_stemmed_in_a_german_knowledge_base():
    base = make_knowledge_base("karten", language="de")
    make_entry("Die Karten werden gesperrt.", knowledge_base=base, language="de")
    within = Scope(base.pk, (make_audience().pk,), 0.5, timezone.now())

    found = search(
        embed_question("Karte sperren"), "Karte sperren", scope=within, top_k=1
    )

    assert found.hits[0].text_rank == 1


def test_a_question_and_answer_entry_is_found_by_its_answer():
    answer = "Students pay nothing for the Basic account until they are 27."
    make_entry(answer, question="Are there discounts?")
    make_entry("The Gold account costs 9 euros a month.")

    hit = ask("Is an account free of charge for students?").hits[0]

    assert hit.text == answer
    alone = active_embedder_vectors(
        "Is an account free of charge for students?", answer
    )
    assert hit.distance == pytest.approx(alone, abs=1e-5)


def test_a_long_entry_is_found_by_its_last_sentence():
    # Far behind the 256 tokens that the embedder reads of one text.
    rules = [f"Rule {at} is about cheques of the kind {at}." for at in range(60)]
    last = "Lost luggage is paid for up to 800 euros."
    make_entry(" ".join([*rules, last]))
    make_entry("The branch in Bonn is closed.")

    hit = ask("What is paid for a suitcase that went missing?").hits[0]

    assert hit.text.endswith(last)
    assert hit.distance < 1


def test_what_stands_in_a_place_orders_and_its_distance_is_that_of_its_words():
    texts_by_title = {
        "Silver card": "It costs 30 euros.",
        "Gold card": "It costs 90 euros.",
    }
    for title, text in texts_by_title.items():
        make_entry(text, document=make_document(title))

    for title, text in texts_by_title.items():
        question = f"What is the price of the {title}?"
        hit = ask(question).hits[0]
        assert hit.text == text
        alone = active_embedder_vectors(question, text)
        assert hit.distance == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("addresss", "twice"),
        ("adress", "lost"),
        ("addrass", "other"),
        ("adderss", "swapped"),
    ],
)
def test_a_word_with_a_slip_of_the_pen_is_found(question: str, kind: str):
    make_entries([f"Fee number {at} is {at} euros." for at in range(30)])
    make_entry("The address is on the bill.")

    named = [hit.text for hit in ask(question).hits if hit.text_rank == 1]

    assert named == ["The address is on the bill."]


def test_a_word_that_is_there_is_not_respelt():
    make_entries([f"Fee number {at} is {at} euros." for at in range(30)])
    make_entry("The limits apply to all.")
    make_entry("The limes are green.")

    found = {hit.text: hit.text_rank for hit in ask("limit", top_k=8).hits}

    assert found["The limits apply to all."] == 1
    assert found.get("The limes are green.") is None


def test_words_of_entries_that_one_may_not_see_respell_nothing():
    make_entry("The merger is called Falcon.", audience=make_audience("board"))
    make_entry("The bakery opens at 9.")

    found = ask("falcin", within=scope(make_audience()))

    assert [hit.text_rank for hit in found.hits] == [None]


def test_an_edit_changes_what_is_found_at_once():
    entry = make_entry(REPLACEMENT)
    edit_entry(
        entry_id=entry.pk,
        author=make_user(),
        may_verify=False,
        text="A replacement card costs 15 euros.",
    )

    assert texts(ask(ASKED)) == ["A replacement card costs 15 euros."]

    retire_entry(entry_id=entry.pk, by=make_user(), reason="out of date")

    assert ask(ASKED).hits == ()


def test_what_is_near_and_may_not_be_evidence_is_told_by_its_cause():
    board = make_audience("board", groups=["board"])
    past = timezone.now() - timedelta(days=1)
    make_entry(REPLACEMENT, audience=board, valid_until=past)
    make_entry("A replacement card costs 9 euros.", valid_until=past)
    make_entry("A replacement card costs 7 euros.", state="in_review", confidence=0.3)
    make_entry("A replacement card costs 1 euro.", state="draft", confidence=0.9)
    make_entry("A replacement card costs 2 euros.", state="retired")

    excluded = nearest_excluded(embed_question(ASKED), scope=scope())

    assert {one.cause: one.confidence for one in excluded} == {
        Exclusion.NOT_ENTITLED: 1.0,
        Exclusion.EXPIRED: 1.0,
        Exclusion.UNVERIFIED: 0.3,
    }
    assert [one.distance for one in excluded] == sorted(
        one.distance for one in excluded
    )
    assert ask(ASKED).hits == ()


def test_a_look_is_one_statement(django_assert_num_queries):
    make_entry(REPLACEMENT)
    vector = embed_question(ASKED)
    ask(ASKED)  # the common words are known from here on
    within = scope()

    with django_assert_num_queries(1):
        search(vector, ASKED, scope=within, top_k=4)
    with django_assert_num_queries(1):
        nearest_excluded(vector, scope=within)
    with django_assert_num_queries(0):
        embed_question(ASKED)


def test_words_above_the_cut_are_not_looked_up(monkeypatch):
    monkeypatch.setattr(words, "_UNCUT_ENTRIES", 10)
    monkeypatch.setattr(words, "_kept", words._Kept((), 0.0))
    make_entries([f"The card with the number {at} is valid." for at in range(60)])
    rare = make_entry("A zwirbelix is a card.")
    with as_owner("tests"), connection.cursor() as cursor:
        cursor.execute("ANALYZE kb_entry")

    assert "card" in words.common_words()
    assert "zwirbelix" not in words.common_words()
    hits = {hit.entry_id: hit for hit in ask("zwirbelix card", top_k=20).hits}
    assert hits[rare.pk].text_rank == 1
    assert sum(hit.text_rank is not None for hit in hits.values()) == 1
    # Nor is a slip taken for one of them.
    found = {hit.text_rank for hit in ask("zwirbelyx", top_k=4).hits}
    assert 1 in found
    assert {hit.text_rank for hit in ask("nummber", top_k=4).hits} == {None}
    monkeypatch.setattr(words, "_kept", words._Kept((), 0.0))


def test_a_word_of_every_tenth_entry_tells_nothing():
    make_entries([f"Card number {at}." for at in range(4)])
    make_entries([f"Limits of kind {at} hold for a day." for at in range(30)])

    assert {hit.text_rank for hit in ask("card").hits} == {None}


def plan_of(statement: str, parameters: Mapping[str, Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}", dict(parameters))
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_the_plans_are_those_that_were_measured():
    """The index is used where it should be, and never where rows are compared."""
    make_entries([f"Fee number {at} is {at} euros." for at in range(300)])
    model = active_model()
    vector_index.build(model)
    with as_owner("tests"), connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE kb_entry")
        cursor.execute("VACUUM ANALYZE kb_entryembedding")
    parameters = evidence.look_parameters(
        embed_question(ASKED), ASKED, scope=scope(), top_k=4, exact_limit=10
    )

    exact = plan_of(_LOOK.format(rows=COMPARED), parameters)
    with transaction.atomic():
        evidence.prepare_index_scan()
        indexed = plan_of(_LOOK.format(rows=INDEXED.format(dimensions=384)), parameters)

    assert f"Index Scan using {vector_index.index_name(model.pk)}" not in exact
    assert f"Index Scan using {vector_index.index_name(model.pk)}" in indexed
    assert "Order By" in indexed
    near = indexed[indexed.index("CTE found") : indexed.index("CTE word")]
    assert "Sort" not in near
    # One page of knowledge bases is read whole once autovacuum has looked at it.
    assert set(re.findall(r"Seq Scan on (\w+)", near)) <= {"kb_knowledgebase"}
    assert near.count("Seq Scan") == near.count("Seq Scan on kb_knowledgebase")


@pytest.mark.django_db(transaction=True)
def test_the_index_settings_do_not_outlive_the_look():
    make_entries([f"Fee number {at}." for at in range(20)])
    vector_index.build(active_model())

    result = ask(ASKED, exact_limit=5, deep=True)

    assert result.route is Route.HNSW
    with connection.cursor() as cursor:
        cursor.execute("SHOW hnsw.ef_search")
        assert cursor.fetchone() == ("100",)


@pytest.mark.django_db(transaction=True)
def test_many_rows_without_an_index_are_still_searched_whole():
    make_entries([f"Fee number {at}." for at in range(20)])

    result = ask("Fee number 19.", exact_limit=5)

    assert (result.route, result.visible) == (Route.EXACT, 5)
    assert result.hits[0].text == "Fee number 19."
