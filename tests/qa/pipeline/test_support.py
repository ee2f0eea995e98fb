"""What of an answer stands in the evidence that it cites."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.answers.sources import configured_verifier
from qa.pipeline.gates import Reason
from qa.pipeline.policy import Policy
from qa.pipeline.soft_gate import judge_generation, stands_in, verify_support
from qa.pipeline.values import Question
from tests.qa.pipeline.values import make_evidence, make_generation, make_retrieval

FEE = make_evidence("A replacement card costs 12 euros. Delivery takes 5 working days.")
REFUND = make_evidence("The fee is not refundable after 14 days.", entry_id=2)
DATE = make_evidence("The offer ends on 1 March 2026.", entry_id=3)


def support(answer, *evidence, question="What does it cost?", **changes):
    retrieval = make_retrieval(*(evidence or (FEE,)))
    return verify_support(
        Question(question), retrieval, make_generation(answer, **changes)
    )


@pytest.mark.parametrize(
    "quote",
    [
        "A replacement card costs 12 euros",
        "a  REPLACEMENT\ncard costs",
        "\u201creplacement card costs 12 euros.\u201d",
        "costs 12 euros\u2026",
    ],
)
def test_a_quote_stands_but_for_case_space_and_quote_marks(quote):
    assert stands_in(quote, FEE.text)


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "...",
        "A card costs 12 euros",
        "costs 13 euros",
        "replacing a card",
        "A replacement card costs 1",
        "Delivery takes 5 work",
    ],
)
def test_a_paraphrase_does_not_stand(quote):
    assert not stands_in(quote, FEE.text)


@given(st.integers(0, 60), st.integers(1, 60))
def test_any_piece_of_the_text_from_a_word_on_stands(start, length):
    words = FEE.text.split()
    piece = " ".join(words[start % len(words) :][:length])

    assert stands_in(piece, FEE.text)


def test_citations_keep_what_holds_and_count_what_does_not():
    kept = support(
        "12 euros",
        FEE,
        REFUND,
        cited=(1, 2, 9),
        quotes=((1, "costs 12 euros"), (2, "always refundable")),
    )

    assert [(c.entry_id, c.quote) for c in kept.citations] == [(1, "costs 12 euros")]
    assert kept.dropped == 2


def test_a_citation_without_a_quote_gets_the_sentence_that_fits():
    kept = support("It takes 5 working days.", FEE)

    assert [c.quote for c in kept.citations] == ["Delivery takes 5 working days."]


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("It costs 12 euros.", FEE),
        ("It costs \u20ac12.00.", FEE),
        ("Twelve euros.", FEE),
        ("1. It costs 12 euros [1].", FEE),
        ("No, the fee is not refundable.", REFUND),
        ("After fourteen days the fee can't be refunded; it isn't refundable.", REFUND),
        ("Until 2026-03-01.", DATE),
        ("It ends on the 1st of March 2026.", DATE),
        ("By post.", FEE),
        ("1. It costs 12 euros.\n2. It takes 5 days.", FEE),
        ("3 euros each year.", make_evidence("The annual fee is 3 euros.")),
        ("The monthly fee is 3 euros.", make_evidence("The fee is 3 euros a month.")),
    ],
)
def test_what_the_evidence_says_is_supported(answer, evidence):
    assert support(answer, evidence).unsupported == ()


@pytest.mark.parametrize(
    ("answer", "evidence", "missing"),
    [
        ("It costs 13 euros.", FEE, ("13",)),
        ("It costs 12.50 euros.", FEE, ("12.5",)),
        ("It takes six days.", FEE, ("6",)),
        ("It ends on 1 April 2026.", DATE, ("month4",)),
        ("It ends on 1 March 2027.", DATE, ("2027",)),
        ("It costs 12 percent.", FEE, ("percent",)),
        ("It costs $12.", FEE, ("dollar",)),
        ("It takes five weeks.", FEE, ("week",)),
        ("30. That is the fee.", FEE, ("30",)),
    ],
)
def test_a_number_or_date_that_no_cited_entry_says_is_unsupported(
    answer, evidence, missing
):
    assert support(answer, evidence).unsupported == missing


@pytest.mark.parametrize(
    ("answer", "evidence", "question"),
    [
        ("The fee is refundable.", REFUND, "Is the fee refundable?"),
        ("Yes, the fee is refundable.", REFUND, "Is the fee refundable?"),
        ("Yes.", REFUND, "Is the fee refundable?"),
        ("A replacement card costs no 12 euros.", FEE, "What does it cost?"),
        ("No.", FEE, "Does a replacement card cost 12 euros?"),
    ],
)
def test_a_negation_added_or_lost_is_unsupported(answer, evidence, question):
    told = support(answer, evidence, question=question).unsupported

    assert len(told) == 1
    assert told[0].startswith("negation")


def test_a_number_of_an_entry_that_is_not_cited_does_not_count():
    assert support("It costs 12 euros.", REFUND, FEE, cited=(1,)).unsupported == (
        "12",
        "euro",
    )


def test_a_number_in_the_cited_question_counts():
    piece = make_evidence("Yes, at once.", question="Can I pay 50 euros early?")

    assert support("You can pay 50 euros at once.", piece).unsupported == ()


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_answer_is_judged(answer, text):
    judged = support(answer, make_evidence(text or "-"))

    assert judged.answer_overlap is None or 0 <= judged.answer_overlap <= 1


@given(st.sampled_from(FEE.text.split(". ")))
def test_an_answer_copied_from_the_evidence_is_supported(sentence):
    kept = support(sentence, FEE)

    assert (kept.unsupported, kept.dropped) == ((), 0)
    assert kept.answer_overlap == 1.0


def sentence_support(answer, *evidence):
    generation = make_generation(answer)
    return verify_support(
        Question("What does it cost?"),
        make_retrieval(*(evidence or (FEE,))),
        generation,
        verifier=configured_verifier,
    ).sentence_support


@pytest.mark.verifier
@pytest.mark.parametrize(
    "answer",
    [
        "It is so.",
        "That is correct, you can.",
        "A replacement card costs 12 euros. You can collect it at any branch.",
    ],
)
def test_a_sentence_that_no_cited_entry_carries_is_unsupported(answer):
    generation, retrieval = make_generation(answer), make_retrieval(FEE)
    found = verify_support(
        Question("What does it cost?"),
        retrieval,
        generation,
        verifier=configured_verifier,
    )
    decision = judge_generation(
        retrieval, generation, found, policy=Policy(), language_model=""
    )
    assert (found.sentence_support or 0.0) < Policy().min_sentence_support
    assert decision.reason is Reason.UNSUPPORTED


@pytest.mark.verifier
@pytest.mark.parametrize(
    "answer",
    [
        "You have to pay 12 euros for a replacement card.",
        "It takes 5 working days until it is delivered.",
        "Yes, a replacement card costs 12 euros.",
    ],
)
def test_a_sentence_in_other_words_than_the_entry_s_is_carried(answer):
    assert sentence_support(answer) >= Policy().min_sentence_support


def test_words_of_the_entry_need_no_verifier_and_a_bare_yes_says_nothing():
    def found(answer):
        return support(answer).sentence_support

    assert found("Delivery takes 5 working days.") == 1
    assert found("Yes.") is None
    assert found("It is so.") is None  # nothing that could tell
