"""The simulated month's questions: each about an entry there is, answerable or not as said."""

import json

from benchmarks.month.held_out import right_among
from benchmarks.month.questions import parted, questions
from kb.demonstration import KNOWLEDGE
from qa.evaluation.judging import Judged


def entries() -> dict[str, str]:
    waiting = [
        section
        for document in json.loads(KNOWLEDGE.read_text())["documents"]
        for section in document["sections"]
    ]
    found: dict[str, str] = {}
    while waiting:
        section = waiting.pop()
        found |= {entry["key"]: entry["text"] for entry in section.get("entries", ())}
        waiting += section.get("sections", ())
    return found


def test_an_answerable_question_is_answered_by_its_entry():
    texts = entries()

    for question in questions():
        if question.contains:
            assert question.is_right(texts[question.entry]), question


def test_to_one_that_is_not_every_answer_is_wrong():
    texts = entries()

    for question in questions():
        if not question.contains:
            assert not question.is_right(texts[question.entry]), question


def test_no_question_stands_twice():
    texts = [question.text for question in questions()]

    assert len(texts) == len(set(texts)) == 992


def test_as_many_are_answerable_as_are_not():
    answerable = sum(bool(question.contains) for question in questions())

    assert answerable == 496


def judged(number: int, sure: float, *, is_right: bool, gate: str = "entry") -> Judged:
    name = "entry_answers" if gate == "entry" else "answer_confidence"
    return Judged(
        id=str(number),
        group="",
        signals={name: sure},
        is_answerable=True,
        is_correct=is_right,
        is_answered=True,
        gate=gate,
    )


def test_coverage_at_equal_false_answers_counts_the_surest_before_one_too_many():
    given = [
        judged(1, 0.9, is_right=True),
        judged(2, 0.8, is_right=False, gate=""),
        judged(3, 0.7, is_right=True, gate=""),
        judged(4, 0.6, is_right=False),
        judged(5, 0.5, is_right=True),
        judged(6, 0.1, is_right=True, gate="verbatim"),  # the surest, whatever it says
    ]

    assert [right_among(given, allowed) for allowed in (0, 1, 2)] == [2, 3, 4]


def test_what_is_held_out_is_asked_in_no_week():
    parts = parted(questions())

    asked = {one.entry for one in parts.asked}
    assert not asked & {one.entry for one in parts.other_entries}
    assert asked == {one.entry for one in parts.other_words}
    said = {one.text for one in parts.asked}
    assert not any(one.text in text for one in parts.other_words for text in said)
    # 93 of 124 entries: a question and a near miss in two wordings each, and one of each.
    assert (len(parts.asked), len(parts.other_words)) == (372, 186)
    assert len(parts.other_entries) == 124
