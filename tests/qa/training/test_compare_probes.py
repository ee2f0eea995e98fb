"""Challenger against champion on golden answers: the better one wins, chance does not."""

from dataclasses import replace

import pytest

from probes.abstention.fitting import FitSettings
from probes.abstention.probe import Kind
from probes.cards import ProbeKind
from probes.exceptions import TooFewLabelsError
from probes.services import register
from probes.taps import Tap
from qa.training.compare_probes import compare_probes
from qa.training.probe import Training, train
from tests.probes import tiny_models

from .drafts import draft, many

pytestmark = pytest.mark.django_db


def golden(number):
    """Make a golden answer; experts err, of eleven in one."""
    made = draft(1_000 + number, is_right=number % 2 == 0, group=f"g{number % 10}")
    return replace(made, is_correct=made.is_right is not (number % 11 == 0))


GOLDEN = [golden(number) for number in range(80)]


@pytest.fixture(scope="module")
def model():
    return tiny_models.model("llama")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("activations")


def made(model, directory, kind, *, flip=False, **changes):
    drafts = [replace(d, is_correct=d.is_right is not flip) for d in many(420)]
    settings = FitSettings(kind=Kind.LINEAR)
    training = replace(Training(kind, Tap(1), settings, folds=3), **changes)
    found = train(model, drafts, training, language_model="e" * 64, directory=directory)
    return found.files


@pytest.fixture(scope="module")
def good(model, directory):
    return made(model, directory, ProbeKind.ABSTENTION)


@pytest.fixture(scope="module")
def bad(model, directory):
    return made(model, directory, ProbeKind.ABSTENTION, flip=True)


def fought(model, directory, champion, challenger, answers=GOLDEN):
    return compare_probes(
        model,
        answers,
        champion=register(champion) if champion else None,
        challenger=register(challenger),
        directory=directory,
    )


def test_the_better_one_is_better(model, directory, good, bad):
    found = fought(model, directory, bad, good)

    assert found.is_better
    assert found.challenger_auroc > 0.8 > 0.2 > found.champion_auroc
    assert found.golden == 80


def test_the_worse_one_is_not(model, directory, good, bad):
    assert not fought(model, directory, good, bad).is_better


def test_a_probe_is_no_better_than_itself(model, directory, good):
    found = fought(model, directory, good, good)

    assert found.champion_auroc == found.challenger_auroc
    assert not found.is_better


def test_without_a_champion_it_must_be_better_than_a_coin(model, directory, good, bad):
    assert fought(model, directory, None, good).is_better
    assert fought(model, directory, None, good).champion_auroc == 0.5
    assert not fought(model, directory, None, bad).is_better


def test_an_early_probe_reads_the_prompts_end_alone(model, directory):
    early = made(model, directory, ProbeKind.EARLY)

    assert fought(model, directory, None, early).challenger_auroc > 0.8


def test_a_joint_probe_reads_the_confidences_of_its_inputs(model, directory, good):
    register(good)
    joint = made(model, directory, ProbeKind.JOINT, inputs=(good,))

    assert fought(model, directory, None, joint).challenger_auroc > 0.8


@pytest.mark.slow
def test_with_few_golden_answers_chance_would_decide(model, directory, good, bad):
    with pytest.raises(TooFewLabelsError, match="60"):
        fought(model, directory, bad, good, GOLDEN[:40])


def test_a_probe_is_gone_on_with_by_few_answers_and_compared_out_of_folds(
    model, directory, good
):
    few = [golden(number) for number in range(50)]
    settings = FitSettings(kind=Kind.LINEAR)
    training = Training(
        ProbeKind.ABSTENTION, Tap(1), settings, folds=5, begin_from=good
    )

    found = train(model, few, training, language_model="e" * 64, directory=directory)

    assert found.folded.keys() == {each.id for each in few}
    comparison = compare_probes(
        model,
        few,
        champion=register(good),
        challenger=register(found.files),
        folded=found.folded,
        directory=directory,
    )
    # A few wrong labels do not undo what the probe knows.
    assert comparison.challenger_auroc > comparison.champion_auroc - 0.1
    scored = {second for _, second, _, _ in comparison.scores}
    assert scored == set(found.folded.values())
    with pytest.raises(TooFewLabelsError, match="at least 400"):
        train(
            model,
            few,
            replace(training, begin_from=None),
            language_model="e" * 64,
            directory=directory,
        )
