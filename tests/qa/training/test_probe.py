"""Training from drafts to the registry: honest figures, the same probe every time."""

import json
from dataclasses import replace

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from nescio.embedded.places import Places
from probes.abstention.files import probe_from
from probes.abstention.fitting import FitSettings
from probes.abstention.probe import Kind
from probes.cards import ProbeFiles, ProbeKind
from probes.exceptions import LayerError, TooFewLabelsError
from probes.joint import JointSettings, joint_from
from probes.models import Probe
from probes.taps import Tap
from qa.exceptions import EvaluationDataError, TrainingDataError
from qa.training.draft_activations import DraftActivations
from qa.training.labels import digest_of
from qa.training.probe import Training, train
from tests.probes import tiny_models
from workers.registry import HANDLERS

from .drafts import draft, many

pytestmark = pytest.mark.slow

QUICK = FitSettings(
    hidden=8, projected=8, dropout=0.1, learning_rate=1e-2, epochs=12, patience=3
)
ANSWERING = "e" * 64


@pytest.fixture(scope="module")
def model():
    return tiny_models.model("llama")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("activations")


def trained(model, directory, kind, drafts=None, **changes):
    network = Kind.LSTM if kind is ProbeKind.ABSTENTION else Kind.LINEAR
    training = Training(kind, Tap(1), replace(QUICK, kind=network), folds=3)
    return train(
        model,
        many(420) if drafts is None else drafts,
        replace(training, **changes),
        language_model=ANSWERING,
        directory=directory,
    )


@pytest.fixture(scope="module")
def abstention(model, directory):
    return trained(model, directory, ProbeKind.ABSTENTION)


@pytest.fixture(scope="module")
def early(model, directory):
    return trained(model, directory, ProbeKind.EARLY)


@pytest.mark.parametrize("kind", ["abstention", "early"])
def test_what_lies_in_the_activations_is_learnt(model, directory, kind, request):
    made = request.getfixturevalue(kind)
    card = made.files.checked(language_model=model.fingerprint)

    assert card.kind == kind
    assert (card.layer, card.part, card.form) == (1, "block", "grounded-1")
    assert card.sizes == {"answers": 420, "groups": 12, "width": 32}
    assert card.data_sha256 == digest_of(many(420))
    assert card.metrics == made.metrics
    assert card.metrics["auroc"]["value"] > 0.95
    assert card.metrics["measured"] == "out of 3 folds, split by group"
    # What a signal says is a rank: its entropy speaks against an answer.
    assert 0.65 < card.metrics["baselines"]["log_probability"]["auroc"]["value"] < 0.85
    unseen = [draft(1000 + n, is_right=n % 2 == 0) for n in range(40)]
    activations = DraftActivations(model, unseen, directory=directory)
    probe = probe_from(made.files, language_model=model.fingerprint)
    read = {
        "early": activations.of_prompts(Tap(1)),
        "abstention": [*map(QUICK.cut_to_read, activations.of_sequences(Tap(1)))],
    }
    confidences = probe.confidences(read[kind])
    assert confidences[::2].mean() > 0.8 > 0.4 > confidences[1::2].mean()


def test_a_probe_that_is_not_linear_stands_beside_a_linear_one(abstention, early):
    assert "linear" in abstention.metrics["baselines"]
    assert "linear" not in early.metrics["baselines"]


def test_the_same_drafts_give_the_same_probe_in_any_order(model, directory, early):
    again = trained(model, directory, ProbeKind.EARLY, many(420)[::-1])
    other = trained(model, directory, ProbeKind.EARLY, many(420)[1:])

    assert again.files.fingerprint == early.files.fingerprint
    assert other.files.fingerprint != early.files.fingerprint


def test_what_is_right_about_a_group_alone_is_not_counted_as_known(model, directory):
    # Right is whatever the group says, and nothing of it stands in the answers.
    random = np.random.default_rng(1)
    drafts = [
        replace(
            draft(n, is_right=True, group=f"g{n % 12}", answer=f"g{n % 12:02d}"),
            is_correct=bool(n % 2) ^ bool(random.uniform() < 0.3),
        )
        for n in range(420)
    ]
    made = trained(model, directory, ProbeKind.ABSTENTION, drafts)
    # Split answer by answer it would be told at 0.7.
    assert made.metrics["auroc"]["value"] < 0.6


def test_a_joint_probe_reads_signals_and_other_probes(
    model, directory, abstention, early
):
    inputs = [abstention.files, early.files]
    made = trained(model, directory, ProbeKind.JOINT, inputs=inputs, folds=5)

    probe = joint_from(made.files, language_model=ANSWERING)

    assert probe.inputs == {
        "abstention": abstention.files.fingerprint,
        "early": early.files.fingerprint,
    }
    assert {"answer_confidence", "early_confidence", "log_probability"} <= set(
        probe.terms
    )
    assert made.metrics["auroc"]["value"] > 0.95
    assert {"answer_confidence", "early_confidence"} <= set(made.metrics["baselines"])
    sure = {"answer_confidence": 0.99, "early_confidence": 0.99}
    unsure = {"answer_confidence": 0.01, "early_confidence": 0.01}
    assert probe.confidence(sure) > 0.8 > 0.5 > probe.confidence(unsure)


