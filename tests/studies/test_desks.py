"""The study of help desks: its files, and the figures that it prints."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from qa.exceptions import EvaluationDataError
from studies.desks import command
from studies.desks.command import Command, refused_at
from studies.desks.reading import DeskQuestion, Kind, read_desk, read_desks

DESKS = Path(command.__file__).parent
FORMATS = {".csv", ".docx", ".html", ".pdf", ".xlsx"}
ROWS = """question,answer
How late may I return a bicycle?,Bicycles are due back by 19:30; after that 4 a day.
Can I bring my dog?,Dogs travel free of charge in the trailer.
"""
ASKED = [
    {"text": "When must the bike be back?", "kind": "known", "shows": ["by 19:30"]},
    {"text": "Do you rent out canoes?", "kind": "other", "shows": []},
    {"text": "How late may I return a canoe?", "kind": "near", "shows": []},
]


@pytest.fixture
def desks(tmp_path):
    desk = tmp_path / "bicycles"
    desk.mkdir()
    (desk / "helpdesk-export.csv").write_text(ROWS)
    (desk / "questions.json").write_text(json.dumps(ASKED))
    return tmp_path


def test_a_desk_is_its_files_and_its_questions(desks):
    [desk] = read_desks(desks)

    assert desk.name == "bicycles"
    assert [file.name for file in desk.files] == ["helpdesk-export.csv"]
    assert [q.kind for q in desk.questions] == [Kind.KNOWN, Kind.OTHER, Kind.NEAR]


def test_the_desks_of_the_study_have_files_and_ninety_questions_each():
    desks = read_desks(DESKS)

    assert len(desks) == 9
    for desk in desks:
        assert {each.suffix for each in desk.files} == FORMATS
        kinds = Counter(question.kind for question in desk.questions)
        assert kinds == {Kind.KNOWN: 60, Kind.NEAR: 20, Kind.OTHER: 10}


def test_an_answer_is_right_if_all_named_words_are_shown_in_any_entry():
    question = DeskQuestion("How much?", Kind.KNOWN, ("4 a day", "by 19:30"))

    assert question.is_answered_by(["Due BY  19:30.", "After that 4\na day."])
    assert not question.is_answered_by(["Due by 19:30."])
    assert not DeskQuestion("Canoes?", Kind.OTHER).is_answered_by(["Canoes."])


@pytest.mark.parametrize(
    "row",
    [
        {"text": "When?", "kind": "unknown", "shows": []},
        {"text": "When?", "kind": "known", "shows": []},
        {"text": "When?", "kind": "near", "shows": ["by 19:30"]},
        {"text": "When?", "kind": "near"},
    ],
)
def test_a_question_that_does_not_fit_is_refused(desks, row):
    (desks / "bicycles" / "questions.json").write_text(json.dumps([row]))

    with pytest.raises(EvaluationDataError, match=r"questions\.json must be a list"):
        read_desk(desks / "bicycles")


def test_a_directory_without_desks_is_refused(tmp_path):
    with pytest.raises(EvaluationDataError, match="no subdirectory"):
        read_desks(tmp_path)


def test_refusals_at_a_share_of_wrong_answers():
    chance = np.array([0.9, 0.8, 0.7, 0.7, 0.2])
    right = np.array([True, True, True, False, True])
    known = np.array([True, True, True, False, True])

    # Both questions at 0.7 are shown together, so that 1 of 4 is wrong.
    assert refused_at(chance, right, known, 0.0) == pytest.approx(0.5)
    assert refused_at(chance, right, known, 0.25) == pytest.approx(0.0)
    assert refused_at(chance, ~right, known, 0.0) == 1.0


@pytest.mark.verifier
@pytest.mark.slow
def test_a_desk_is_imported_once_and_asked(db, desks):
    for _ in range(2):
        asked = {"desks": desks, "calibrate": True}
        outcome = Command().measure(asked, lambda *_: None)
        by_threshold, by_share = outcome.tables
        assert outcome.heading["questions"] == "3"
        assert by_threshold.rows[0][1].startswith("0.0 %")
        assert by_threshold.rows[-1][0] == "calibrated itself"
        assert by_share.rows[0][2] == "100.0 %"
