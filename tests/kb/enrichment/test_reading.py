"""What a model wrote is used whole or not at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.enrichment.forms import (
    ANSWERS,
    ANSWERS_AGAIN,
    QUESTIONS,
    SENTENCES,
    read_reply,
    read_values,
    tidy,
)

FORMS = (QUESTIONS, ANSWERS, ANSWERS_AGAIN, SENTENCES)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
fields = st.sampled_from(["question", "answer", "confidence", "sentence", "more"])


@given(st.sampled_from(FORMS), st.text())
def test_no_text_upsets_the_reader(form, reply):
    read = read_reply(form, reply)

    assert read is None or set(read) == {slot.name for slot in form.wanted}


@pytest.mark.slow
@given(st.sampled_from(FORMS), st.dictionaries(fields, anything))
def test_what_is_read_keeps_to_the_form(form, values):
    read = read_reply(form, json.dumps(values))

    if read is None:
        return
    assert set(read) == set(values) == {slot.name for slot in form.wanted}
    for slot in form.wanted:
        value = read[slot.name]
        if slot.anchors:
            assert isinstance(value, float)
            assert 0 <= value <= 1
        else:
            assert isinstance(value, str)
            assert 0 < len(value) <= slot.limit
            assert value == tidy(value)
            assert "\n" not in value


@given(st.text())
def test_tidying_twice_changes_nothing_more(text):
    assert tidy(tidy(text)) == tidy(text)


def test_a_good_reply_is_read():
    reply = '{"answer": "  Lima,\\n Peru ", "confidence": 1}'

    assert read_reply(ANSWERS, reply) == {"answer": "Lima, Peru", "confidence": 1.0}


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Lima",
        '["Lima"]',
        '{"answer": "Lima"}',
        '{"answer": "Lima", "confidence": 1.5}',
        '{"answer": "Lima", "confidence": NaN}',
        '{"answer": "Lima", "confidence": "1"}',
        '{"answer": "Lima", "confidence": true}',
        '{"answer": "", "confidence": 1}',
        '{"answer": "...", "confidence": 1}',
        '{"answer": "Lima", "confidence": 1, "more": 1}',
        'Sure: {"answer": "Lima", "confidence": 1}',
        json.dumps({"answer": "ha " * 100, "confidence": 1}),
        "[" * 20_000,
    ],
)
def test_what_does_not_keep_to_the_form_is_nothing(reply):
    assert read_reply(ANSWERS, reply) is None


def test_a_question_ends_as_one():
    assert read_values(QUESTIONS, {"question": "Name a river."}) is None
    assert read_values(QUESTIONS, {"question": "Which river?"}) is not None


@pytest.mark.parametrize("form", FORMS)
def test_every_example_keeps_to_its_own_form(form):
    for example in form.examples:
        written = dict(
            zip(
                [name for name, _ in form.given] + [s.name for s in form.slots],
                example,
                strict=True,
            )
        )
        values = {
            slot.name: dict(slot.anchors).get(written[slot.name], written[slot.name])
            for slot in form.wanted
        }
        assert read_values(form, values) is not None
