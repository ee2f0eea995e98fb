"""Which year, or which of several in a row, a text is about."""

import pytest

from kb.text.turns import is_of_another_turn


@pytest.mark.parametrize(
    ("question", "text", "is_other"),
    [
        ("Who won the cup in 1975?", "West Germany won the cup in 1974.", True),
        ("Who won the cup in 1974?", "West Germany won the cup in 1974.", False),
        ("Who won in 2023?", "From 2020 to 2024 the reds won.", False),
        ("Who won in 2023?", "The reds won since 2020.", False),
        ("Who won in 2023?", "The reds won 2020\u20132024.", False),
        ("Is 2000 enough?", "A limit of 1,500 euros, or of 1999 euros.", False),
        ("Which number was it in 1999?", "Call 0800 2010 1999 or 2010.", False),
        ("What does a third replacement card cost?",
         "A second replacement card in one year costs 6 euros.", True),
        ("What does the 3rd replacement cost?", "The second replacement is free.", True),
        ("What does a second replacement card cost?",
         "A second replacement card in one year costs 6 euros.", False),
        ("What does a third replacement card cost?",
         "The first replacement card is free, each further one costs 6 euros.", False),
        ("What does a third card cost?", "A second replacement costs 6 euros.", False),
        ("What do I do first?", "Second, call us. First, block the card.", False),
        ("price of A5 printing", "A4: 5p. A3: 9p.", True),
        ("price of a4 printing", "A4: 5p. A3: 9p.", False),
        ("my box says K-204", "K204: restart it.", False),
        ("what does E7 mean", "Errors E5\u2013E9: call us.", False),
        ("what does E7 mean", "Restart the box.", False),
        ("what does E7 mean", "Errors E5 through E9: call us.", False),
        ("Can I print A5?", "You can print up to A3.", False),
        ("I am in grade K2", "Grades K1 and above get it.", False),
        ("is M4 staff included", "It is for M3+ staff.", False),
        ("can I withdraw EUR50", "Withdrawals up to EUR200 are free.", False),
        ("can I withdraw EUR50", "EUR200 is the limit.", False),
        ("what about pre-20 cars", "Pre-06 cars are charged.", False),
        ("", "", False),
    ],
)  # fmt: skip
def test_another_year_or_place_in_a_row_is_told_apart(question, text, is_other):
    assert is_of_another_turn(question, text) is is_other
