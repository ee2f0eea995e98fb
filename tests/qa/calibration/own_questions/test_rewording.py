"""Own questions in other words, by rule."""

import random

from hypothesis import given
from hypothesis import strategies as st

from qa.calibration.own_questions.drawing import (
    frequencies_in,
    key_words,
    mistype,
    telling_words,
)


def test_a_search_box_gets_the_key_words_alone():
    assert key_words("How do I block my stolen credit card?") == (
        "block stolen credit card"
    )
    assert key_words("Wie kann ich meine Karte sperren?") == "karte sperren"
    assert key_words("What is it?") == ""


def test_denial_is_a_key_word():
    assert "not" in key_words("Why does the card not work abroad?")


def test_a_fact_is_asked_for_by_what_other_facts_do_not_say():
    texts = [
        "The card costs 12 euros a year.",
        "The card is blocked after three attempts.",
        "The card works at contactless terminals.",
    ]
    frequencies = frequencies_in(texts)
    assert telling_words(texts[1], frequencies).split() == [
        "blocked", "after", "three", "attempts",
    ]  # fmt: skip
    assert "12" not in telling_words(texts[0], frequencies)


@given(st.text(), st.integers(0, 5))
def test_a_mistyped_question_differs_in_one_place(question, seed):
    said = mistype(question, random.Random(seed))
    if said:
        assert said != question
        assert abs(len(said) - len(question)) <= 1
        differing = (
            n for n, (a, b) in enumerate(zip(said, question, strict=False)) if a != b
        )
        start = next(differing, min(len(said), len(question)))
        tail = len(question) - start - 2
        assert said.endswith(question[len(question) - tail :]) if tail > 0 else True


def test_short_words_are_not_mistyped():
    assert mistype("Is it on?", random.Random(1)) == ""


def test_the_same_seed_mistypes_the_same():
    text = "Where can I withdraw cash without a fee?"
    assert mistype(text, random.Random("1 2")) == mistype(text, random.Random("1 2"))
