"""The comparison as a command, on small sets and the real bundled models."""

import json

import pytest
from django.core.management import CommandError, call_command

from kb.models import Entry
from qa.models import Answer
from studies.cbdr.timing.command import Command
from tests.studies.cbdr.timing.small_sets import TOWNS, write_all

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def data(tmp_path):
    return write_all(tmp_path / "data", towns=TOWNS[:4])


def compare(data, tmp_path, *arguments: str) -> None:
    call_command(
        Command(), "--data", str(data), "--record",
        str(tmp_path / "record.jsonl"), "--questions", "4", "--teaching", "2", *arguments,
    )  # fmt: skip


def test_it_prints_and_writes_every_figure_and_asks_everything_once(
    data, tmp_path, capsys
):
    chosen = (
        "--sets", "nq-open", "truthfulqa",
        "--deciders", "log-probability", "DH-ICL",
        "--json", str(tmp_path / "figures.json"),
    )  # fmt: skip
    compare(
        data, tmp_path, *chosen, "--markdown", str(tmp_path / "figures.md"),
        "--plots", str(tmp_path / "plots"),
    )  # fmt: skip

    shown = capsys.readouterr().out
    first = (tmp_path / "figures.json").read_text()
    record = (tmp_path / "record.jsonl").read_text()
    figures = json.loads(first)
    table = figures["accounts"]["as published"]["table"]
    assert [row["decider"] for row in table] == [
        "never", "always", "log-probability", "DH-ICL",
    ]  # fmt: skip
    assert figures["test"] == figures["calibration"] == 4
    assert "log-probability" in shown
    assert "DH-ICL" in (tmp_path / "figures.md").read_text()
    assert len(list((tmp_path / "plots").glob("*.svg"))) == 2
    compare(data, tmp_path, *chosen)
    assert (tmp_path / "figures.json").read_text() == first
    assert (tmp_path / "record.jsonl").read_text() == record
    # Only the evaluation's own user sees the entries, and nothing was asked by anybody.
    assert set(Entry.objects.values_list("audience__slug", flat=True)) == {"evaluation"}
    assert not Answer.objects.exists()


def test_another_selection_does_not_go_into_the_same_record(data, tmp_path):
    chosen = ("--sets", "nq-open", "--deciders", "log-probability")
    compare(data, tmp_path, *chosen)

    with pytest.raises(CommandError, match=r"another .*selection"):
        compare(data, tmp_path, *chosen, "--seed", "1")


def test_missing_data_is_said_and_nothing_is_written(tmp_path):
    with pytest.raises(CommandError, match="nq_open"):
        compare(tmp_path / "nothing", tmp_path, "--sets", "nq-open")

    assert not (tmp_path / "record.jsonl").exists()
