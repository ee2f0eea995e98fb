"""A stored answer as the words and numbers of its page."""

import re
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from qa.answers import wording
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.presentation import (
    _answer_pieces,
    _emphasised,
    _joined_pieces,
    _quoted,
    present,
)
from qa.answers.view import ShownPiece
from qa.answers.wording import GATES
from qa.desk.ask_pages import _event
from qa.pipeline.gates import Gate, Reason, Signal
from qa.pipeline.values import stage_name
from qa.policies.wording import REASONS
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It costs 12 euros.", [("It costs 12 euros.", None)]),
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

    assert [piece.text for piece in pieces] == ["See form [1]."]


def test_what_entries_say_in_brackets_leads_to_no_card():
    said = ["Free, says the board [2].\n\nSee form [1]", "12 euros [1]."]
    cited = [
        ShownPiece(number, AnswerEvidence(rank=number), text=text)
        for number, text in enumerate(said, start=1)
    ]

    pieces = _joined_pieces(f"{said[0]} [1]\n\n{said[1]} [2]", cited)
    alone = _joined_pieces(said[0], cited[:1])

    assert [(piece.text, piece.citation) for piece in pieces] == [
        (f"{said[0]} ", None), ("[1]", 1), (f"\n\n{said[1]} ", None), ("[2]", 2),
    ]  # fmt: skip
    assert [(piece.text, piece.citation) for piece in alone] == [(said[0], None)]


@given(TEXTS)
def test_splitting_without_citations_loses_nothing(text):
    pieces = _answer_pieces(text, {}, reads_marks=True)

    assert "".join(piece.text for piece in pieces) == text


@given(TEXTS, TEXTS)
def test_quoting_loses_nothing(text, quote):
    assert "".join(piece.text for piece in _quoted(text, quote)) == text


@given(TEXTS)
def test_an_event_is_one_event_whatever_it_carries(text):
    lines = _event("stage", text).split("\n")

    assert lines[0] == "event: stage"
    assert lines[-2:] == ["", ""]
    assert all(line.startswith("data: ") for line in lines[1:-2])
    assert not re.search("\r", "".join(lines))


def test_every_reason_gate_and_stage_has_words():
    assert set(REASONS) == set(Reason)
    assert set(GATES) == set(Gate)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (0.1, "very close"),
        (0.5, "close"),
        (0.84, "fairly close"),
        (1.0, "far"),
        (1.4, "unrelated"),
    ],
)
def test_distance_reads_on_the_policys_own_scale(db, distance, words):
    user = make_user()
    policy = make_answer(user).policy

    assert policy is not None
    assert wording.distance_in_words(distance, policy.as_value()) == words


def page_of(answer):
    answer.pieces = []
    return present(answer, at=timezone.now())


