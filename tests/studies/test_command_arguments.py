"""What a study can't be made with is refused before anything is asked."""

from importlib import import_module

import pytest
from django.core.management import CommandError, call_command

RERANKER = "cbdr.reranking.evaluate_reranker"
COMMANDS = [
    ("cbdr.retrieval_timing.compare_retrieval", ("--data", "nothing"), ("--json", "--markdown", "--plots")),
    (RERANKER, ("--data", "nothing"), ("--json", "--markdown")),
    ("ctrla.evaluate_self_knowledge", ("--data", "nothing"), ("--markdown",)),
    ("ctrla.evaluate_steering", ("--data", "nothing"), ("--markdown",)),
    ("dh_icl.evaluate_verdicts", ("--data", "nothing"), ("--markdown",)),
    ("abstention.report_abstention", ("--runs", "1"), ("--json", "--markdown", "--plots")),
]  # fmt: skip


def run(name, *arguments):
    call_command(import_module(f"studies.{name}").Command(), *arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "option"),
    [(name, given, option) for name, given, options in COMMANDS for option in options],
)
def test_a_study_refuses_the_path_before_it_asks(name, arguments, option, tmp_path):
    (tmp_path / "file").write_text("kept")
    path = tmp_path / "file" / "below"

    with pytest.raises(CommandError, match="below can't be written") as refused:
        run(name, *arguments, option, str(path))

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
        run(RERANKER, "--data", "squad", f"{option}={value}")
