"""Processes as they are started: the command line, and what a worker loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def output_of(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "nescio.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_commands_of_the_apps_and_of_django_are_found():
    found = output_of("manage.py", "help", "--commands").split()

    assert {"export_knowledge", "ask", "up", "migrate"} <= set(found)


def test_a_worker_loads_no_library_before_a_job_needs_it():
    """Each would cost every process its seconds at the start, and tens of MiB."""
    loaded = output_of(
        "-c",
        "import sys, django; django.setup(); import workers.tasks; print(*sys.modules)",
    ).split()

    assert "workers.registry" in loaded
    libraries = {
        "torch", "transformers", "sklearn", "matplotlib", "statsmodels", "openai",
        "scipy.optimize", "pdfplumber", "docx", "openpyxl",
    }  # fmt: skip
    assert libraries.isdisjoint(loaded), libraries.intersection(loaded)
