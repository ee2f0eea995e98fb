"""A path that figures can't be written to is refused before anything is asked."""

import pytest
from django.core.management import CommandError, call_command

from qa.management.base import (
    require_directories,
    require_files,
    write_figures,
    writing,
)

COMMANDS = [
    (("evaluate", "demo"), ("--json", "--markdown", "--plots")),
    (("train", "boundary_probe", "nothing"), ("--json", "--output")),
    (("train", "directions", "nothing"), ("--output",)),
    (("train", "probe", "--kind", "early"), ("--json", "--output")),
    (("train_probe", "--kind", "early"), ("--json", "--output")),
]


@pytest.mark.parametrize(
    ("command", "option"),
    [(command, option) for command, options in COMMANDS for option in options],
)
def test_a_command_refuses_the_path_before_it_asks(command, option, tmp_path):
    (tmp_path / "file").write_text("kept")
    path = tmp_path / "file" / "below"

    with pytest.raises(CommandError, match="below can't be written") as refused:
        call_command(*command, option, str(path))

    assert refused.value.returncode == 2
    assert (tmp_path / "file").read_text() == "kept"


def test_a_directory_is_no_file_and_a_file_no_directory(tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")

    with pytest.raises(CommandError, match="it is a directory"):
        require_files(None, tmp_path)
    with pytest.raises(CommandError, match="File exists"):
        require_directories(None, file)


def test_directories_are_made_and_nothing_is_written_ahead(tmp_path):
    path, plots = tmp_path / "a" / "figures.md", tmp_path / "b" / "plots"

    require_files(path)
    require_directories(plots)

    assert path.parent.is_dir()
    assert plots.is_dir()
    assert not path.exists()


def test_figures_end_with_one_line_break_wherever_they_go(tmp_path):
    path = tmp_path / "later" / "figures.md"

    write_figures(path, "one\ntwo\n\n")

    assert path.read_text() == "one\ntwo\n"


def test_a_disk_that_fails_meanwhile_is_an_error_of_the_command(tmp_path):
    path = tmp_path / "figures.md"

    with pytest.raises(CommandError, match="No space left") as failed, writing(path):
        raise OSError(28, "No space left on device")

    assert failed.value.returncode == 2