def waterfall(answer):
    page = page_of(answer)
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
    assert steps["Word for word"].verdict == "No exact answer, continued"
    refused = steps["Hard refusal"]
    assert refused.state == "refused"
    assert [(s.value, s.rule, s.passed) for s in refused.signals] == [
        ("1.02", "above the limit of 0.85", False)
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

    from qa.pipeline.values import Question, StageValue

    named = {"retrieve", "question", "verbatim", "generate", "support", "outcome"}
    stages = {type_.__name__ for type_ in typing.get_args(StageValue)}
    assert len(stages) == 9  # a new stage needs words, and this count
    assert named | {gate.value for gate in Gate} <= set(wording.STAGES)
    assert stage_name(Question("x")) in wording.STAGES


@pytest.mark.django_db
def test_part_of_a_stage_is_shown_and_not_counted_twice():
    answer = make_answer(
        make_user(), milliseconds={"retrieve": 80, "retrieve.sql": 60, "verbatim": 20}
    )

    page = page_of(answer)

    assert page.total_time == "100 ms"
    bars = {line.name: (line.bar.start, line.bar.width) for line in page.times}
    assert bars == {
        "Search: database query": (0.0, 60.0),
        "Searched": (0.0, 80.0),
        "Exact answers compared": (80.0, 20.0),
    }


CONFIDENT = [
    signal("soft_refusal", "verdict", 1.0, 1.0, True),
    signal("abstention", "answer_confidence", 0.83, 0.5, True),
    signal("abstention", "early_confidence", None, 0.0, None),
    signal("abstention", "joint_confidence", 0.9, 0.0, None),
]
WRITTEN: dict[str, Any] = {
    "text": "A card costs 12 euros a year [1].",
    "signals": CONFIDENT,
    "generation": {"short_answer": "12 euros", "tokens": ["12", " eu", "ros"]},
    "confidence": {"along": [0.1, 0.5, 0.99], "missing": ""},
}


def shown(**fields):
    answer = make_answer(make_user(), **{"cited": (make_entry(),), **WRITTEN, **fields})
    return page_of(answer)


@pytest.mark.django_db
def test_the_words_that_answer_stand_out_in_their_sentence():
    pieces = shown().pieces

    assert [(piece.text, piece.is_short) for piece in pieces] == [
        ("A card costs ", False),
        ("12 euros", True),
        (" a year [1].", False),
    ]


@pytest.mark.parametrize(
    "generation", [{}, {"short_answer": ""}, {"short_answer": "15 euros"}]
)
@pytest.mark.django_db
def test_without_such_words_nothing_stands_out(generation):
    pieces = shown(generation=generation).pieces

    assert "".join(piece.text for piece in pieces) == WRITTEN["text"]
    assert not any(piece.is_short for piece in pieces)


@given(TEXTS, TEXTS)
def test_emphasis_loses_nothing(text, short):
    pieces = _answer_pieces(text, {1: 1}, reads_marks=True)

    marked = _emphasised(pieces, short)

    assert "".join(p.text for p in marked) == "".join(p.text for p in pieces)
    assert sum(piece.is_short for piece in marked) <= 1
    assert all(piece.text == short for piece in marked if piece.is_short)


@pytest.mark.django_db
def test_an_answer_is_shaded_by_the_confidence_after_each_of_its_tokens():
    shading = shown().shading

    assert [(t.text, t.level, t.confidence, t.words) for t in shading.tokens] == [
        ("12", 0, "0.10", "very low"),
        (" eu", 2, "0.50", "medium"),
        ("ros", 4, "0.99", "very high"),
    ]
    assert (shading.confidence, shading.words) == ("0.83", "very high")


@pytest.mark.parametrize(
    "fields",
    [
        {"confidence": {"along": [], "missing": "No probe is in force."}},
        {"confidence": {"along": [0.1, 0.5], "missing": ""}},
        {"generation": {}},
        {"signals": []},
        {"cited": (), "outcome": "refused"},
    ],
)
@pytest.mark.django_db
def test_what_has_no_confidence_along_it_or_was_not_shown_is_not_shaded(fields):
    assert shown(**fields).shading is None


@pytest.mark.django_db
def test_what_the_viewer_may_not_read_is_neither_shaded_nor_emphasised():
    answer = make_answer(make_user(), cited=(make_entry(),), **WRITTEN)
    answer.is_withheld = True

    page = page_of(answer)

    assert page.shading is None
    assert not any(piece.is_short for piece in page.pieces)


@pytest.mark.django_db
def test_too_little_confidence_is_shown_against_its_least():
    low = signal("abstention", "answer_confidence", 0.31, 0.5, False)
    answer = make_answer(
        make_user(),
        gate="abstention",
        reason="low_confidence",
        shown_reason="low_confidence",
        signals=[*CONFIDENT[:1], low],
    )

    step = waterfall(answer)["Abstention"]

    assert (step.state, step.verdict) == ("refused", "Refused here")
    assert [(s.value, s.rule, s.passed) for s in step.signals] == [
        ("0.31", "below the minimum of 0.50", False)
    ]
    assert step.signals[0].bar is not None


@pytest.mark.django_db
def test_an_answer_that_was_ended_early_took_its_time_at_abstention():
    low = signal("abstention", "early_confidence", 0.1, 0.3, False)
    answer = make_answer(
        make_user(),
        gate="abstention",
        reason="low_confidence",
        shown_reason="low_confidence",
        signals=[low],
        milliseconds={"retrieve": 10, "load": 1, "generate": 20, "abstention": 2},
    )

    steps = waterfall(answer)

    assert (steps["Soft refusal"].state, steps["Soft refusal"].time) == ("skipped", "")
    assert steps["Abstention"].time == "23 ms"


@pytest.mark.django_db
def test_without_probes_and_limits_abstention_is_no_step():
    none = [
        signal("abstention", name, None, 0.0, None)
        for name in ("answer_confidence", "early_confidence", "joint_confidence")
    ]
    answer = make_answer(make_user(), cited=(make_entry(),), signals=none)

    assert "Abstention" not in waterfall(answer)


@pytest.mark.django_db
def test_confidences_that_are_held_against_nothing_are_measured_only():
    read = [signal("abstention", "answer_confidence", 0.8, 0.0, None)]
    answer = make_answer(make_user(), cited=(make_entry(),), signals=read)

    step = waterfall(answer)["Abstention"]

    assert (step.state, step.verdict) == ("none", "Measured only")
