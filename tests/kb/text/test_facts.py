"""Paragraphs cut into facts that mean something alone."""

import pytest

from kb.text.facts import PIECE_CHARACTERS, leans, split_into_facts

OUTSTORE = (
    "Items kept at our outstore in Nether Barlow are delivered only on Wednesdays and must "
    "be ordered by noon on the Monday before."
)
SEVERAL = [
    f"The counter of branch number {n} is open from nine in the morning until five in the "
    "afternoon on working days."
    for n in range(6)
]


def cut(*sentences: str, language: str = "en") -> list[str]:
    return list(split_into_facts(" ".join(sentences), language))


def test_a_short_paragraph_is_one_fact():
    said = f"{OUTSTORE} The catalogue shows these with the location code NB."

    assert cut(said) == [said]


def test_a_long_paragraph_is_cut_between_sentences_and_nothing_is_lost():
    found = cut(*SEVERAL)

    assert len(found) == 2
    assert all(len(piece) <= PIECE_CHARACTERS for piece in found)
    assert " ".join(found) == " ".join(SEVERAL)


@pytest.mark.parametrize(
    "leaning",
    [
        "If that doesn't settle it, it can be sent to the Reader Services Manager.",
        "Book at least six weeks ahead of your visit.",
        "The catalogue says so under the conditions of access.",
        "The catalogue shows these with the location code NB.",
        "They last about ninety minutes and cost 75 pounds for a group.",
        "After that they go back to the strongroom in the cellar.",
        "Otherwise half of the fee is due at the end of the month.",
        "Until then the card can be used as it was before.",
        "Some of them are only open in the summer months.",
        "In that case the fee is refunded within a week.",
        "To get one, a visitor brings a proof of identity along.",
        "Pensioners from other counties pay the same price as well.",
        "Please do not bring more than one bag with you.",
        "Never leave the parcel with a neighbour of the customer.",
        "Assistance dogs are welcome.",
    ],
)
def test_it_is_never_cut_before_a_sentence_that_leans(leaning):
    assert leans(leaning)
    first, second = cut(*SEVERAL[:3], leaning, *SEVERAL[3:5])

    assert first == " ".join([*SEVERAL[:3], leaning]) or leaning in second
    assert not second.startswith(leaning)


@pytest.mark.parametrize(
    "alone",
    [
        "Book loans are free of charge for all of our members.",
        "The searchroom is open from Tuesday to Friday.",
        "Tickets that other offices issued are accepted here as well as ours.",
        "Documents less than fifty years old can't be photographed.",
        "Visitors from abroad may show a hotel confirmation.",
        "Iterations of the form are numbered from one to nine.",
        "Contact details are printed on the back of the card.",
    ],
)
def test_a_sentence_with_a_subject_of_its_own_stands_alone(alone):
    assert not leans(alone)


def test_german_is_cut_by_its_own_words():
    said = [
        f"Die Filiale Nummer {n} ist an Werktagen von neun bis siebzehn Uhr f\u00fcr alle "
        "Kundinnen und Kunden der Bank ge\u00f6ffnet."
        for n in range(4)
    ]
    leaning = "Danach ist der Nachtschalter im Hof der Zentrale besetzt."

    found = cut(*said, leaning, language="de")

    assert leans(leaning)
    assert not any(piece.startswith(leaning) for piece in found)
    assert " ".join(found) == " ".join([*said, leaning])


def test_sentences_that_all_lean_are_cut_all_the_same():
    found = cut(*["It is open at nine on every day of the week."] * 60)

    assert len(found) > 1
    assert max(map(len, found)) <= 1_200
