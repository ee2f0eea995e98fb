"""What is asked in a long message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.pipeline.long_question import MAX_WORDS, question_in

GREETING = (
    "Good morning, my name is Anna Berger and I have been with you for many years, always "
    "to my full satisfaction, also in the summer when my husband was away."
)
CLOSING = "Thank you very much in advance, and best regards\nAnna Berger"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("How much does a new library card cost?", None),
        ("I need a new library card. What does it cost?", None),
        ("Where do I send the old form? And may I use a copy of it?", None),
        ("the late fee for books", None),
        ("i moved to another street last month, the old one was loud. how do I tell you my new address?", None),
        ("I love to read. Until when is the branch in Mill Lane open on Fridays?", "Until when is the branch in Mill Lane open on Fridays?"),
        ("Wie hoch ist die Gebühr für eine neue Karte?", None),
        ("Could you please tell me until when the branch in Mill Lane is open", None),
    ],
)  # fmt: skip
def test_the_sentences_that_ask_are_read(asked, found):
    message = f"{GREETING}\n\n{asked}\n\n{CLOSING}"

    assert question_in(message) == (found or asked)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("so can i take my bike on the metro at rush hour", "can i take my bike on the metro at rush hour"),
        ("and now I wonder, is the annual fee due again", "is the annual fee due again"),
    ],
)  # fmt: skip
def test_a_sentence_without_end_is_read_from_where_it_asks(asked, found):
    runs_on = (
        "hi so yesterday evening we were sitting together with friends and got into a long "
        "discussion about this everybody had another opinion and in the end we made a bet"
    )

    assert question_in(f"{runs_on} {asked}") == found


def test_a_statement_without_end_is_read_by_its_last_words():
    words = [f"word{number}" for number in range(50)]

    assert question_in(" ".join(words)) == " ".join(words[-MAX_WORDS:])


@given(st.text(max_size=400))
def test_it_is_made_of_the_message_and_never_empty(message):
    question = question_in(message)

    assert bool(question.strip()) == bool(message.strip())
    assert set(question.split()) <= set(message.split())
    if len(message.split()) <= MAX_WORDS:
        assert question == message


@given(st.lists(st.sampled_from(["Why is it so?", "It rains.", "Thanks!", "and", "can I go"]), min_size=20, max_size=60))  # fmt: skip
def test_it_is_as_short_as_the_verifier_reads(parts):
    assert len(question_in(" ".join(parts)).split()) <= MAX_WORDS
