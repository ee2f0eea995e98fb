"""The command: from finished runs in the database to tables, files and plots."""

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from nescio.embedded.places import Places
from probes.abstention.fitting import FitSettings
from probes.adapter.merging import AdapterCard
from probes.language_model import load_model
from qa.inference.configured import load_language_model
from qa.models import Answer, AnswerEvidence, EvaluationResult, EvaluationRun
from qa.policies.services import ensure_default_policy
from studies.abstention.build import Options
from studies.abstention.command import Command, abstention_report
from studies.abstention.scores import PARTS
from studies.study import no_progress
from tests.factories import make_entry, make_knowledge_base
from tests.probes import tiny_models
from tests.qa.training.drafts import many

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
FAST: dict[str, Any] = {"epochs": 5, "hidden": 8, "projected": 8, "learning_rate": 0.02}
QUICK = {"folds": 3, "without": ["variants", "learning"], **FAST}


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report") / "model"
    return tiny_models.save(directory, context_length=2048)


@pytest.fixture
def running(settings, tmp_path, model_directory):
    settings.LANGUAGE_MODEL = str(model_directory)
    settings.LANGUAGE_SERVER_URL = ""
    settings.PLACES = Places(tmp_path / "var")
    return tmp_path


def mixed(count):
    """Return drafts of twelve articles, each with right and wrong ones."""
    return [
        replace(draft, group=f"g{number // 3 % 12}")
        for number, draft in enumerate(many(count))
    ]


def make_run(drafts):
    """Write drafts as a finished run in shadow of the running language model."""
    knowledge_base = make_knowledge_base()
    policy = ensure_default_policy(knowledge_base)
    fingerprint = load_language_model().fingerprint
    run = EvaluationRun.objects.create(
        suite="squad2", key="k", state="finished", total=len(drafts), policy=policy,
        knowledge_base=knowledge_base, language_model=fingerprint,
        finished_at=timezone.now(),
    )  # fmt: skip
    entry = make_entry("It costs 12 euros.")
    revision = entry.revisions.get()
    answers = Answer.objects.bulk_create(
        Answer(
            knowledge_base=knowledge_base, channel="evaluation", outcome="answered",
            question=draft.prompt.question, policy=policy, text=draft.answer,
            generation={"answer": draft.answer, "short_answer": draft.answer},
        )
        for draft in drafts
    )  # fmt: skip
    AnswerEvidence.objects.bulk_create(
        AnswerEvidence(
            answer=answer, entry=entry, revision=revision, rank=1, role="cited",
            distance=0.5, confidence=1.0,
        )
        for answer in answers
    )  # fmt: skip
    EvaluationResult.objects.bulk_create(
        EvaluationResult(
            run=run, case_id=draft.id, group=draft.group, answer=answer,
            is_answerable=draft.is_answerable, is_correct=draft.is_correct,
            is_answered=True, signals=dict(draft.signals), milliseconds=1.0,
            measures={"rouge_l": 0.8 if draft.is_right else 0.1},
        )
        for draft, answer in zip(drafts, answers, strict=True)
    )  # fmt: skip
    return run


def test_the_command_prints_writes_and_draws(running, capsys):
    run = make_run(mixed(480))
    files = {"json": running / "a.json", "markdown": running / "a.md"}

    call_command(Command(), runs=[run.pk], plots=running / "plots", **files, **QUICK)

    said = capsys.readouterr().out
    for title in ("Right against wrong", "Thresholds", "Risk and coverage", "Goals"):
        assert title in said
    figures = json.loads(files["json"].read_text())
    assert figures["runs"] == [run.pk]
    assert figures["answers"] == 480
    assert figures["articles"] == 12
    scores = figures["areas"]["scores"]
    assert scores["lstm"]["auroc"] > 0.9
    assert {"p_true", "verbalised", "linear", "early", "joint"} <= set(scores)
    assert "# Abstention" in files["markdown"].read_text()
    drawn = sorted(file.name for file in (running / "plots").iterdir())
    assert drawn == [f"abstention-risk-coverage.{kind}" for kind in ("png", "svg")]
    ET.parse(running / "plots" / drawn[1])


def test_articles_that_the_adapter_saw_are_left_out(
    running, model_directory, monkeypatch
):
    run = make_run(mixed(480))
    model = load_model(str(model_directory))
    seen = AdapterCard("b", "0" * 64, "grounded-1", "0" * 64, ("g1", "g2"), {}, {})
    monkeypatch.setattr(model, "adapter", seen)

    made = abstention_report(
        [run.pk], Options(FitSettings(**FAST), without=PARTS),
        folds=4, directory=running / "kept", on_progress=no_progress,
    )  # fmt: skip

    assert made.figures["articles"] == 10
    assert made.figures["answers"] == 396
    assert any("84 drafts about articles" in note for note in made.notes)


@pytest.mark.parametrize(
    ("runs", "folds", "said"),
    [([0], 3, "no run 0"), (None, 13, "12 articles"), (None, 2, "at least 3")],
)
def test_what_can_not_be_reported_is_said(running, runs, folds, said):
    run = make_run(mixed(480))

    with pytest.raises(CommandError, match=said):
        call_command(
            Command(), runs=runs or [run.pk], folds=folds,
            without=["variants", "learning"],
        )  # fmt: skip


def test_a_run_of_another_model_is_refused(running):
    run = make_run(mixed(60))
    EvaluationRun.objects.update(language_model="f" * 64)

    with pytest.raises(CommandError, match="was answered by"):
        call_command(Command(), runs=[run.pk], **QUICK)
