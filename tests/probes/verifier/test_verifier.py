"""The verifier: texts read apart and together, fitted, kept as files and asked."""

import json
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from probes.exceptions import VerifierFileError
from probes.verifier.fitting import (
    Example,
    VerifierSettings,
    fit_scale,
    fit_verifier,
    logits_of,
)
from probes.verifier.network import (
    MAX_QUESTION,
    MAX_WINDOW,
    OVERLAP,
    JointLayers,
    Reader,
    base_directory,
    batch_of,
)
from probes.verifier.scoring import (
    CARD,
    WEIGHTS,
    VerifierCard,
    entry_text,
    load_verifier,
    save_verifier,
)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(base_directory())


@pytest.fixture(scope="module")
def saved(reader, tmp_path_factory):
    """A verifier with new layers, as files."""
    directory = tmp_path_factory.mktemp("verifier")
    torch.manual_seed(0)
    save_verifier(directory, JointLayers(Reader(base_directory()).upper), card(reader))
    return directory


def card(reader: Reader, **changes) -> VerifierCard:
    values = {
        "base_sha256": reader.sha256,
        "scale": 1.0,
        "offset": 0.0,
        "data_sha256": "d" * 64,
        "sources": {"some": {"questions": 1, "licence": "ours"}},
        "settings": {},
        "metrics": {},
    }
    return VerifierCard(**values | changes)


def test_a_text_is_read_as_by_the_first_layers_of_the_embedder(reader):
    from transformers import AutoModel, AutoTokenizer

    directory = str(base_directory())
    tokens = AutoTokenizer.from_pretrained(directory)(
        "A card costs 12 euros.", return_tensors="pt"
    )
    with torch.inference_mode():
        all_states = AutoModel.from_pretrained(directory)(
            **tokens, output_hidden_states=True
        ).hidden_states
    states = reader.question("A card costs 12 euros.")
    np.testing.assert_allclose(states, all_states[4][0].numpy(), atol=2e-3)


def test_padding_changes_nothing(reader):
    layers = JointLayers(Reader(base_directory()).upper).eval()
    asked = reader.question("How much is a card?")
    short, long = (
        reader.read(reader.windows(text))[0]
        for text in ("12 euros.", "A card costs 12 euros. " * 8)
    )
    with torch.inference_mode():
        alone = layers(batch_of([(asked, short)]))
        beside = layers(batch_of([(asked, short), (asked, long)]))
    torch.testing.assert_close(alone[0], beside[0], atol=1e-4, rtol=1e-4)


@given(words=st.integers(1, 600))
def test_windows_cover_all_of_a_text_and_overlap(reader, words):
    text = " ".join(["card"] * words)
    windows = reader.windows(text)
    assert all(len(window) <= MAX_WINDOW for window in windows)
    inner = [window[1:-1] for window in windows]
    joined = list(inner[0])
    for part in inner[1:]:
        joined += part[OVERLAP:]
    assert len(joined) == words


def test_a_long_question_is_cut(reader):
    assert len(reader.question("card " * 500)) == MAX_QUESTION


def test_a_fit_tells_apart_what_it_was_shown(reader):
    layers = JointLayers(Reader(base_directory()).upper)
    topics = [
        "fee",
        "limit",
        "address",
        "refund",
        "password",
        "delivery",
        "branch",
        "insurance",
    ]
    states = {
        t: reader.read(reader.windows(f"About the {t} of the card."))[0] for t in topics
    }
    examples = [
        Example(
            reader.question(f"What about the {topic}?"),
            (states[topic],),
            tuple(states[other] for other in topics if other != topic),
        )
        for topic in topics
    ] * 4  # fmt: skip
    steps = []
    settings = VerifierSettings(
        batch=8, epochs=6, group=4, left_out=0.0, learning_rate=3e-4
    )
    fit_verifier(layers, examples, settings, on_step=lambda *at: steps.append(at))
    assert steps[-1] == (24, 24)
    best = 0
    for example in examples[: len(topics)]:
        entries = [*example.positives, *example.negatives]
        logits = logits_of(layers, [(example.question, entry) for entry in entries])
        best += int(logits.argmax()) == 0
    assert best == len(topics)


def test_chunks_of_like_length_give_the_logits_in_the_callers_order(reader):
    layers = JointLayers(Reader(base_directory()).upper).eval()
    asked = reader.question("How much is a card?")
    texts = [" ".join(["A card costs 12 euros."] * (1 + at % 5)) for at in range(40)]
    pairs = [(asked, reader.read(reader.windows(text))[0]) for text in texts]
    with torch.inference_mode():
        together = logits_of(layers, pairs)
        one_by_one = torch.cat([layers(batch_of([pair])) for pair in pairs])
    torch.testing.assert_close(together, one_by_one, atol=1e-4, rtol=1e-4)


def test_the_scale_is_that_of_a_logistic_regression():
    chance = np.random.default_rng(0)
    logits = chance.normal(size=4000)
    labels = chance.random(4000) < 1 / (1 + np.exp(-(1.7 * logits - 0.6)))
    scale, offset = fit_scale(logits.tolist(), labels.tolist())
    reference = LogisticRegression(C=1e9).fit(logits[:, None], labels)
    assert scale == pytest.approx(reference.coef_[0, 0], abs=0.02)
    assert offset == pytest.approx(reference.intercept_[0], abs=0.02)


def test_saved_and_loaded_it_says_the_same(saved):
    verifier = load_verifier(saved)
    entries = ["A card costs 12 euros.", "The branch opens at nine. " * 40]
    first = verifier.score("How much is a card?", entries)
    assert all(0 <= chance <= 1 for chance in first)
    # What was kept of the entries changes nothing, nor does their order.
    assert verifier.score("How much is a card?", entries[::-1]) == pytest.approx(
        first[::-1], abs=1e-5
    )


def test_of_a_long_entry_its_best_part_counts(saved):
    verifier = load_verifier(saved)
    long = " ".join(f"Sentence number {at} about the branch." for at in range(60))
    whole = verifier.score("How much is a card?", [long])[0]
    assert 0 <= whole <= 1


@pytest.mark.parametrize("name", [CARD, WEIGHTS])
def test_damaged_files_are_refused_with_a_remedy(saved, tmp_path, name):
    directory = tmp_path / "damaged"
    shutil.copytree(saved, directory)
    (directory / name).write_bytes(b"{}")
    with pytest.raises(VerifierFileError, match="train verifier"):
        load_verifier(directory)


def test_a_verifier_of_another_base_is_refused(saved, tmp_path):
    directory = tmp_path / "other"
    shutil.copytree(saved, directory)
    said = json.loads((directory / CARD).read_text())
    (directory / CARD).write_text(json.dumps({**said, "base_sha256": "0" * 64}))
    with pytest.raises(VerifierFileError, match="Fit it again"):
        load_verifier(directory)


def test_an_entry_is_read_with_its_place_and_question():
    assert (
        entry_text("Fees", "Cards", "What is it?", "12 euros.")
        == "Fees: Cards. What is it? 12 euros."
    )
    assert entry_text("", "", "", "12 euros.") == "12 euros."
