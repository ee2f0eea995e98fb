"""A slip of the pen is read as the word that is meant; words that exist stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.slips import is_slip, respelt

ENTRY = "The employee gets a library card; the statement is replaced."


def exists(word: str) -> bool:
    return word in {"employer", "employed", "library", "lost", "statements"}


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("how do i get a libary card", "how do i get a library card"),
        ("my Statment is gone", "my statement is gone"),
        ("lost libraryy card", "lost library card"),
        ("is the emplyoee insured", "is the employee insured"),
        ("what does the employer pay", "what does the employer pay"),
        ("are cards replacd", "are cards replaced"),
        ("crad", "crad"),  # too short
        ("", ""),
    ],
)
def test_slips_are_read_as_what_the_entries_say(question, read):
    assert respelt(question, [ENTRY], is_word=exists) == read


def test_where_two_words_are_as_near_neither_is_taken():
    assert respelt("montlhy", ["monthly", "months"], is_word=exists) == "monthly"
    assert respelt("replacd", ["replace", "replaced"], is_word=exists) == "replacd"


@given(
    st.text(alphabet="abcdefgh ", max_size=40),
    st.text(alphabet="abcdefgh ", max_size=40),
)
def test_words_of_the_entry_and_words_that_exist_are_never_changed(question, entry):
    assert respelt(question, [entry], is_word=lambda _word: True) == question
    assert respelt(question, [entry, question], is_word=lambda _word: False) == question


@given(
    st.text(alphabet="abcdefgh", min_size=1), st.text(alphabet="abcdefgh", min_size=1)
)
def test_a_slip_is_one_both_ways_and_keeps_the_first_letter(one, other):
    assert is_slip(one, other) == is_slip(other, one)
    if is_slip(one, other):
        assert one[0] == other[0]
        assert abs(len(one) - len(other)) <= 1
