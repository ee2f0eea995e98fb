"""Labelled drafts come whole out of runs and files, and bad ones are named."""

import json
from dataclasses import replace

import pytest

from qa.exceptions import TrainingDataError
from qa.models import EvaluationResult
from qa.training.labels import digest_of, drafts_of_file, drafts_of_runs, drawn_together
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer
from tests.qa.evaluated import make_run
from tests.qa.pipeline.values import MODEL

from .drafts import draft

ROW = {
    "question": "What does it cost?",
    "evidence": [{"text": "It costs 12 euros."}, {"question": "Q?", "text": "A."}],
    "answer": "12 euros",
    "is_right": True,
    "group": "prices",
}


def written(tmp_path, *rows):
    file = tmp_path / "answers.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_file_is_read_line_by_line(tmp_path):
    signals = {"log_probability": -0.5, "mean_entropy": None}
    second = ROW | {
        "id": "x", "is_right": False, "language": "de", "signals": signals,
    }  # fmt: skip

    one, other = drafts_of_file(written(tmp_path, ROW, "", second))

    assert (one.id, one.group, one.is_right, one.answer) == (
        "1", "prices", True, "12 euros",
    )  # fmt: skip
    assert one.prompt.question == "What does it cost?"
    assert [(p.question, p.text) for p in one.prompt.evidence] == [
        ("", "It costs 12 euros."),
        ("Q?", "A."),
    ]
    assert (other.id, other.is_right, other.prompt.language) == ("x", False, "de")
    assert other.signals == signals


_BAD = {
    "no JSON": "{",
    "no object": "[1]",
    "a field missing": {k: v for k, v in ROW.items() if k != "group"},
    "a field too many": ROW | {"colour": "red"},
    "no label": ROW | {"is_right": 1},
    "no text": ROW | {"answer": " "},
    "no group": ROW | {"group": ""},
    "no evidence": ROW | {"evidence": []},
    "no list": ROW | {"evidence": "It costs 12 euros."},
    "no piece": ROW | {"evidence": ["It costs 12 euros."]},
    "an empty piece": ROW | {"evidence": [{"question": "Q?"}]},
    "a strange piece": ROW | {"evidence": [{"text": "a", "source": "b"}]},
    "a signal as text": ROW | {"signals": {"a": "1"}},
    "an endless signal": ROW | {"signals": {"a": float("inf")}},
    "signals as a list": ROW | {"signals": []},
    "too long": ROW | {"answer": "x" * 1_000_001},
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("bad", _BAD.values(), ids=list(_BAD))
def test_a_bad_line_is_named_by_its_number(tmp_path, bad):
    with pytest.raises(TrainingDataError, match=r"1 lines .* line 2: "):
        drafts_of_file(written(tmp_path, ROW, bad, ROW | {"id": "x"}))


def test_all_bad_lines_are_told_at_once(tmp_path):
    file = written(tmp_path, *["{"] * 12, ROW | {"id": "a"}, ROW | {"id": "a"})

    with pytest.raises(TrainingDataError) as error:
        drafts_of_file(file)

    assert "13 lines" in str(error.value)
    assert "line 10:" in str(error.value)
    assert "and 3 more" in str(error.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("nothing", "binary"):
        with pytest.raises(TrainingDataError, match=name):
            drafts_of_file(tmp_path / name)


def test_the_same_answer_is_taken_once_and_order_changes_no_digest():
    rows = [draft(number, is_right=number % 2 == 0) for number in range(4)]
    again = [replace(rows[0], id="other", group="other")]

    assert drawn_together([rows, again]) == rows
    assert digest_of(rows) == digest_of(reversed(rows))
    assert digest_of(rows) != digest_of(rows[1:])
    relabelled = [replace(rows[0], is_correct=False), *rows[1:]]
    assert digest_of(rows) != digest_of(relabelled)


@pytest.fixture
def asker(db):
    return make_user()


def result(run, case, answer, **fields):
    values = {
        "group": "cards",
        "is_answerable": True,
        "is_answered": True,
        "is_correct": True,
        "signals": {"log_probability": -0.5},
        "milliseconds": 1.0,
    }
    return EvaluationResult.objects.create(
        run=run, case_id=case, answer=answer, **values | fields
    )


def test_a_runs_drafts_are_what_was_read_and_written_then(asker):
    first = make_entry("A new card costs 12 euros.")
    second = make_entry("A lost card is blocked at once.", question="Lost?")
    run = make_run()
    shown = make_answer(
        asker,
        cited=(second,),
        unused=(first,),
        generation={"answer": "It costs 12 euros.", "short_answer": "12 euros"},
    )
    refused = make_answer(
        asker, near_misses=(first,), generation={"answer": "At once."}
    )
    hard = make_answer(asker, near_misses=(first,), generation={})
    result(run, "shown", shown)
    result(run, "refused", refused, is_answerable=False, is_correct=False)
    result(run, "hard", hard, is_correct=None)
    result(run, "gone", None)
    first.text = "It is free now."
    first.save()

    one, other = drafts_of_runs([run.pk], language_model=MODEL)

    assert (one.id, one.group, one.answer) == (f"{run.pk}:shown", "cards", "12 euros")
    assert [(p.question, p.text) for p in one.prompt.evidence] == [
        ("Lost?", "A lost card is blocked at once."),
        ("", "A new card costs 12 euros."),
    ]
    assert one.prompt.question == shown.question
    assert one.signals == {"log_probability": -0.5}
    assert (one.is_right, other.is_right) == (True, False)
    assert other.answer == "At once."


def test_an_answer_to_a_question_without_one_is_wrong_whatever_it_says(asker):
    entry = make_entry()
    run = make_run()
    answer = make_answer(asker, cited=(entry,), generation={"answer": "12"})
    result(run, "a", answer, is_answerable=False, is_correct=True)

    (only,) = drafts_of_runs([run.pk])

    assert not only.is_right


def test_a_run_that_can_not_be_learnt_from_is_refused_with_what_to_do(asker):
    run = make_run()
    running = make_run(key="b", state="running")

    for runs, model, said in (
        ([0], None, "latest"),
        ([running.pk], None, "not finished"),
        ([run.pk], "f" * 64, "--any-model"),
    ):
        with pytest.raises(TrainingDataError, match=said):
            list(drafts_of_runs(runs, language_model=model))
    assert list(drafts_of_runs([run.pk])) == []


def test_reading_a_run_takes_no_query_for_each_answer(asker, django_assert_num_queries):
    entry = make_entry()
    run = make_run()
    for number in range(5):
        answer = make_answer(asker, cited=(entry,), generation={"answer": "12"})
        result(run, f"c{number}", answer, group=f"g{number}")

    with django_assert_num_queries(3):
        assert len(list(drafts_of_runs([run.pk]))) == 5
