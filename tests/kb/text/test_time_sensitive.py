"""What changes with time is told by the words of a question."""

import pytest

from kb.text.terms import asks_about_now


@pytest.mark.parametrize(
    "question",
    [
        "Who is the current Prime Minister?",
        "Who's currently leading?",
        "What is the latest version?",
        "What does a card cost now?",
        "What\u2019s today\u2019s rate?",
        "Who won the election this\n year?",
        "Which films are RECENTLY released?",
        "How many goals has she scored so far?",
    ],
)
def test_such_questions_are_found(question):
    assert asks_about_now(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who was the first president of the United States?",
        "When was the Battle of Hastings?",
        "What is known of the snow leopard?",
        "Who wrote the song of the newsboys?",
        "",
    ],
)
def test_others_are_not(question):
    assert not asks_about_now(question)


def test_each_language_has_its_own_words():
    assert asks_about_now("Was kostet die Karte derzeit?", "de")
    assert asks_about_now("Wer gewann diese Woche?", "de")
    assert not asks_about_now("Wer malte die Mona Lisa?", "de")
    assert asks_about_now("What is the current fee?", "fr")
