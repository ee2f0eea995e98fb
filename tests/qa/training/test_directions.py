"""Directions by the command: from statements to the registry."""

import pytest
from django.core.management import CommandError, call_command

from probes.cards import ProbeFiles
from probes.directions.sets import DirectionSettings, Method, directions_from
from probes.directions.statements import OWN_STATEMENTS
from probes.models import Probe
from qa.training.directions import (
    DirectionStatements,
    read_statements,
    train_directions,
)
from tests.probes import tiny_models

STONES = [f"Stone {number} lies in the river." for number in range(24)]
STATEMENTS = DirectionStatements(STONES, STONES[:12], STONES[12:])


def test_the_files_hold_the_directions_and_what_they_tell():
    model = tiny_models.model("llama")

    trained = train_directions(model, STATEMENTS, DirectionSettings(pairs=32))

    again = directions_from(trained.files, language_model=model.fingerprint)
    assert (again.honesty.vectors == trained.directions.honesty.vectors).all()
    card = trained.files.checked()
    assert card.sizes["true_statements"] == 24
    assert card.data_sha256 == STATEMENTS.sha256
    assert card.metrics["sounding_auroc"] == trained.sounding
    accuracies = card.metrics["honesty_accuracies"]
    assert accuracies == [*trained.directions.honesty.accuracies]


def test_the_same_seed_gives_the_same_files():
    model, settings = tiny_models.model("llama"), DirectionSettings(pairs=16, seed=3)

    one, other = (train_directions(model, STATEMENTS, settings) for _ in range(2))

    assert one.files.fingerprint == other.files.fingerprint


def test_method_and_statements_are_told_apart():
    model = tiny_models.model("llama")
    principal = DirectionSettings(pairs=16, method=Method.PRINCIPAL)

    plain = train_directions(model, STATEMENTS, DirectionSettings(pairs=16))

    assert train_directions(model, STATEMENTS, principal).files.weights != plain.files.weights  # fmt: skip
    assert read_statements([], OWN_STATEMENTS).sha256 != STATEMENTS.sha256


@pytest.mark.django_db
def test_the_command_keeps_and_promotes_what_it_fitted(tmp_path, capsys, settings):
    settings.LANGUAGE_MODEL = str(tiny_models.save(tmp_path / "model"))
    file = tmp_path / "facts.csv"
    file.write_text("statement,label\n" + "".join(f"{s},1\n" for s in STONES))

    call_command(
        "train", "directions", str(file), "--pairs", "16", "--promote",
        "--output", str(tmp_path / "out"),
    )  # fmt: skip

    said = capsys.readouterr().out
    assert "is kept as active" in said
    probe = Probe.objects.get()
    assert (probe.kind, probe.state, probe.layer) == ("directions", "active", None)
    assert ProbeFiles.read(tmp_path / "out").fingerprint == probe.fingerprint


@pytest.mark.django_db
def test_a_file_that_holds_no_statement_is_named(tmp_path, settings):
    settings.LANGUAGE_MODEL = str(tiny_models.save(tmp_path / "model"))
    file = tmp_path / "facts.csv"
    file.write_text("text\nA.\n")

    with pytest.raises(CommandError, match=r"facts\.csv can't be used"):
        call_command("train", "directions", str(file))
