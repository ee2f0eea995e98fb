import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.quantities import find_quantities, parse_number
from kb.text.words import read_words


def read(text: str) -> list[tuple[str, float]]:
    return [(q.dimension, q.value) for q in find_quantities(read_words(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 euros", [("money:euro", 5)]),
        ("EUR 1,200.50", [("money:euro", 1200.5)]),
        ("€1.200,50", [("money:euro", 1200.5)]),
        ("2 million euros", [("money:euro", 2e6)]),
        ("0.5 %", [("percent", 0.5)]),
        ("a quarter of it", [("percent", 25)]),
        ("half an hour", [("duration", 0.5 / 24)]),
        ("two weeks", [("duration", 14)]),
        ("five working days", [("duration", 5)]),
        ("1 kg", [("mass", 1000)]),
        ("6.30 pm", [("clock", 18.5 * 60)]),
        ("12 am", [("clock", 0)]),
        ("noon", [("clock", 720)]),
        ("18:00 Uhr", [("clock", 18 * 60)]),
        ("ten in the evening", [("clock", 22 * 60)]),
        ("7:30 in the morning", [("clock", 7.5 * 60)]),
        ("from 9 to 5 pm", [("clock", 9 * 60), ("clock", 17 * 60)]),
        ("between 2 and 5 pm", [("clock", 14 * 60), ("clock", 17 * 60)]),
        ("two nurses at night", [("count", 2)]),
        ("two to three working days", [("duration", 2), ("duration", 3)]),
        ("one or two people", [("count", 1), ("count", 2)]),
        ("1,000 MB", [("data", 1000)]),
        ("1 GB", [("data", 1000)]),
        ("40p per mile", [("money:pound", 0.4)]),
        ("once per quarter", [("frequency", 1 / 91.3125)]),
        ("on Mondays", [("weekday", 0)]),
        ("the 15th", [("ordinal", 15)]),
        ("31 July 2025", [("date", 20250731)]),
        ("July 31st, 2025", [("date", 20250731)]),
        ("31.07.2025", [("date", 20250731)]),
        ("in October", [("date", 1000)]),
        ("you may go in 2025", [("date", 20250000)]),
        ("one tablet three times a day", [("count", 1), ("frequency", 3)]),
        ("twice daily", [("frequency", 2)]),
        ("every 8 hours", [("frequency", 3)]),
        ("every other week", [("frequency", 1 / 14)]),
        ("once in a year", [("frequency", 1 / 365.25)]),
        ("dreimal täglich", [("frequency", 3)]),
        ("alle zwei Wochen", [("frequency", 1 / 14)]),
        ("three times the salary", [("times", 3)]),
        ("once you are registered", []),
        ("line 12", []),
        ("six sessions", [("count", 6)]),
    ],
)
def test_a_quantity_is_read_in_its_common_unit(text, expected):
    found = read(text)
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert [v for _, v in found] == pytest.approx([v for _, v in expected])


@given(number=st.integers(0, 10**9))
def test_grouping_of_thousands_changes_no_number(number):
    english, german = f"{number:,}", f"{number:,}".replace(",", ".")

    assert parse_number(english) == parse_number(german) == number


@given(text=st.text(max_size=80))
def test_any_text_can_be_read(text):
    words = read_words(text)

    taken = [at for quantity in find_quantities(words) for at in quantity.words]
    assert len(taken) == len(set(taken))
