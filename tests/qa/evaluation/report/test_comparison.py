"""Two runs beside each other."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from qa.evaluation.report.build import build_report
from qa.evaluation.report.comparison import compare, worse
from qa.exceptions import EvaluationDataError
from qa.models import EvaluationResult, EvaluationRun
from tests.qa.evaluation.judged_rows import make_judged, make_shadow_run


def refusing(rows, every):
    """Return the rows with every so many refused where they should be answered."""
    return [
        replace(row, is_answered=False, gate="soft_refusal", reason="model_declined")
        if row.is_answerable and place % every == 0
        else row
        for place, row in enumerate(rows)
    ]


def test_runs_are_joined_by_id_and_what_is_in_one_alone_is_said():
    rows = make_shadow_run(60)
    extra = make_judged("only here")

    found = compare([*rows, extra], list(reversed(rows[:50])))

    assert (found["questions"], found["only_in_first"], found["only_in_second"]) == (
        50,
        11,
        0,
    )
    assert found["right_or_wrong"]["p_value"] == 1.0
    assert all(
        p["difference"] == pytest.approx(0) for p in found["differences"].values()
    )
    assert worse(found) == []


def test_a_run_that_refuses_what_it_should_answer_is_worse():
    rows = make_shadow_run(300)

    found = compare(rows, refusing(rows, every=3))

    refusals = found["differences"]["false_refusals"]
    assert refusals["first"] == 0
    assert refusals["difference"] == pytest.approx(1 / 3)
    assert "false_refusals" in worse(found)
    assert "right" in worse(found)
    assert found["right_or_wrong"]["only_second"] == 0
    assert found["right_or_wrong"]["p_value"] < 0.001
    assert (
        compare(refusing(rows, every=3), rows)["differences"]["right"]["difference"] > 0
    )


def test_a_signal_that_ranks_worse_is_seen_in_its_area():
    first, second = make_shadow_run(400, skill=2.0), make_shadow_run(400, skill=0.0)
    labels = {row.id: row for row in first}
    second = [
        replace(labels[row.id], signals=row.signals) for row in second
    ]  # the same questions and drafts, other signals

    found = compare(first, second)

    assert "AURC of verified_ratio" in worse(found)
    assert found["differences"]["AURC of verified_ratio"]["difference"] > 0.05


def test_runs_of_other_questions_are_not_compared():
    with pytest.raises(EvaluationDataError, match="no question in common"):
        compare([make_judged("a")], [make_judged("b")])
    with pytest.raises(EvaluationDataError, match="'a' should be answered"):
        compare([make_judged("a")], [make_judged("a", is_answerable=False)])


def run_command(*arguments):
    out = StringIO()
    call_command("compare_evaluations", *map(str, arguments), stdout=out)
    return out.getvalue()


@pytest.fixture
def reports(tmp_path):
    rows = make_shadow_run(120)
    files = []
    for name, chosen in (("first", rows), ("second", refusing(rows, every=3))):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(build_report(chosen, policy=None)))
    return files


def test_the_command_compares_reports_and_can_fail(reports, tmp_path):
    written = tmp_path / "comparison.json"

    printed = run_command(*reports, "--json", written)

    assert "120 questions in both runs" in printed
    assert json.loads(written.read_text())["questions"] == 120
    run_command(*reversed(reports), "--fail-if-worse")
    with pytest.raises(CommandError, match="false_refusals") as caught:
        run_command(*reports, "--fail-if-worse")
    assert caught.value.returncode == 1


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_what_is_no_report_ends_with_two(tmp_path, reports, text):
    file = tmp_path / "none.json"
    file.write_text(text)

    for named in (file, tmp_path / "missing.json"):
        with pytest.raises(CommandError) as caught:
            run_command(reports[0], named)
        assert caught.value.returncode == 2


@pytest.mark.django_db
def test_the_command_compares_stored_runs():
    rows = make_shadow_run(20)
    runs = []
    for number, chosen in enumerate((rows, rows)):
        run = EvaluationRun.objects.create(suite="demo", key=str(number), total=20)
        EvaluationResult.objects.bulk_create(
            EvaluationResult(
                run=run,
                case_id=row.id,
                group=row.group,
                is_answerable=row.is_answerable,
                is_answered=row.is_answered,
                is_correct=row.is_correct,
                signals=row.signals,
                measures=row.measures,
                milliseconds=row.milliseconds,
            )
            for row in chosen
        )
        runs.append(run.pk)

    assert "20 questions in both runs" in run_command(*runs)
    with pytest.raises(CommandError, match="no evaluation run 999999") as caught:
        run_command(runs[0], 999999)
    assert caught.value.returncode == 2
