"""The probes that come along fit each other, and the bundled model with its adapter."""

import pytest
import torch
from django.conf import settings

from probes import bundled
from probes.cards import ANSWER_KINDS, CARD, ProbeFiles, ProbeKind
from probes.directions.sets import DirectionSet
from probes.language_model.loading import SHIPPED, load_model_from
from probes.services import DIRECTORY, load_probe

pytestmark = pytest.mark.slow

FILES = {
    card.parent.name: ProbeFiles.read(card.parent)
    for card in sorted(DIRECTORY.glob(f"*/{CARD}"))
}
JUDGING = sorted(name for name in FILES if name != "directions")


def test_each_kind_that_answers_need_comes_along():
    there = {files.parsed().kind for files in FILES.values()}

    assert there >= {*ANSWER_KINDS, ProbeKind.DIRECTIONS}


@pytest.mark.parametrize("name", JUDGING)
def test_each_can_be_loaded_and_was_measured(name):
    card = FILES[name].checked()

    load_probe(FILES[name], language_model=card.language_model)

    assert card.language_model_name.startswith("bundled")
    auroc = card.metrics["auroc"]
    assert isinstance(auroc, dict)
    assert float(str(auroc["value"])) > 0.7
    assert "out of" in str(card.metrics["measured"])


def test_directions_tell_pairs_that_they_were_not_fitted_on():
    card = FILES["directions"].checked()
    directions = load_probe(FILES["directions"], language_model=card.language_model)

    assert isinstance(directions, DirectionSet)
    for layer in directions.monitored:
        assert directions.confidence.accuracies[layer] > 0.9
    for layer in directions.steered:
        assert directions.honesty.accuracies[layer] > 0.9
    assert float(str(card.metrics["sounding_auroc"])) > 0.7


def test_what_a_joint_probe_reads_comes_along_too():
    there = {files.fingerprint for files in FILES.values()}
    joints = [f.parsed() for f in FILES.values() if f.parsed().kind is ProbeKind.JOINT]

    assert joints
    for joint in joints:
        assert set(joint.inputs) == {"abstention", "early"}
        assert set(joint.inputs.values()) <= there


@pytest.mark.parametrize(
    ("names", "adapter"), [(("abstention", "early"), SHIPPED), (("directions",), None)]
)
def test_they_were_fitted_for_the_bundled_model_in_half_precision(names, adapter):
    fitted_for = {FILES[name].parsed().language_model for name in names}
    model = load_model_from(
        bundled.prepare(settings.PLACES.models),
        name="bundled",
        device=torch.device("cpu"),
        dtype=torch.bfloat16,
        adapter=adapter,
    )

    assert fitted_for == {model.fingerprint}
