"""When two questions ask the same: the words decide, whatever the distance says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.terms import canonical_number, terms
from kb.text.words import sentences
from qa.pipeline.entry_gate import passage_of
from qa.pipeline.values import clean_question
from qa.pipeline.verbatim import asks_the_same, is_denied, match_verbatim
from tests.qa.pipeline.values import make_evidence, make_policy, make_retrieval

SAME = [
    ("How do I block a lost card?", "how do i block my lost card"),
    ("How do I block a lost card?", "Please tell me how to block a lost card!"),
    ("How do I block a lost card?", "How do I block lost cards?"),
    ("What's the gold card fee?", "What is the fee of the gold card?"),
    ("What does a replacement card cost?", "How much does the replacement card cost?"),
    ("What does a replacement card cost?", "What does a replacment card cost?"),
    ("What does a replacement card cost?", "What does a repalcement card cost?"),
    ("Can\u2019t I use the card abroad?", "Can I not use my card abroad?"),
    ("Is there a limit of 1,000 euros?", "Is there a limit of \u20ac1000?"),
    ("Within three days?  Dispute a payment", "dispute a payment within 3 days"),
    ("Wie sperre ich meine Karte?", "Wie sperre ich die Karte"),
    ("Wann wird die Geb\u00fchr abgebucht?", "Wann wird die Geb\u00fchr abgebucht"),
]  # fmt: skip

OTHER = [
    ("What is the gold card fee?", "What is the silver card fee?"),
    ("What is the gold card fee?", "What is the card fee?"),
    ("What is the card fee?", "What is the gold card fee?"),
    ("How do I block a card?", "How do I unblock a card?"),
    ("Can I use the card abroad?", "Can I not use the card abroad?"),
    ("Which fee applies with a PIN?", "Which fee applies without a PIN?"),
    ("Is there a limit of 1,000 euros?", "Is there a limit of 2,000 euros?"),
    ("What is the limit of 500 euros?", "What is the limit?"),
    ("When is the statement issued?", "Where is the statement issued?"),
    ("How long does a dispute take?", "How many disputes does it take?"),
    ("How often is the fee charged?", "When is the fee charged?"),
    ("Who pays before the report?", "Who pays after the report?"),
    ("How do I move money from savings to credit?", "How do I move money from credit to savings?"),
    ("Is the fee above 10 euros?", "Is the fee below 10 euros?"),
    ("How do I turn the card on?", "How do I turn the card off?"),
    ("Is an incoming transfer free?", "Is an outgoing transfer free?"),
    ("How do I enable payments?", "How do I disable payments?"),
    ("Is my card active?", "Is my card inactive?"),
    ("Wie sperre ich meine Karte?", "Wie entsperre ich meine Karte?"),
    ("Gilt das mit PIN?", "Gilt das ohne PIN?"),
    ("???", "???"),
    ("What is it?", "What is that?"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "known"), SAME)
def test_the_same_question_in_other_clothes_is_the_same(asked, known):
    assert asks_the_same(asked, known)
    assert asks_the_same(known, asked)


@pytest.mark.parametrize(("asked", "known"), OTHER)
def test_another_question_is_never_the_same(asked, known):
    assert not asks_the_same(asked, known)
    assert not asks_the_same(known, asked)


WORDS = st.lists(
    st.sampled_from(
        ["gold", "silver", "card", "fee", "limit", "block", "abroad", "12", "30"]
    ),
    min_size=1,
    max_size=6,
)


@given(WORDS, st.text(max_size=40))
def test_the_comparison_has_no_sides(words, text):
    asked = " ".join(words)

    assert asks_the_same(asked, text) == asks_the_same(text, asked)


@given(st.permutations(["gold", "card", "replacement", "fee"]))
def test_the_order_of_words_is_free_where_no_direction_stands(words):
    assert asks_the_same("gold card replacement fee", " ".join(words))


@given(WORDS, st.sampled_from(["not", "never", "without", "nicht", "ohne"]))
def test_a_negation_on_one_side_alone_makes_another_question(words, negation):
    asked = " ".join([*words, "card"])

    assert not asks_the_same(asked, f"{negation} {asked}")


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("1,000", "1000"),
        ("1.000", "1000"),
        ("1,000.50", "1000.5"),
        ("1.000,50", "1000.5"),
        ("1,000,000", "1000000"),
        ("1.5", "1.5"),
        ("1,50", "1.5"),
        ("0.125", "0.125"),
        ("007", "7"),
        ("0", "0"),
        ("14.9", "14.9"),
    ],
)
def test_a_number_has_one_spelling(written, number):
    assert canonical_number(written) == number


@given(st.integers(0, 10**9))
def test_separators_of_thousands_change_no_number(value):
    spellings = (f"{value}", f"{value:,}", f"{value:,}".replace(",", "."), f"{value:,}".replace(",", "\u00a0"))  # fmt: skip

    assert {frozenset(terms(text).numbers) for text in spellings} == {
        frozenset({str(value)})
    }


@pytest.mark.parametrize(
    ("text", "words", "numbers"),
    [
        ("2026-03-01", {"month3"}, {"2026", "1"}),
        ("1 March 2026", {"month3"}, {"1", "2026"}),
        ("1st of May", {"month5"}, {"1"}),
        ("Am 1. M\u00e4rz", {"month3"}, {"1"}),
        ("\u20ac35", {"euro"}, {"35"}),
        ("35 EUR", {"euro"}, {"35"}),
        ("2%", {"percent"}, {"2"}),
        ("zw\u00f6lf Tage", {"tag"}, {"12"}),
        ("1. Call us [2]\n2. Pay 5 euros", {"call", "pay", "euro"}, {"5"}),
    ],
)
def test_dates_amounts_and_marks_are_read(text, words, numbers):
    read = terms(text)

    assert set(read.words) == words
    assert read.numbers == numbers


def test_sentences_end_at_full_stops_and_not_at_abbreviations():
    text = "Fees, e.g. for cash, apply. They cost 1.50 euros! See no. 5.\nCall us"

    assert sentences(text) == (
        "Fees, e.g. for cash, apply.",
        "They cost 1.50 euros!",
        "See no. 5.",
        "Call us",
    )


@given(st.text(max_size=500))
def test_any_text_has_terms_and_sentences(text):
    assert asks_the_same(text, text) == bool(terms(text).words)
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_a_confirmed_question_in_other_words_is_asked_for_as_the_entrys_own():
    fact = make_evidence("A lost card is blocked in the app.", distance=0.01)
    known = replace(fact, wordings=("My plastic has vanished, now what?",))
    asked = clean_question("my plastic has vanished - now what", "en")
    other = clean_question("my plastic has melted, now what", "en")
    policy = make_policy(verbatim_distance=0.35)

    def matched(question, piece):
        return match_verbatim(question, make_retrieval(piece), policy=policy).evidence

    assert matched(asked, known) == known
    assert matched(asked, fact) is None
    assert matched(other, known) is None
    assert matched(asked, replace(known, is_verified=False)) is None


def test_the_verifier_reads_an_entry_with_the_wording_that_asks_the_same():
    pair = make_evidence("In the app.", question="How do I block a card?")
    known = replace(pair, wordings=("My plastic has vanished, now what?",))

    def read(text, piece=known):
        return passage_of(piece, clean_question(text, "en")).question

    assert read("now what, my plastic has vanished") == known.wordings[0]
    # Much like it is not enough: a near miss would be taken for it.
    assert read("what if the plastic vanished") == pair.question
    assert read("how to block the card") == pair.question
    assert passage_of(known).question == pair.question


def test_what_an_expert_denied_is_not_shown_for_the_same_words():
    pair = make_evidence(
        "In the app.", question="How do I block a card?", distance=0.01
    )
    denied = replace(pair, denied=("How do I block a card?",))
    policy = make_policy(verbatim_distance=0.35)

    def matched(text, piece):
        found = make_retrieval(piece)
        return match_verbatim(clean_question(text, "en"), found, policy=policy).evidence

    assert matched("how do I block the card", pair) == pair
    assert matched("how do I block the card", denied) is None
    assert is_denied("how do i block the card", denied)
    assert not is_denied("how do i unblock the card", denied)


@pytest.mark.parametrize(
    ("asked", "distance"),
    [
        ("Swimming lesson", 0.41),
        ("swiming lessons?", 0.84),
        ("Hi, info on swimming lessons please", 0.84),
        ("swimming lessons information, thanks!", 0.84),
        ("tell me about swimming lessons", 0.84),
        ("infos zu swimming lessons bitte", 0.84),
        ("information on teaching swimming lessons", None),
        ("Lessons of swimming", None),
    ],
)
def test_a_question_in_the_same_words_and_order_is_no_distance_away(asked, distance):
    pair = make_evidence(
        "They cost 84 euros.", question="Swimming lessons", distance=distance or 0.5
    )
    nearer = make_evidence("Students swim for 24.", question="Student", distance=0.4)
    found = match_verbatim(
        clean_question(asked, "en"),
        make_retrieval(nearer, pair),
        policy=make_policy(verbatim_distance=0.35),
    )

    if distance:
        assert found.evidence == pair
        assert found.signals[0].value == 0
    else:
        assert found.evidence is None
        assert found.signals[0].value == 0.4
