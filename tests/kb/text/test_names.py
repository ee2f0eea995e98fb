"""Which of several things of a kind is asked for, and which a text is about."""

import pytest

from kb.text.names import Names, asked_by_name, is_of_another

GOLD = "The Tarn Gold card costs 96 euros a year."
SILVER = "A Tarn Silver card costs 40 euros a year."
ANY = "Tarn cards can be added to Apple Pay."
TEXTS = (GOLD, SILVER, ANY)


def others(question: str, *texts: str) -> list[str]:
    asked = Names.in_texts(texts or TEXTS).asked_for(question)
    return [text for text in texts or TEXTS if is_of_another(asked, text)]


@pytest.mark.parametrize(
    ("question", "beside"),
    [
        ("What does the Tarn Platinum card cost per year?", [GOLD, SILVER]),
        ("what does the tarn silver card cost", [GOLD]),
        ("Can I add my Platinum card to Apple Pay?", [GOLD, SILVER]),
        ("Do the Gold card and the Silver card cost the same?", []),
        ("How much is gold a year, the card I mean?", [SILVER]),
        # No name is asked for, or only that of all: any of them may answer.
        ("How do I get a new card?", []),
        ("What does a Tarn card cost?", []),
        ("Gold or not?", []),
        ("", []),
    ],
)
def test_a_text_about_another_thing_of_the_kind_is_told_apart(question, beside):
    assert others(question) == beside


def test_what_is_written_large_at_the_beginning_of_a_sentence_is_no_name():
    lost = "Lost cards are blocked. Stolen cards are too: Foreign cards are not."
    assert others("What if I found a Silver card?", lost) == []


def test_what_stands_over_a_text_is_said_of_it():
    asked = Names.in_texts(TEXTS).asked_for("What does the Platinum card cost?")
    assert is_of_another(asked, GOLD, "Prices of the Tarn Gold card")
    assert not is_of_another(asked, GOLD, "Platinum and Gold")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the deputy at Harrow Lane?", {"harrow"}),
        ("Does Rotaquick match by name?", {"rotaquick"}),
        ("Rotaquick: by name or number?", {"rotaquick"}),
        ("Is Solo's limit five users?", {"solo"}),
        # It is no name everywhere, begins a sentence, is a day or an abbreviation.
        ("does rotaquick match by name", set()),
        ("Who drives down the Lane?", set()),
        ("Solo or not?", set()),
        ("What if I'm late?", set()),
        ("Can't I pay by card?", set()),
        ("Sign-in fails, why?", set()),
        ("Is it open on a Monday?", set()),
        ("Is VAT due?", set()),
        ("Is it open in Dorset?", set()),
        ("", set()),
    ],
)
def test_a_name_is_what_the_texts_write_large_everywhere(question, names):
    texts = [
        "The deputy at Harrow Lane is Huw. Down the lane is parking.",
        "Rotaquick | by number",
        "Choose Solo for five users, on Monday with VAT.",
        "Ask if I'm ill. Can't log in? Sign-in needs a code.",
    ]
    known = {"solo", "lane", "down", "match", "name", "does", "sign", "in"}.__contains__

    assert asked_by_name(question, texts, is_word=known) == names
