"""Fitting a verifier end to end: from new nets, and from one that was fitted before."""

from pathlib import Path

import pytest
from django.test import override_settings

from probes.verifier.card import base_directory, read_card
from probes.verifier.fitting import VerifierSettings
from probes.verifier.scoring import load_network, load_verifier
from qa.exceptions import TrainingDataError
from qa.pipeline.weighing import Passage
from qa.training.knowledge_sets import KnowledgeSet, SourceEntry
from qa.training.verifier import VerifierTraining, train_verifier

pytestmark = pytest.mark.slow

TOPICS = {
    "fee": "A card costs 12 euros.",
    "limit": "You can spend 500 euros a day.",
    "branch": "The branch opens at nine.",
    "address": "Change your address in the app.",
}


def known(name: str) -> KnowledgeSet:
    found = KnowledgeSet(name, "ours")
    for topic, text in TOPICS.items():
        place = found.place(SourceEntry(text, "Help", topic))
        found.ask(f"What about the {topic} of {name}?", [place])
        found.ask(f"Who decided on the {topic}?", [])
    return found


def fit(output: Path, **changes):
    training = VerifierTraining(
        data=Path("unused"),
        articles=(),
        held_out=("b",),
        members=2,
        nets_alone=VerifierSettings(epochs=1, upper_rate=0.0),
        cross=VerifierSettings(epochs=1, batch=8),
        **{"tuned": 1, "settings": VerifierSettings(epochs=1), **changes},
    )
    said: list[str] = []
    card = train_verifier(
        training,
        [known("public")],
        [known("a"), known("b")],
        output,
        on_progress=lambda what, *_: said.append(what),
    )
    return card, said


@pytest.fixture(scope="module", autouse=True)
def _small_encoder():
    """The bundled embedder stands in for the larger encoder, which takes long to fit."""
    with override_settings(VERIFIER_ENCODER=str(base_directory())):
        yield


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    output = tmp_path_factory.mktemp("fitted")
    return output, *fit(output)


def test_a_fit_writes_a_verifier_and_what_it_came_from(fitted):
    output, card, said = fitted
    assert read_card(output) == card
    assert set(card.sources) == {"public", "a"}
    assert card.sources["a"] == {"questions": 8, "licence": "ours"}
    assert card.metrics["questions"] == 8
    assert card.settings["phases"] == ["the nets", "all"]
    assert card.settings["begun_from"] == ""
    assert {"Reading a", "Fitting the nets", "Fitting all", "Asking b"} <= set(said)
    assert card.encoder_sha256 == card.base_sha256
    assert {"Fitting the comparison by tokens", "Fitting the cross-encoder"} <= set(
        said
    )
    passage = Passage("Help", "fee", "", TOPICS["fee"])
    (chance,) = load_verifier(output).score("What about the fee?", [passage])
    assert 0 < chance < 1


def test_a_fit_goes_on_from_an_earlier_one_with_one_layer_more(fitted, tmp_path):
    earlier, before, _ = fitted
    still = VerifierSettings(epochs=1, learning_rate=0.0, upper_rate=0.0)
    card, said = fit(tmp_path, tuned=2, begin_from=earlier, settings=still)
    assert (card.tuned, card.members) == (2, 2)
    assert card.settings["begun_from"] == before.fingerprint
    assert card.settings["phases"] == ["all"]
    assert "Fitting the nets" not in said
    # Nothing was learnt at a rate of 0: it says what the earlier one says.
    passages = [Passage("Help", topic, "", text) for topic, text in TOPICS.items()]
    one = load_network(earlier)[1].state_dict()
    other = load_network(tmp_path)[1].state_dict()
    assert all((other[name] == one[name]).all() for name in one if "members" in name)
    assert (
        other["upper.1.output.dense.weight"] == one["upper.0.output.dense.weight"]
    ).all()
    assert len(load_verifier(tmp_path).score("What about the fee?", passages)) == 4


def test_a_fit_does_not_drop_layers_that_were_tuned(fitted, tmp_path):
    with pytest.raises(TrainingDataError, match="has 1 tuned layers"):
        fit(tmp_path, tuned=0, begin_from=fitted[0])


def test_an_organisation_that_is_not_there_cannot_be_held_out(tmp_path):
    training = VerifierTraining(data=Path("unused"), articles=(), held_out=("c",))
    with pytest.raises(TrainingDataError, match="no knowledge set c"):
        train_verifier(
            training, [], [known("a")], tmp_path, on_progress=lambda *_: None
        )
