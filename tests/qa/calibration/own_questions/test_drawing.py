"""Which questions are made of a knowledge base, and what is left out with an entry."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.utils import timezone

from kb.conflicts.finding import duplicates_among
from kb.enrichment.forms import Completion
from qa.calibration.own_questions.drawing import (
    LIMIT,
    OwnQuestion,
    draw_questions,
    group_of,
)
from qa.calibration.own_questions.measuring import covers_answer, names_all
from qa.votes.services import vote
from tests.factories import (
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

ASKED = "How do I block a stolen card?"


def own(questions) -> list[OwnQuestion]:
    return [each for each in questions if each.entry]


def test_a_question_and_answer_entry_is_asked_for_in_three_ways():
    entry = make_entry("Call the hotline.", question=ASKED)

    found = own(draw_questions(make_knowledge_base(), seed=0))

    assert {each.entry for each in found} == {entry}
    assert [each.text for each in found[:2]] == [ASKED, "block stolen card"]
    assert found[2].text not in {ASKED, found[1].text}


def test_a_fact_is_asked_for_in_a_few_of_its_words_or_by_a_writer():
    entry = make_entry("A replacement card costs 12 euros a year.")

    @dataclass
    class Asks:
        name: str = "asks"
        fingerprint: str = "0" * 64

        def fill_in(self, form, given, *, temperature, seed):
            values = {"question": "what's the price of a new one?"}
            return [Completion(values, None) for _ in given]

    alone = own(draw_questions(entry.knowledge_base, seed=0))
    written = own(draw_questions(entry.knowledge_base, seed=0, writer=Asks()))

    assert [each.text for each in alone] == ["replacement card costs year"] or [
        len(each.text.split()) for each in alone
    ] == [4]
    assert [each.text for each in written] == ["what's the price of a new one?"]


def test_only_what_may_answer_is_asked_for():
    base = make_knowledge_base()
    make_entry("Drafts are not asked for.", state="draft")
    make_entry("Retired ones are not either.", state="retired")
    make_entry("Nor what has expired.", valid_until=timezone.now() - timedelta(days=1))
    make_entry(
        "Another knowledge base is not.", knowledge_base=make_knowledge_base("x")
    )

    found = draw_questions(base, seed=0)

    assert own(found) == []
    assert len(found) == 60
    assert len({each.group for each in found}) == 12


def test_a_refused_question_whose_entry_a_voter_named_is_asked_as_it_was():
    entry, asker = make_entry("Call the hotline.", question=ASKED), make_user()
    refused = make_answer(
        asker, question="somebody nicked my card!!", near_misses=(entry,), distance=0.9
    )
    vote(refused.pk, user=asker, is_up=False, answering_entry_id=entry.pk)

    found = own(draw_questions(entry.knowledge_base, seed=0))

    assert (found[0].text, found[0].entry) == ("somebody nicked my card!!", entry)
    assert len(found) == 4


def test_foreign_questions_are_in_its_language():
    german = draw_questions(make_knowledge_base("karten", language="de"), seed=0)
    other = draw_questions(make_knowledge_base("autre", language="xx"), seed=0)

    assert "Wann schneidet man Rosen?" in {each.text for each in german}
    assert "When should I prune roses?" in {each.text for each in other}


@pytest.mark.slow
def test_they_are_spread_over_documents_and_the_same_for_the_same_seed():
    words = ["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath"]
    for title, count in (("Long", 400), ("Short", 3), ("Other", 3)):
        texts = [
            f"{title} rule {n}: {words[n % 8]} {words[n // 8 % 8]} costs {n} euros."
            for n in range(count)
        ]
        make_entries(texts, document=make_document(title))

    base = make_knowledge_base()
    first, again = (draw_questions(base, seed=1) for _ in range(2))
    other = draw_questions(base, seed=2)

    assert first == again
    assert [each.text for each in first] != [each.text for each in other]
    assert len(first) <= LIMIT
    counts = Counter(each.group for each in own(first))
    assert sorted(counts.values())[:2] == [3, 3]


def test_what_says_the_same_is_found_and_what_says_otherwise_is_not():
    entry = make_entry("A replacement card costs 12 euros.")
    same = make_entry("A replacement card costs 12 euros. ".strip().upper())
    reworded = make_entry("A replacement card costs 12 euros per card.")
    dearer = make_entry("A replacement card costs 30 euros.")
    other = make_entry("Sailing times are posted at the pier each morning.")

    ids = [each.pk for each in (entry, same, reworded, dearer, other)]
    found = duplicates_among(entry, ids)

    assert same.pk in found
    assert reworded.pk in found
    assert found.isdisjoint({entry.pk, dearer.pk, other.pk})


@pytest.mark.parametrize(
    ("other", "is_covered"),
    [
        ("Passwords: after 8 wrong ones the account is blocked for 30 minutes.", True),
        ("Wait 30 minutes after a wrong password.", True),
        ("An account is locked after 5 wrong passwords. Wait 10 minutes.", False),
        ("My account is locked, why? Ask your manager.", False),
    ],
)
def test_a_handbook_covers_an_answer_and_a_near_miss_does_not(other, is_covered):
    entry = make_entry(
        "It is locked after 8 wrong passwords. Wait 30 minutes.",
        question="Why is my account locked?",
    )

    assert covers_answer(entry, "account locked", other) is is_covered


@pytest.mark.parametrize(
    ("other", "has_all"),
    [
        ("Claims lead for insurance: Oona Breslin.", True),
        ("Insurance claims go to Oona.", False),
        ("Oona Breslin | Dentist", False),
    ],
)
def test_a_query_is_answered_by_what_has_all_its_words(other, has_all):
    assert names_all("oona breslin insurance claims", other) is has_all


def test_a_few_words_of_a_fact_are_a_query_and_a_question_is_none():
    fact = make_entry("A replacement card costs 12 euros.")
    asked = make_entry("It is locked.", question="Why is my account locked?")

    found = own(draw_questions(make_knowledge_base(), seed=1))

    by_entry = {(each.group, each.is_query) for each in found}
    assert by_entry == {(group_of(fact), True), (group_of(asked), False)}
