"""Fine-tuning, saving and loading a reranker, on a tiny cross-encoder."""

import json
import math
import random
from dataclasses import replace

import pytest
import torch

from probes.exceptions import ModelLoadError, RerankerFileError, TooFewLabelsError
from probes.reranker.fitting import (
    GroupInfoNCE,
    RerankerSettings,
    Step,
    fit_reranker,
    save_reranker,
)
from probes.reranker.scoring import (
    CARD,
    WEIGHTS,
    RerankerCard,
    load_reranker,
    open_encoder,
    read_card,
    scores_of,
)

from .tiny_encoder import preferences, save_encoder

QUICK = RerankerSettings(group=4, learning_rate=5e-3, epochs=3, max_tokens=48)
LANGUAGE_MODEL = "a" * 64


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def fitted(base):
    steps: list[Step] = []
    made = fit_reranker(
        str(base), preferences(60), preferences(25), QUICK, on_step=steps.append
    )
    return made, steps


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    directory = tmp_path_factory.mktemp("reranker")
    card = RerankerCard(
        base="tiny", language_model=LANGUAGE_MODEL, boundary_probe="b" * 64,
        data_sha256="d" * 64, sizes={"preferences": 60}, settings={}, metrics={},
        max_tokens=0,
    )  # fmt: skip
    return directory, save_reranker(directory, fitted[0], card)


def test_what_is_preferred_is_learnt_and_the_held_out_ranking_says_so(fitted):
    made, steps = fitted

    assert made.metrics["before"] < 0.9
    assert made.metrics["mrr@10"] > 0.95
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert steps[-1].total == 24


def test_a_fit_in_bfloat16_leaves_the_callers_random_numbers_alone(base):
    def drawn():
        torch.manual_seed(5)
        random.seed(5)
        return torch.rand(1), random.random()

    expected = drawn()
    torch.manual_seed(5)
    random.seed(5)

    fit_reranker(
        str(base),
        preferences(20),
        preferences(20),
        replace(QUICK, epochs=1, bf16=True),
    )

    assert (torch.rand(1), random.random()) == expected


def test_the_loss_is_the_share_of_the_positive_among_its_own_group(base):
    encoder = open_encoder(str(base), max_tokens=48)
    encoder.eval()
    questions, notes = ["cat?", "dog?"], [["a!", "b!"], ["c.", "d."], ["e.", "f."]]

    loss = float(GroupInfoNCE(encoder, 0.5)([questions, *notes]).detach())

    expected = []
    for row, question in enumerate(questions):
        scores = scores_of(encoder, [(question, column[row]) for column in notes])
        shares = [math.exp(score / 0.5) for score in scores]
        expected.append(-math.log(shares[0] / sum(shares)))
    assert loss == pytest.approx(sum(expected) / 2, abs=1e-5)


def test_a_saved_reranker_scores_as_the_fitted_one(fitted, saved):
    directory, card = saved
    texts = ["cat!!!!", "cat....", "dog!!!!"]

    reranker = load_reranker(directory)

    found = reranker.score("cat?", texts)
    own = scores_of(fitted[0].encoder, [("cat?", text) for text in texts])
    assert found == pytest.approx(own, abs=1e-5)
    assert found[0] > found[1]
    assert reranker.score("cat?", []) == []
    assert reranker.fingerprint == card.fingerprint
    assert load_reranker(directory) is reranker


def test_the_order_and_company_of_texts_change_no_score(saved):
    reranker = load_reranker(saved[0])
    texts = [f"note {number}{'!' * (number % 7)}" for number in range(40)]

    together = reranker.score("cat?", texts)

    assert reranker.score("cat?", texts[::-1]) == pytest.approx(
        together[::-1], abs=1e-5
    )
    assert reranker.score("cat?", texts[3:4]) == pytest.approx(together[3:4], abs=1e-5)


def test_the_files_name_no_directory_of_the_machine(base, saved):
    directory, card = saved

    assert read_card(directory) == card
    assert card.language_model == LANGUAGE_MODEL
    assert card.settings["learning_rate"] == QUICK.learning_rate
    for file in directory.rglob("*.json"):
        assert str(base) not in file.read_text()
    assert not list(directory.rglob("*.bin"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "change"),
    [
        (WEIGHTS, lambda data: data[:-1] + b"x"),
        (CARD, lambda data: data.replace(b'"format": 1', b'"format": 9')),
        (CARD, lambda data: data.replace(b'"max_tokens": 48', b'"max_tokens": -1')),
        (CARD, lambda _: b"{"),
        (CARD, lambda _: json.dumps({"format": 1, "base": "x"}).encode()),
    ],
    ids=["weights", "format", "tokens", "no JSON", "missing fields"],
)
def test_damaged_files_are_refused_with_a_remedy(saved, tmp_path, file, change):
    for source in saved[0].rglob("*"):
        if source.is_file():
            (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / file).write_bytes(change((tmp_path / file).read_bytes()))

    with pytest.raises(RerankerFileError, match="train reranker"):
        load_reranker(tmp_path)


def test_what_nothing_can_be_learnt_from_is_refused(base, tmp_path):
    with pytest.raises(TooFewLabelsError, match="make_preferences"):
        fit_reranker(str(base), preferences(5), preferences(20), QUICK)
    with pytest.raises(TooFewLabelsError, match="held out"):
        fit_reranker(str(base), preferences(20), preferences(5), QUICK)
    pickled = save_encoder(tmp_path / "pickled", safetensors=False)
    with pytest.raises(ModelLoadError, match="safetensors"):
        open_encoder(str(pickled), max_tokens=48)
