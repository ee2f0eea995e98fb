"""One report over all studies: what is done is found again, and each claim has a verdict."""

import json
import os

import pytest
from django.core.management import CommandError, call_command

from qa.exceptions import EvaluationDataError
from studies.__main__ import with_settings
from studies.headline.command import Command
from studies.headline.parts import BY_NAME, PARTS
from studies.headline.report import report
from studies.headline.stored import (
    SHIPPED,
    Result,
    find_result,
    keep_result,
    key_of,
)
from studies.study import Claim
from tests.probes import tiny_models

MODELS = ("a" * 64, "b" * 64)


def claim(value, interval, *, why="", count=100, unit="points"):
    return Claim("Steering +1", "Figure 2", value, interval, count, why, unit)


def data_below(directory, text="{}"):
    (directory / "truthfulqa").mkdir(parents=True, exist_ok=True)
    (directory / "truthfulqa" / "mc_task_random.json").write_text(text)
    return directory


@pytest.mark.parametrize(
    ("value", "interval", "verdict"),
    [
        (0.1, (0.02, 0.18), "gains"),
        (0.1, (-0.02, 0.22), "no gain"),
        (0.0, (0.0, 0.1), "no gain"),
        (-0.1, (-0.2, -0.01), "harm"),
        (0.1, None, "not measured"),
        (None, None, "not measured"),
    ],
)
def test_a_verdict_follows_from_the_interval_alone(value, interval, verdict):
    assert claim(value, interval).verdict == verdict


def test_no_gain_says_why_and_how_large_a_difference_would_have_shown():
    said = claim(0.01, (-0.04, 0.06), why="The probe guesses.").reason

    assert said.startswith("The probe guesses. ")
    assert "100 show differences of about 5.0 or more" in said
    assert claim(0.1, (0.02, 0.18), why="The probe guesses.").reason == ""


def test_a_part_is_done_only_for_the_same_arguments_model_and_data(tmp_path):
    part, data = BY_NAME["ctrla_steering"], data_below(tmp_path / "data")
    key = key_of(part, 1.0, data, MODELS)
    kept = Result(key, "2026-11-23", (claim(0.1, (0.02, 0.18)),), 12.5, "# Steering")
    keep_result(part.name, kept, tmp_path / "results")

    def found(key):
        return find_result(part.name, key, [tmp_path / "none", tmp_path / "results"])

    assert found(key) == kept
    assert found(key_of(part, 0.5, data, MODELS)) is None
    assert found(key_of(part, 1.0, data, ("c" * 64, MODELS[1]))) is None
    data_below(data, "[]")
    assert found(key_of(part, 1.0, data, MODELS)) is None


def test_a_result_that_can_not_be_read_is_named(tmp_path):
    part = BY_NAME["ctrla_steering"]
    key = key_of(part, 1.0, data_below(tmp_path), MODELS)
    (tmp_path / "ctrla_steering.json").write_text("{}")

    with pytest.raises(EvaluationDataError, match=r"ctrla_steering\.json is not a"):
        find_result(part.name, key, [tmp_path])


def test_what_comes_along_is_of_the_arguments_that_are_asked_today():
    shipped = sorted(SHIPPED.glob("*.json"))

    assert shipped
    for file in shipped:
        key = json.loads(file.read_text())["key"]
        part = BY_NAME[file.stem]
        assert (key["study"], key["arguments"]) == (
            part.study,
            list(part.arguments(1.0)),
        )
        assert (SHIPPED.parent / json.loads(file.read_text())["page"]).is_file()


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@pytest.mark.parametrize("share", [0.01, 1.0])
def test_every_part_asks_what_its_study_takes(part, share):
    from importlib import import_module

    from studies.__main__ import STUDIES

    study = import_module(STUDIES[part.study][0]).Command()
    words = [word.replace("{run}", "1") for word in part.arguments(share)]

    study.create_parser("studies", part.study).parse_args(words)

    assert all(count > 0 for count in part.work(share).values())


def test_the_report_has_a_verdict_for_each_claim_and_the_tables_below():
    key = key_of_nothing()
    results = {
        "ctrla_steering": Result(
            key,
            "2026-11-23",
            (claim(0.1, (0.02, 0.18)), claim(-0.1, (-0.2, -0.01), unit="AUROC")),
            markdown="# Honesty steering\n\n## Strengths\n\n| a |\n",
        ),
        "dh_icl": Result(key, "2026-11-22", (), page="dh_icl.md"),
    }

    page = report({"language model": "tiny"}, results, [*results, "l2r"])

    assert "| gains |" in page
    assert "+10.0 (+2.0 to +18.0)" in page
    assert "-0.100 (-0.200 to -0.010) AUROC" in page
    assert "### Strengths" in page
    assert "dh\\_icl.md" in page
    assert "not measured yet" in page


def key_of_nothing():
    from studies.headline.stored import Key

    return Key("ctrla_steering", (), MODELS, {})


def test_model_device_and_precision_are_set_before_the_settings_are_read(monkeypatch):
    for name in ("LANGUAGE_MODEL", "MODEL_DEVICE", "MODEL_PRECISION"):
        monkeypatch.setenv(f"NESCIO_{name}", "")

    rest = with_settings(
        ["studies", "headline", "--model", "org/m", "--device=cuda", "--plan"]
    )

    assert rest == ["studies", "headline", "--plan"]
    assert os.environ["NESCIO_LANGUAGE_MODEL"] == "org/m"
    assert os.environ["NESCIO_MODEL_DEVICE"] == "cuda"
    assert os.environ["NESCIO_MODEL_PRECISION"] == ""


@pytest.mark.slow
@pytest.mark.django_db
def test_what_can_not_be_measured_is_reported_with_its_cause(
    tmp_path, capsys, settings
):
    # What is timed are the bundled model's answers or a tiny one's: the report is the same.
    settings.LANGUAGE_MODEL = str(
        tiny_models.save(tmp_path / "model", context_length=2_048)
    )
    settings.HISTORY_LABELS = "A/B"  # a tiny model's words are letters
    data = data_below(tmp_path / "data", "no json")
    options = {"data": data, "parts": ["ctrla_steering"], "output": tmp_path / "out"}

    call_command(Command(), **options, plan=True)

    planned = capsys.readouterr().err
    assert "about" in planned
    assert "not measured yet" in (tmp_path / "out" / "headline.md").read_text()

    with pytest.raises(CommandError, match="Not measured: ctrla_steering"):
        call_command(Command(), **options)

    written = (tmp_path / "out" / "headline.md").read_text()
    assert "not measured: " in written
    assert not (tmp_path / "out" / "ctrla_steering.json").exists()