def test_a_joint_probe_without_others_reads_the_signals_alone(model, directory):
    drafts = [
        replace(row, signals={**row.signals, "answer_confidence": 1.0 * row.is_right})
        for row in many(420)
    ]
    joint = JointSettings(("log_probability", "mean_entropy", "answer_confidence"))
    made = trained(model, directory, ProbeKind.JOINT, drafts, joint=joint)

    # What another probe once said of these very answers is not believed.
    names = set(joint_from(made.files, language_model=ANSWERING).terms)
    assert names == {"log_probability", "mean_entropy"}
    assert 0.6 < made.metrics["auroc"]["value"] < 0.9


def test_what_nothing_can_be_learnt_from_is_refused_before_anything_is_read(
    model, directory
):
    few, one_sided = many(100), [draft(n, is_right=True) for n in range(420)]
    for drafts in (few, one_sided, []):
        with pytest.raises(TooFewLabelsError, match="400 are needed"):
            trained(model, directory, ProbeKind.ABSTENTION, drafts)
    together = [replace(row, group="one") for row in many(420)]
    with pytest.raises(EvaluationDataError):
        trained(model, directory, ProbeKind.ABSTENTION, together)
    with pytest.raises(LayerError):
        trained(model, directory, ProbeKind.ABSTENTION, tap=Tap(99))


@pytest.fixture
def running(settings, tmp_path, monkeypatch):
    """Let a tiny model on disk be the language model, with files of its own."""
    settings.LANGUAGE_MODEL = str(tiny_models.save(tmp_path / "model"))
    settings.LANGUAGE_SERVER_URL = ""
    settings.PLACES = Places(tmp_path / "var")
    return tmp_path


def lines(file, drafts):
    rows = [
        {
            "question": row.prompt.question,
            "evidence": [{"text": piece.text} for piece in row.prompt.evidence],
            "answer": row.answer,
            "is_right": row.is_right,
            "group": row.group,
            "signals": dict(row.signals),
        }
        for row in drafts
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


FAST = {"hidden": 8, "projected": 8, "learning_rate": 0.01, "epochs": 6, "folds": 3}


@pytest.mark.django_db
def test_the_command_trains_prints_and_keeps(running, capsys):
    data = lines(running / "answers.jsonl", many(420))
    output = running / "out"

    call_command("train_probe", data=data, output=output, promote=True, **FAST)

    probe = Probe.objects.get()
    assert (probe.state, probe.kind, probe.layer) == ("active", "abstention", 1)
    assert probe.files.parsed().settings["kind"] == "lstm"
    assert ProbeFiles.read(output).fingerprint == probe.fingerprint
    said = capsys.readouterr().out
    assert "420 answers, 280 of them right" in said
    assert "AUROC" in said
    assert "log probability" in said
    call_command("train", "probe", kind="early", data=data, promote=True, **FAST)
    call_command("train", "probe", kind="joint", data=data, folds=5)
    joint = Probe.objects.get(kind="joint")
    assert joint.state == "candidate"
    assert set(joint.files.parsed().inputs) == {"abstention", "early"}
    assert joint.language_model != probe.language_model


@pytest.mark.django_db
def test_the_command_says_what_it_can_not_train_on(running):
    few = lines(running / "few.jsonl", many(50))
    for options, said in (
        ({}, "nothing to train on"),
        ({"data": few}, "400 are needed"),
        ({"runs": [0]}, "no run 0"),
        ({"data": few, "kind": "early", "network": "lstm"}, "linear, mlp"),
    ):
        with pytest.raises(CommandError, match=said):
            call_command("train", "probe", **options)
    assert not Probe.objects.exists()


@pytest.mark.django_db
def test_without_a_model_to_look_into_the_command_says_so(running, settings):
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:9"
    settings.SURROGATE_MODEL = "none"
    with pytest.raises(CommandError, match="NESCIO_SURROGATE_MODEL"):
        call_command("train", "probe", runs=[1])


@pytest.mark.django_db(transaction=True)
def test_the_job_fails_with_what_is_wrong_and_trains_otherwise(running):
    bad = enqueue("probes.train", {"kind": "forest", "runs": [1]})
    none = enqueue("probes.train", {"kind": "early", "runs": []})
    for job in (bad, none):
        with pytest.raises(TrainingDataError):
            run_job(job.pk, HANDLERS)
    assert {job.state for job in Job.objects.all()} == {"failed"}
