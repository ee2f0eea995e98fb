"""Studies are found by name, and what can't be done is refused before anything is asked."""

import subprocess
import sys
from importlib import import_module

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from qa.evaluation.suites.registry import suites
from studies.__main__ import STUDIES, main

pytestmark = pytest.mark.slow

DATA = ("--data", "nothing")
FILES = {
    "abstention": (("--runs", "1"), ("--json", "--markdown", "--plots")),
    "cbdr_reranker": (DATA, ("--json", "--markdown")),
    "cbdr_timing": (DATA, ("--json", "--markdown", "--plots")),
    "ctrla_self_knowledge": (DATA, ("--markdown",)),
    "ctrla_steering": (DATA, ("--markdown",)),
    "ctrla_two_hop": (DATA, ("--json", "--markdown")),
    "desks": (("--desks", "nothing"), ("--markdown",)),
    "dh_icl": (DATA, ("--markdown",)),
    "headline": (DATA, ("--output",)),
    "l2r": (DATA, ("--output",)),
    "transfer": (DATA, ("--markdown",)),
    "verifier": (DATA, ("--markdown",)),
}


def command(name):
    return import_module(STUDIES[name][0]).Command()


def test_every_study_takes_files():
    assert {*FILES, "evaluate"} == set(STUDIES)


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, option) for name, (_, options) in FILES.items() for option in options],
)
def test_a_study_refuses_the_path_before_it_asks(name, option, tmp_path):
    (tmp_path / "file").write_text("kept")
    path = tmp_path / "file" / "below"

    with pytest.raises(CommandError, match="below can't be written") as refused:
        call_command(command(name), *FILES[name][0], option, str(path))

    assert refused.value.returncode == 2
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--group", "1", "1 is less than 2"),
        ("--margin", "-1", "-1 is not between 0 and 1"),
    ],
)
def test_an_impossible_option_is_refused_with_its_value(option, value, said):
    with pytest.raises(CommandError, match=f"argument {option}: {said}"):
        call_command(command("cbdr_reranker"), "--data", "squad", f"{option}={value}")


def test_without_a_name_the_studies_are_listed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["studies"])

    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(f"  {name} " in shown for name in STUDIES)


def test_an_unknown_study_is_named_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["studies", "nothing"])

    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert "no study 'nothing'" in shown
    assert "ctrla_steering" in shown


def test_the_multiple_choice_suites_are_evaluated_here_alone():
    names = {
        "truthfulqa-mc1",
        "truthfulqa-mc2",
        "commonsenseqa",
        "medqa",
        "medqa-corpus",
    }
    assert not names & set(suites())

    asked = subprocess.run(
        [sys.executable, "-m", "studies", "evaluate", "--help"],
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=True,
    )  # fmt: skip

    said = "".join(asked.stdout.split())
    assert all(name in said for name in names)
