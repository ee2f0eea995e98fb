"""Which words are new and in doubt, and what is asked because of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.pipeline.monitored_words import (
    augmented_query,
    bounded,
    content_words,
    new_words,
    tamed,
    unconfident,
    word_keys,
)

FINITE = st.floats(-1e6, 1e6)


def texts(words):
    return [word.text for word in words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The author of it was Mary Shelley.", ["author", "Mary", "Shelley"]),
        ("It doesn't, and he'll not.", []),
        ("Shelley's book cost 1,50 pounds", ["Shelley", "book", "cost", "1,50", "pounds"]),
        ("Shelley\u2019s", ["Shelley"]),
        ("Er wurde in Köln geboren, nicht in Bonn.", ["Köln", "geboren", "Bonn"]),
        ("", []),
        ("... !?", []),
    ],
)  # fmt: skip
def test_what_every_text_has_is_no_information(text, expected):
    assert texts(content_words(text)) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [("Rivers", "river"), ("1,000", "1000"), ("two", "2"), ("MARY", "Mary")],
)
def test_words_are_compared_whatever_their_spelling(one, other):
    assert word_keys([one]) == word_keys([other])


@given(st.text(max_size=200))
def test_every_word_stands_where_it_says(text):
    for word in content_words(text):
        assert text[word.start : word.end] == word.text


@given(st.lists(FINITE, max_size=40), st.lists(FINITE, max_size=10))
def test_nothing_that_comes_later_changes_what_was_told(values, later):
    assert tamed([*values, *later])[: len(values)] == tamed(values)


def test_an_outlier_is_told_by_what_came_before_it_alone():
    values = [1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.05]

    assert tamed([*values, -50.0, 1.0]) == (*values, pytest.approx(1.0), 1.0)
    assert tamed([*values, 0.7]) == (*values, 0.7)
    # Of a few, none stands out.
    assert tamed([1.0, 1.1, -50.0]) == (1.0, 1.1, -50.0)


@given(st.lists(FINITE, min_size=1, max_size=40))
def test_taming_makes_no_value_more_extreme(values):
    assert min(tamed(values)) >= min(values)
    assert max(tamed(values)) <= max(values)


def test_a_word_is_as_confident_as_its_least_confident_token():
    tokens = ("Mary", " Shel", "ley", " wrote", " it", ".")
    values = (3.0, 2.0, -1.0, 0.5, -9.0, -9.0)

    found = new_words("Mary Shelley wrote it.", tokens, values, known=set())

    assert [(w.text, w.confidence) for w in found] == [
        ("Mary", 3.0),
        ("Shelley", -1.0),
        ("wrote", 0.5),
    ]
    assert texts(unconfident(found, 0.5)) == ["Shelley"]
    assert texts(unconfident(found, 0.6)) == ["Shelley", "wrote"]


def test_what_was_said_before_is_not_new():
    known = word_keys(["Who wrote Frankenstein?", "It is a novel."])

    found = new_words(
        "Frankenstein, a novel of Mary.",
        ("Frankenstein, a novel of Mary.",),
        (-1.0,),
        known=known,
    )

    assert texts(found) == ["Mary"]


def test_a_word_that_no_token_covers_is_in_doubt():
    (word,) = new_words("Mary", (), (), known=set())

    assert unconfident([word], -1e9) == [word]


def test_a_token_without_a_confidence_is_refused():
    with pytest.raises(ValueError, match="zip"):
        new_words("Mary", ("Mary",), (), known=set())


def test_the_words_in_doubt_are_left_out_of_the_query():
    text = "Frankenstein was written by Percy Shelley in 1818."
    doubted = [w for w in content_words(text) if w.text in {"Percy", "1818"}]

    query = augmented_query("Who wrote Frankenstein?", text, doubted)

    assert query == "Who wrote Frankenstein? Frankenstein was written by Shelley in ."


def test_where_nothing_is_left_the_question_alone_is_asked():
    text = "Percy."

    assert augmented_query("Who?", text, content_words(text)) == "Who?"


@given(st.text(max_size=1_000), st.text(max_size=1_000))
def test_a_query_is_one_line_of_bounded_length(question, segment):
    query = augmented_query(question, segment, content_words(segment))

    assert len(query) <= 300
    assert query == bounded(query)
    assert not {"\n", "\r", "\x00"} & set(query)
