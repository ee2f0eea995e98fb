"""Processes as they are started: the command line, and what a worker loads."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kb.archive.writing import Contents, write_archive

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


@pytest.mark.parametrize("command", ["export_knowledge", "restore_knowledge"])
@pytest.mark.django_db
def test_a_database_without_tables_is_said_with_the_remedy(settings, tmp_path, command):
    archive = tmp_path / "all.zip"
    write_archive(archive, Contents())
    # The one that every server has beside those that are made on it.
    empty = urlsplit(settings.DATABASE_URL)._replace(path="/postgres").geturl()

    done = subprocess.run(
        [sys.executable, "manage.py", command, str(archive)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": empty, "NESCIO_SECRET_KEY": "k" * 50},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 1
    assert "manage.py migrate" in done.stderr
    assert "Traceback" not in done.stderr


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
