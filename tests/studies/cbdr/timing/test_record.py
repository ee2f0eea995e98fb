"""What was asked is kept, and goes on from where it was broken off."""

import pytest

from qa.exceptions import EvaluationDataError
from studies.cbdr.timing.asking import Record

BOUND = {"form": "f" * 64, "data": "d" * 64}


def test_what_was_kept_is_there_when_it_is_opened_again(tmp_path):
    path = tmp_path / "below" / "record.jsonl"
    said = "Zürich\nsaid so\u2028and\u0085so"
    Record(path, BOUND).keep("alone", "me", {"q1": {"answer": said}})

    found = Record(path, BOUND).of("alone", "me")

    assert found["q1"]["answer"] == said
    assert Record(path, BOUND).of("with notes", "me") == {}


def test_what_another_model_said_is_not_found(tmp_path):
    path = tmp_path / "record.jsonl"
    Record(path, BOUND).keep("alone", "me", {"q1": {"answer": "yes"}})

    assert Record(path, BOUND).of("alone", "another") == {}


def test_a_line_that_was_broken_off_is_asked_anew_and_spoils_no_other(tmp_path):
    path = tmp_path / "record.jsonl"
    record = Record(path, BOUND)
    record.keep("alone", "me", {"q1": {"answer": "one"}, "q2": {"answer": "two"}})
    whole = path.read_text()
    path.write_text(whole[:-10])

    again = Record(path, BOUND)
    assert set(again.of("alone", "me")) == {"q1"}
    again.keep("alone", "me", {"q2": {"answer": "two"}})

    assert set(Record(path, BOUND).of("alone", "me")) == {"q1", "q2"}


def test_a_record_of_other_data_is_refused_by_name(tmp_path):
    path = tmp_path / "record.jsonl"
    Record(path, BOUND)

    with pytest.raises(EvaluationDataError, match="another data"):
        Record(path, {**BOUND, "data": "e" * 64})


@pytest.mark.parametrize("text", ["no json", '{"format": "other"}', "[1, 2]"])
def test_another_file_is_never_written_to(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)

    with pytest.raises(EvaluationDataError, match="not a record"):
        Record(path, BOUND)
    assert path.read_text() == text


def test_a_record_that_cant_be_kept_is_named(tmp_path):
    (tmp_path / "file").write_text("kept")
    for path in (tmp_path, tmp_path / "file" / "record.jsonl"):
        with pytest.raises(EvaluationDataError, match="can't be read or written"):
            Record(path, BOUND)
    record = Record(tmp_path / "record.jsonl", BOUND)
    (tmp_path / "record.jsonl").unlink()
    (tmp_path / "record.jsonl").mkdir()

    with pytest.raises(EvaluationDataError, match="can't be read or written"):
        record.keep("alone", "me", {"q1": {"answer": "one"}})
