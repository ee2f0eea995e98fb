"""What is prepared before the first question, as far as it needs no running system."""

import pytest
from django.core.management import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from rich.console import Console

from accounts.acting import NOBODY, reading_as
from nescio.up import preparation
from probes import services as shipped
from probes.models import Probe
from tests.probes.probe_files import activation_files

pytestmark = pytest.mark.django_db


@pytest.fixture
def coming_along(tmp_path, monkeypatch):
    """Let one made-up probe be what comes along with the product."""
    activation_files().write(tmp_path / "abstention")
    monkeypatch.setattr(shipped.unregistered, "__defaults__", (tmp_path,))
    monkeypatch.setattr(shipped.register_shipped, "__defaults__", (tmp_path,))


def register(capsys) -> str:
    preparation.register_probes(Console())
    said: str = capsys.readouterr().out
    return said


def test_probes_of_the_bundled_model_are_registered_once(coming_along, capsys):
    assert "1 registered" in register(capsys)
    assert register(capsys) == ""
    assert Probe.objects.get().state == "active"


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        ({"LANGUAGE_MODEL": "another/model"}, 0),
        ({"LANGUAGE_SERVER_URL": "http://x", "SURROGATE_MODEL": "none"}, 0),
        ({"LANGUAGE_SERVER_URL": "http://x", "SURROGATE_MODEL": "bundled"}, 1),
        ({"LANGUAGE_SERVER_URL": "http://x", "LANGUAGE_MODEL": "gpt"}, 1),
    ],
)
def test_they_are_of_use_where_the_bundled_model_reads(
    coming_along, capsys, settings, chosen, count
):
    for name, value in chosen.items():
        setattr(settings, name, value)

    register(capsys)

    assert Probe.objects.count() == count


def test_migrations_are_looked_for_before_the_applications_role_is_made(
    capsys, settings
):
    settings.DATABASE_ROLE = "nobody_has_made_it"

    with reading_as(NOBODY):
        preparation.migrate(Console())

    assert capsys.readouterr().out == "Database: up to date\n"


def test_a_database_between_migrations_that_one_replaces_is_told_what_to_do(db):
    MigrationRecorder(connection).record_unapplied("kb", "0026_planned_sections")

    with pytest.raises(CommandError, match="last commit before"):
        preparation.migrate(Console())
