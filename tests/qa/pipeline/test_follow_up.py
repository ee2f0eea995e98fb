"""Follow-ups as standalone questions: what is written, and that nothing is made up."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import follow_ups
from benchmarks.follow_ups.__main__ import plain
from qa.pipeline import follow_up
from qa.pipeline.follow_up import is_grounded, may_depend, standalone

GOLD = "How much does express delivery of a Gold card cost?"
# Words of grammar that a reading of "what does it cost?" and "how long?" brings along.
GRAMMAR = "how long much does it take cost to when where is"


def rows() -> list[tuple[str, str, set[str]]]:
    found = []
    for name in ("own.tsv", "held_out.tsv"):
        text = Path(follow_ups.__file__).with_name(name).read_text(encoding="utf-8")
        for line in text.splitlines()[1:]:
            _, earlier, typed, *rest = line.split("\t")
            wanted = set(filter(None, rest[0].split(" | "))) if rest else set()
            found.append((earlier, typed, wanted))
    return found


@pytest.mark.parametrize(
    ("earlier", "typed", "asked"),
    [
        (GOLD, "and for the Business card?", "How much does express delivery of a Business card cost?"),
        (GOLD, "what about the Amex card", "How much does express delivery of an Amex card cost?"),
        ("How do I reach Silver status?", "How long is it valid?", "How long is Silver status valid?"),
        ("Can I pause my membership?", "how long does it take?", "How long does it take to pause my membership?"),
        ("What happens if I pay late?", "And if I pay by card?", "What happens if I pay by card?"),
        ("Where can I return items?", "when?", "When can I return items?"),
        ("Was kostet die Goldkarte im Jahr?", "und die Platinkarte?", "Was kostet die Platinkarte im Jahr?"),
    ],
)  # fmt: skip
def test_a_follow_up_is_the_earlier_question_of_something_else(earlier, typed, asked):
    assert standalone(typed, earlier) == asked


FEE = "How much is the yearly fee?"


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("the Business card", "How much is the yearly fee for the Business card?"),
        ("I mean the Gold card", "How much is the yearly fee for the Gold card?"),
        ("for Students", "How much is the yearly fee for Students?"),
        ("Business", "How much is the yearly fee for Business?"),
        ("lounge access", "lounge access"),
        ("How do I block a card?", "How do I block a card?"),
    ],
)
def test_a_few_words_answer_what_was_asked_back(typed, asked):
    known = {"Business": 1.1, FEE: 0.9, "lounge access": 0.8}

    def distances(questions):
        return [
            known.get(each, 0.95 if "lounge" in each else 0.6) for each in questions
        ]

    assert standalone(typed, FEE, asked_back=True, distances=distances) == asked
    assert may_depend(typed, asked_back=True) is (not typed.startswith("How"))


def test_most_follow_ups_are_right_by_form_and_no_other_question_is_touched():
    right = [
        plain(standalone(typed, earlier)) in map(plain, wanted)
        for earlier, typed, wanted in rows()
        if wanted
    ]
    touched = [
        typed
        for earlier, typed, wanted in rows()
        if not wanted and standalone(typed, earlier) != typed
    ]

    assert len(right) > 110
    assert sum(right) / len(right) > 0.85
    assert touched == []


def test_what_is_known_chooses_among_readings_of_one_form():
    earlier, typed = "How do I cancel my Gold card?", "Is it expensive?"
    asked: list[str] = []

    def nearest(wanted):
        def distances(questions):
            asked.extend(questions)
            return [0.2 if wanted in each else 0.9 for each in questions]

        return standalone(typed, earlier, distances=distances)

    assert nearest("to cancel") == "Is it expensive to cancel my Gold card?"
    assert nearest("Is my Gold card") == "Is my Gold card expensive?"
    assert all("Gold card" in each or each == typed for each in asked)


def test_what_may_stand_on_its_own_is_touched_only_for_what_is_known_much_better():
    def ask(own, other):
        return standalone(
            "Off-Peak?",
            "How much does the Monthly membership cost?",
            distances=lambda texts: [own, *[other] * (len(texts) - 1)],
        )

    assert ask(0.9, 0.3) == "How much does the Off-Peak membership cost?"
    assert ask(0.5, 0.45) == "Off-Peak?"


WORD = st.sampled_from(
    [
        "and",
        "what",
        "about",
        "it",
        "they",
        "its",
        "for",
        "the",
        "a",
        "Gold",
        "Business",
        "card",
        "cards",
        "cost",
        "How",
        "does",
        "do",
        "I",
        "cancel",
        "my",
        "account?",
        "when",
        "in",
        "30",
        "days",
        "if",
        "one",
        "?",
        ",",
        ".",
        "to",
        "of",
        "is",
        "-",
        "students",
        "2024",
        "und",
    ]
)
ANY = st.one_of(st.text(max_size=60), st.lists(WORD, max_size=9).map(" ".join))


@given(typed=ANY, earlier=ANY, distance=st.floats(0, 2))
def test_no_word_is_made_up_whatever_is_typed(typed, earlier, distance):
    made = standalone(typed, earlier)
    known = standalone(
        typed,
        earlier,
        distances=lambda texts: [distance * (len(text) % 3) for text in texts],
    )

    for text in (made, known):
        if text != typed:
            allowed = [f"{earlier} {GRAMMAR}"]
            assert follow_up._stems(text) <= follow_up._stems(
                f"{typed} {allowed[0]}"
            ) | {f"{stem}s" for stem in follow_up._stems(earlier)}
            assert may_depend(typed) or "?" in text


def test_a_models_question_counts_only_in_its_askers_words():
    typed = "and for the Business card?"

    assert is_grounded("What does delivery of a Business card cost?", typed, [GOLD])
    for made_up in (
        "What does delivery of a Platinum card cost?",
        "How much does express delivery of a Gold card cost?",
        "How much does a Business card cost in Austria?",
        "How much does delivery of a Business card cost without a Gold card?",
        "",
    ):
        assert not is_grounded(made_up, typed, [GOLD])
