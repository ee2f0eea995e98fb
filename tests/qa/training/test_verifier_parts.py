"""Entries taken apart by the line that answers, and how a verifier's examples show it."""

import pytest

from probes.verifier.card import base_directory
from probes.verifier.reading import Reader
from qa.training.knowledge_sets import KnowledgeSet, SourceEntry
from qa.training.verifier_candidates import examples_of
from qa.training.verifier_parts import most_alike, take_apart

TABLE = """Notice that staff give:
Group | Notice
--- | ---
Bands 2 to 4 | 4 weeks
Bands 5 and 6 | 8 weeks
Consultants | 3 months"""
LIST = """Stay at home with:
- a cold: no need to
- an infected cut: until it is covered
- salmonella: until two tests are clear"""
WIDE_ROW = """Tariff | Unit | Standing | Exit fee | Paper
--- | ---
Gas | 6.1 p | 29.7 p | £50 | £1.50"""
PROSE = "The lift is closed on Sundays. Keys are at the porter's. Visitors park behind the mill."


@pytest.mark.parametrize(
    ("text", "line", "says", "is_left"),
    [
        (TABLE, "Bands 5 and 6 | 8 weeks", "8 weeks", "Consultants | 3 months"),
        (LIST, "- salmonella: until two tests are clear", "two tests", "infected cut"),
        (PROSE, "Keys are at the porter's.", "porter", "behind the mill"),
    ],
)
def test_the_line_that_answers_is_apart_and_missing_in_the_rest(
    text, line, says, is_left
):
    apart = take_apart(text, line)

    assert apart is not None
    (answering,) = apart.answering
    assert says in answering
    assert len(apart.others) == 2
    assert says not in apart.rest
    assert is_left in apart.rest
    assert apart.rest.splitlines()[0] == text.splitlines()[0].replace(line + " ", "")
    assert all(each.strip(" -") for each in apart.rest.splitlines())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It costs 12 euros.", "12 euros"),
        (TABLE, "Dentists"),
        (TABLE, ""),
        (WIDE_ROW, "Gas | 6.1 p | 29.7 p | £50 | £1.50"),
        ("It was founded in 1955. It has five rooms.", "5"),
    ],
)
def test_what_no_part_tells_or_all_do_is_not_taken_apart(text, words):
    assert take_apart(text, words) is None


def test_of_two_parts_nothing_is_left_that_looks_like_an_answer():
    apart = take_apart("It opens at nine. It closes at five.", "at five")

    assert apart is not None
    assert apart.rest == ""


def test_a_cell_that_is_taken_out_leaves_the_others_below_their_headings():
    apart = take_apart(WIDE_ROW, "29.7 p")

    assert apart is not None
    assert "Gas | 6.1 p | | £50 | £1.50" in apart.rest


def test_an_item_below_the_one_that_answers_is_none_that_does_not():
    apart = take_apart(
        "Fees:\n- Late return: 5 pounds a day\n  - books\n- Lost card: 3 pounds\n- Copies: free",
        "Late return: 5 pounds a day",
    )

    assert apart is not None
    assert not any("5 pounds" in each for each in apart.others)


def test_what_may_answer_in_two_parts_is_shown_whole_alone():
    known = KnowledgeSet("places", "ours")
    text = "Paris is large. The capital is PARIS. Lyon lies south."
    place = known.place(SourceEntry(text))
    known.place(SourceEntry(LIST))
    known.ask("Which city is the capital?", [place], "Paris")

    (found,) = examples_of(
        known, Reader(base_directory()), seed=0, limit=9, exchanged=0
    )

    assert len(found.positives) == 1


def test_words_that_stand_in_two_parts_are_missing_in_the_rest():
    apart = take_apart("A costs £5. B is free. C costs £5. D is old.", "£5")

    assert apart is not None
    assert len(apart.answering) == 2
    assert "£5" not in apart.rest


def test_the_part_with_most_of_a_questions_words_comes_first():
    parts = ["Keys are at the porter's.", "The lift is closed on Sundays."]

    assert most_alike("Is the lift running on a Sunday?", parts)[0] == parts[1]


def test_an_entry_answers_with_its_line_and_not_without():
    known = KnowledgeSet("rules", "ours")
    place = known.place(SourceEntry(TABLE, "Staff rules", "Leaving"))
    for text in (LIST, PROSE):
        known.place(SourceEntry(text, "Staff rules"))
    known.ask("How long is a nurse's notice?", [place], "Bands 5 and 6 | 8 weeks")
    known.ask("How long is a dentist's notice?", [])
    reader = Reader(base_directory())

    answered, unanswered = examples_of(known, reader, seed=0, limit=9, exchanged=0.0)

    def texts(entries):
        return [reader.text_of(answered.question, each)[1] for each in entries]

    assert [("8 weeks" in said, "3 months" in said) for said in texts(answered.positives)] == [
        (True, True),
        (True, False),
    ]  # fmt: skip
    rest, *_ = texts(answered.negatives)
    assert "8 weeks" not in rest
    assert "3 months" in rest
    assert not unanswered.positives
    row, *_ = texts(unanswered.negatives)
    assert "notice" in row
    assert row.count("weeks") + row.count("months") == 1
