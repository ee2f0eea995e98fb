"""Questions in which one thing is exchanged: none is answered by what answered it."""

import random

import pytest

from qa.training.exchanges import OPPOSITES, Exchanges, Kind
from qa.training.knowledge_sets import KnowledgeSet, SourceEntry, SourceQuestion
from qa.training.verifier_desks import read_support_desks


def known(text: str, *questions: str, others: str = "") -> KnowledgeSet:
    found = KnowledgeSet("known", "ours")
    place = found.place(SourceEntry(text, "Oxygen"))
    if others:
        found.place(SourceEntry(others, "Oxygen"))
    for asked in questions:
        found.ask(asked, [place])
    return found


def every(source: KnowledgeSet, question: SourceQuestion, kind: Kind | None = None):
    made = Exchanges(source, random.Random(0))
    found = [made.exchange(question) for _ in range(60)]
    return [each for each in found if each and kind in (None, each.kind)]


def test_a_name_gives_way_to_another_of_the_same_title():
    source = known(
        "It was found by Carl Scheele in Uppsala.",
        "What was found by Carl Scheele?",
        others="Later Joseph Priestley wrote of it.",
    )
    found = every(source, source.questions[0], Kind.NAME)
    assert {each.text for each in found} == {"What was found by Joseph Priestley?"}
    assert {each.entry.text for each in found} == {
        "It was found by Joseph Priestley in Uppsala."
    }


def test_a_year_gives_way_to_one_near_it():
    source = known("It was named in 1777.", "What was named in 1777?")
    found = every(source, source.questions[0], Kind.NUMBER)
    years = {int(each.text.removesuffix("?").split()[-1]) for each in found}
    assert years
    assert all(1 <= abs(year - 1777) <= 100 for year in years)


def test_a_word_gives_way_to_its_opposite_and_keeps_its_capital():
    source = known("Above 90 kelvins it boils.", "Above what does it boil?")
    found = every(source, source.questions[0], Kind.OPPOSITE)
    assert {each.text for each in found} == {"Below what does it boil?"}
    assert {each.entry.text for each in found} == {"Below 90 kelvins it boils."}


def test_a_negated_question_has_no_entry_that_answers():
    source = known("It boils.", "What does it do?")
    found = every(source, source.questions[0], Kind.NEGATION)
    assert {(each.text, each.entry) for each in found} == {
        ("What does not it do?", None)
    }


def test_what_the_entry_says_as_well_is_no_exchange():
    source = known("Before or after noon.", "Is it before noon?")
    assert every(source, source.questions[0], Kind.OPPOSITE) == []


def test_nothing_may_be_exchanged():
    source = known("It boils.", "Does it boil?")
    assert every(source, source.questions[0]) == []


@pytest.mark.parametrize("source", read_support_desks()[:6], ids=lambda each: each.name)
def test_one_place_changes_and_the_entry_follows(source):
    made = Exchanges(source, random.Random(1))
    for question in source.questions:
        if not question.answered_by or not (found := made.exchange(question)):
            continue
        assert found.text != question.text
        before, after = question.text.split(), found.text.split()
        assert len(set(before) - set(after)) <= 3
        if found.entry:
            assert found.entry not in source.entries


def test_opposites_go_both_ways():
    assert all(
        word in OPPOSITES[other] for word, every in OPPOSITES.items() for other in every
    )
