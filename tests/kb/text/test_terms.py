import pytest

from kb.text.terms import is_reversed, language_of, terms


def test_denial_is_seen_in_english_and_german():
    assert terms("They don\u2019t.").is_negated
    assert terms("Das geht nicht.").is_negated
    assert not terms("Nothingham is a knot.").is_negated


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Can I raise my limit?", "A limit can be lowered in the app.", True),
        ("Can I raise my limit?", "A limit can be raised or lowered.", False),
        ("How long before I may?", "After eight weeks, in the afternoon.", False),
        ("Kann ich die Karte sperren?", "Sie kann entsperrt werden.", True),
        ("Are you open on Sundays?", "The branch is closed on Sundays.", False),
        ("What does a card cost?", "A card costs 12 euros.", False),
    ],
)
def test_what_speaks_of_the_opposite_alone_is_reversed(question, text, expected):
    assert is_reversed(question, text) is expected


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I block a lost card?", "en"),
        ("What was the fee in the first year", "en"),
        ("Wie sperre ich meine Karte?", "de"),
        ("Kann ich kündigen?", "de"),
        ("Ich will die Karte", "de"),
        ("Tarn Gold fee", None),
        ("PIN?", None),
        ("Quels sont les horaires des agences", None),
        ("", None),
    ],
)
def test_a_language_is_known_by_its_small_words(text, language):
    assert language_of(text) == language
