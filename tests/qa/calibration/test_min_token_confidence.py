"""The monitor as a judge of what can be answered."""

import json
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from probes.models import Probe
from probes.services import promote, register
from qa.calibration.adaptive_thresholds import (
    Watched,
    balanced,
    best_threshold,
    halves,
    self_knowledge_row,
    separated,
    watch,
)
from qa.evaluation.cases import Case
from qa.exceptions import EvaluationDataError
from qa.inference import monitored_writer as monitored_selection
from qa.inference.policy_models import load_closed_book_form
from tests.probes.direction_files import direction_probe_files, random_directions
from tests.qa.pipeline.monitored_writers import GivenWriter, draft


def watched(weakest, is_positive, *, is_refused=False):
    return Watched("It is so.", weakest, is_refused, is_positive)


CLEAR = [watched(value, value > 0) for value in (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0)]


def test_what_was_written_is_watched_and_judged():
    texts = iter(["Mary Shelley.", "I don't know.", "Frankenstein."])
    writer = GivenWriter(lambda *_: draft(next(texts), "Mary"))
    cases = [
        Case(
            str(n),
            "Who wrote Frankenstein?",
            is_answerable=True,
            references=("Shelley",),
        )
        for n in range(3)
    ]

    found = watch(writer, cases, steering=0.5, by_answer=True)

    assert [w.weakest for w in found] == [-1.0, None, None]
    assert [w.is_refused for w in found] == [False, True, False]
    assert [w.is_positive for w in found] == [True, False, False]
    # Neither a refusal nor an echo is let pass at any threshold.
    assert [w.looks(-100.0) for w in found] == [False, True, True]
    assert writer.strengths == [0.5] * 3


def test_the_threshold_that_parts_both_kinds_is_found():
    threshold = best_threshold(CLEAR)

    assert -1.0 < threshold < 1.0
    assert balanced(CLEAR, threshold) == 1.0
    passed, held = separated(CLEAR, threshold)
    assert (passed.count, passed.total, held.count, held.total) == (3, 3, 3, 3)


@given(
    st.lists(
        st.tuples(st.floats(-5, 5), st.booleans(), st.booleans()),
        min_size=2,
        max_size=30,
    )
)
def test_no_threshold_tells_better_than_the_one_that_is_chosen(rows):
    found = [watched(value, good, is_refused=no) for value, good, no in rows]
    found += [watched(0.0, True), watched(0.0, False)]

    best = balanced(found, best_threshold(found))

    assert best >= max(balanced(found, t / 4) for t in range(-24, 25)) - 1e-12


def test_without_a_confidence_there_is_no_threshold():
    with pytest.raises(EvaluationDataError, match="No confidence was measured"):
        best_threshold([watched(None, True)])


def test_no_question_chooses_a_threshold_and_measures_it():
    rows = [replace(watched(0.0, True), group=name) for name in "aabbbcc"]
    rows += [watched(1.0, True), watched(2.0, False)]

    chooses, measures = halves(rows)

    assert len(chooses) + len(measures) == len(rows)
    assert abs(len(chooses) - len(measures)) <= 3
    groups = [{one.group for one in part} - {""} for part in (chooses, measures)]
    assert not groups[0] & groups[1]


def test_the_row_is_measured_on_other_questions_than_it_was_chosen_on():
    turned = [watched(value, value < 0) for value in (-3.0, -2.0, 2.0, 3.0)]

    name, threshold, (passed, held), auroc = self_knowledge_row(0.3, CLEAR, turned)

    assert name == "0.3"
    assert -1.0 < threshold < 1.0
    assert (passed.count, held.count) == (0, 0)
    assert auroc.startswith("0.00")


@pytest.mark.django_db
def test_without_a_confidence_nothing_is_proposed(tmp_path, monkeypatch):
    labelled = tmp_path / "labelled.jsonl"
    rows = [
        {"question": f"Is Rome town {n}?", "answers": ["Rome" if n % 2 else "Oslo"]}
        for n in range(8)
    ]
    labelled.write_text("\n".join(map(json.dumps, rows)))
    echo = GivenWriter(lambda *_: draft("Rome"))
    monkeypatch.setattr(monitored_selection, "monitored_writer", lambda: echo)

    with pytest.raises(CommandError, match="No confidence was measured") as refused:
        call_command("calibrate", "monitor", str(labelled))

    assert refused.value.returncode == 2


@pytest.mark.django_db
def test_right_and_wrong_answers_are_needed_to_choose_by(tmp_path, settings):
    settings.LANGUAGE_MODEL = "bundled"
    labelled = tmp_path / "labelled.jsonl"
    labelled.write_text('{"question": "What is 1?", "answers": ["never this"]}\n')
    directions = random_directions(load_closed_book_form().model)
    probe = register(direction_probe_files(directions))
    promote(probe.pk, Probe.State.ACTIVE, by=None)

    with pytest.raises(CommandError, match="each half needs right and wrong"):
        call_command("calibrate", "monitor", str(labelled))
