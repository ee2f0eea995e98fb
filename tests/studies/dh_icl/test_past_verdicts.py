"""What verdicts by past questions are worth is told on questions that no history holds."""

import json
import shutil
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from kb.embedding.embedder import load_embedder
from qa.evaluation.metrics.text import normalised
from qa.exceptions import EvaluationDataError
from qa.inference.label_judge import LabelPair
from studies.dh_icl.command import Command
from studies.dh_icl.figures import difference, figures, tables_of
from studies.dh_icl.judging import (
    SETS,
    Answered,
    Judgements,
    Shown,
    Way,
    balanced,
    draw,
    nearest_of,
)
from studies.dh_icl.on_evidence import draw_on_evidence
from tests.studies.cbdr.timing import small_sets

pytestmark = pytest.mark.slow

PAIR = LabelPair("true", "false")
RIGHT = np.array([True, True, False, False])


@pytest.fixture
def data(tmp_path):
    small_sets.write_all(tmp_path)
    shutil.copy(
        tmp_path / "nq_open/NQ-open.dev.jsonl",
        tmp_path / "nq_open/NQ-open.efficientqa.dev.1.1.jsonl",
    )
    rows = json.loads((tmp_path / "webquestions/test.json").read_text())
    train = [{**row, "qText": f"{row['qText']} now and then"} for row in rows]
    (tmp_path / "webquestions/trainmodel.json").write_text(json.dumps(train))
    return tmp_path


def answered(data_set, *known):
    return [Answered(data_set, f"{n}?", each, -1.0) for n, each in enumerate(known)]


def test_no_judged_question_is_in_the_history(data):
    judged, past = draw(data, asked=4, history=4, seed=1)

    said = {normalised(each.case.question) for each in judged}
    assert {each.data_set for each in judged} == set(SETS)
    assert {each.data_set for each in past} == {
        "triviaqa", "popqa", "webquestions", "nq-open",
    }  # fmt: skip
    assert not said & {normalised(each.case.question) for each in past}


def test_the_same_seed_draws_the_same(data):
    once, again, other = (
        [
            each.case.id
            for part in draw(data, asked=4, history=4, seed=s)
            for each in part
        ]
        for s in (1, 1, 2)
    )

    assert once == again != other


def test_another_split_that_is_missing_is_named(data):
    (data / "webquestions/trainmodel.json").unlink()

    with pytest.raises(EvaluationDataError, match="trainmodel"):
        draw(data, asked=4, history=4, seed=1)


def test_a_balanced_choice_has_as_many_unknown_as_known_of_each_set():
    rows = [*answered("a", True, False, False, True, False), *answered("b", False)]

    kept = balanced(rows)

    assert sorted((each.question, each.is_known) for each in kept) == [
        ("0?", True), ("1?", False), ("2?", False), ("3?", True),
    ]  # fmt: skip


def test_what_changes_with_time_is_no_known_history():
    now = Answered("a", "Who is the current mayor?", True, -1.0)
    then = Answered("a", "Who was the first mayor?", True, -1.0)

    assert (now.as_history, then.as_history) == (False, True)


def test_the_nearest_come_first():
    history = np.eye(3, dtype=np.float32)
    asked = np.array([[0.1, 0.9, 0.3]], dtype=np.float32)

    assert nearest_of(asked, history).tolist() == [[1, 2, 0]]


def test_figures_are_those_of_a_worked_example():
    # Two of three are told rightly at 0.5; the pairs (right, wrong) are 3.5 of 4 won.
    accuracy, balanced_accuracy, area = figures(np.array([0.9, 0.4, 0.4, 0.1]), RIGHT)

    assert accuracy.startswith("0.75 (")
    assert balanced_accuracy == "0.75"
    assert area.startswith("0.88")


def test_a_difference_is_told_with_its_sign_and_its_chance():
    before, after = np.array([0.1, 0.1, 0.9, 0.9]), np.array([0.9, 0.9, 0.1, 0.1])

    accuracy, p, area = difference(before, after, RIGHT)

    assert accuracy.startswith("+1.00")
    assert p == "0.125"  # 2 / 2^4
    assert area.startswith("+1.00")


def test_every_way_has_a_row_and_sets_are_told_apart():
    rows = [*answered("a", True, False), *answered("b", True, False)]
    scores = np.array([0.9, 0.2, 0.8, 0.6])
    known = {
        Way(PAIR, shown, corrected): scores
        for shown in Shown
        for corrected in ((False,) if shown is Shown.NOTHING else (False, True))
    }

    ways, differences, sets = tables_of(Judgements(rows, known, scores))

    assert [row[1:4] for row in ways.rows] == [
        ("the instruction alone", "no", "0.25"),
        ("fixed examples", "no", "0.25"), ("fixed examples", "yes", "0.25"),
        ("past questions", "no", "0.25"), ("past questions", "yes", "0.25"),
    ]  # fmt: skip
    assert len(differences.rows) == 4
    assert [row[:4] for row in sets.rows] == [
        ("a", "2", "0.50", "0.50"), ("b", "2", "0.50", "0.00"), ("all", "4", "0.50", "0.25"),
    ]  # fmt: skip


def test_evidence_answers_where_a_marked_answer_stands_in_it(data):
    asked, history = draw_on_evidence(
        data, load_embedder("bundled"), asked=50, history=50, seed=0, without=()
    )

    assert {each.can_be_answered for each in [*asked, *history]} == {True, False}
    assert all(each.note for each in asked)
    assert not {each.id for each in asked} & {each.id for each in history}


def test_labels_that_are_no_pair_are_refused():
    with pytest.raises(CommandError, match="not a pair of labels"):
        call_command(Command(), "--data", ".", "--labels", "true")


def test_the_command_prints_and_writes_its_tables(data, tmp_path, bundled_base):
    out, file = StringIO(), tmp_path / "report.md"

    call_command(
        Command(), "--data", str(data), "--questions", "1", "--history", "1",
        "--labels", "A/B", "--markdown", str(file), stdout=out, stderr=StringIO(),
    )  # fmt: skip

    assert "Does the model know?" in out.getvalue()
    assert "| A/B | past questions | yes |" in file.read_text()
