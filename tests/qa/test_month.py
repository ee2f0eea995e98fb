"""The simulated month's questions: each about an entry there is, answerable or not as said."""

import json

from benchmarks.month.questions import questions
from kb.demonstration import KNOWLEDGE


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
