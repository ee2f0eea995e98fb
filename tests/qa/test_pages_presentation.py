"""A stored answer as the words and numbers of its page."""

import re

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from qa.pages import wording
from qa.pages.live import _event
from qa.pages.presentation import _answer_pieces, _quoted, present
from qa.pipeline.types import Gate, Reason, Signal, stage_of
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It costs 12 euros.", [("It costs 12 euros.", None), (" ", None), ("[1]", 1), ("[2]", 2)]),
        ("So [2]. And so [4].", [("So ", None), ("[1]", 1), (". And so ", None), ("[2]", 2), (".", None)]),
        ("Both [2, 4]", [("Both ", None), ("[1]", 1), ("[2]", 2)]),
        ("Form [7] [2]", [("Form [7] ", None), ("[1]", 1)]),
    ],
)  # fmt: skip
def test_marks_lead_to_the_cards_of_the_cited_pieces(text, expected):
    pieces = _answer_pieces(text, {2: 1, 4: 2}, reads_marks=True)

    assert [(piece.text, piece.citation) for piece in pieces] == expected


def test_brackets_of_a_word_for_word_answer_stay():
    pieces = _answer_pieces("See form [1].", {1: 1}, reads_marks=False)

    assert [piece.text for piece in pieces if piece.citation is None] == [
        "See form [1].",
        " ",
    ]


@given(TEXTS)
def test_splitting_without_citations_loses_nothing(text):
    pieces = _answer_pieces(text, {}, reads_marks=True)

    assert "".join(piece.text for piece in pieces) == text


@given(TEXTS, TEXTS)
def test_quoting_loses_nothing(text, quote):
    assert "".join(piece.text for piece in _quoted(text, quote, 1)) == text


@given(TEXTS)
def test_an_event_is_one_event_whatever_it_carries(text):
    lines = _event("stage", text).split("\n")

    assert lines[0] == "event: stage"
    assert lines[-2:] == ["", ""]
    assert all(line.startswith("data: ") for line in lines[1:-2])
    assert not re.search("\r", "".join(lines))


def test_every_reason_gate_and_stage_has_words():
    assert set(wording.REASONS) == set(Reason)
    assert set(wording.GATES) == set(Gate)


@pytest.mark.parametrize(
    ("distance", "words"),
    [(0.1, "very close"), (0.5, "close"), (1.0, "far"), (1.4, "unrelated")],
)
def test_distance_reads_on_the_policys_own_scale(db, distance, words):
    user = make_user()
    policy = make_answer(user).policy

    assert policy is not None
    assert wording.distance_in_words(distance, policy.as_value()) == words


def waterfall(answer):
    page = present(answer, [], at=timezone.now())
    return {step.name: step for step in page.waterfall}


def signal(gate, name, value, threshold, passed):
    row = Signal(Gate(gate), name, value, threshold, passed)
    return {
        "gate": row.gate.value,
        "name": name,
        "value": value,
        "threshold": threshold,
        "passed": passed,
    }


@pytest.mark.django_db
def test_waterfall_of_a_hard_refusal_stops_at_its_gate():
    answer = make_answer(
        make_user(),
        signals=[
            signal("verbatim", "question_distance", 0.9, 0.35, False),
            signal("hard_refusal", "distance_over_confidence", 1.02, 0.85, False),
            signal("hard_refusal", "visible_entries", 120.0, None, None),
        ],
    )

    steps = waterfall(answer)

    assert steps["Search"].signals[0].value == "120"
    assert steps["Word for word"].verdict == "No: went on"
    refused = steps["Hard refusal"]
    assert refused.state == "refused"
    assert [(s.value, s.rule, s.passed) for s in refused.signals] == [
        ("1.02", "below 0.85", False)
    ]
    assert steps["Soft refusal"].state == "skipped"
    assert steps["Soft refusal"].time == ""
    assert "Abstention" not in steps


@pytest.mark.django_db
def test_bars_of_the_waterfall_follow_one_another_and_fill_it():
    answer = make_answer(
        make_user(),
        cited=(make_entry(),),
        signals=[
            signal("verbatim", "same_words", 0.0, 1.0, False),
            signal("hard_refusal", "distance_over_confidence", 0.4, 0.85, True),
            signal("soft_refusal", "verdict", 1.0, 1.0, True),
        ],
        milliseconds={
            "question": 10,
            "retrieve": 20,
            "retrieve.sql": 15,
            "verbatim": 10,
            "hard_refusal": 10,
            "load": 10,
            "generate": 100,
            "support": 20,
            "soft_refusal": 20,
        },
    )

    steps = list(waterfall(answer).values())

    ends = [round(step.bar.start + step.bar.width) for step in steps]
    assert [round(step.bar.start) for step in steps] == [0, *ends[:-1]]
    assert ends[-1] == 100
    assert [step.state for step in steps] == ["passed", "none", "passed", "passed"]


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0.2, "under 1 ms"), (12.4, "12 ms"), (1_540.0, "1.5 s")],
)
def test_times_read_in_a_fitting_unit(milliseconds, words):
    assert wording.time_in_words(milliseconds) == words


def test_every_stage_of_the_pipeline_has_words():
    import typing

    from qa.pipeline import types

    named = {"retrieve", "question", "verbatim", "generate", "support", "outcome"}
    stages = {type_.__name__ for type_ in typing.get_args(types.StageValue)}
    assert len(stages) == 8  # a new stage needs words, and this count
    assert named | {gate.value for gate in Gate} <= set(wording.STAGES)
    assert stage_of(types.Question("x")) in wording.STAGES


@pytest.mark.django_db
def test_part_of_a_stage_is_shown_and_not_counted_twice():
    answer = make_answer(
        make_user(), milliseconds={"retrieve": 80, "retrieve.sql": 60, "verbatim": 20}
    )

    page = present(answer, [], at=timezone.now())

    assert page.total_time == "100 ms"
    bars = {line.name: (line.bar.start, line.bar.width) for line in page.times}
    assert bars == {
        "of the search: the database": (0.0, 60.0),
        "Searched": (0.0, 80.0),
        "Ready answers compared": (80.0, 20.0),
    }
