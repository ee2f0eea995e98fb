"""The command line itself, as a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["export_knowledge", "ask", "migrate"])
def test_commands_of_the_apps_and_of_django_are_found(command):
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), command, "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, f"manage.py {command}" in done.stdout) == (0, True)
