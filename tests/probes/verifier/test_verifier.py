"""The verifier: texts read apart and together, fitted, kept as files and asked."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from probes.exceptions import VerifierFileError
from probes.verifier.card import (
    CARD,
    NO_QUESTION,
    WEIGHTS,
    Calibration,
    VerifierCard,
    base_directory,
)
from probes.verifier.fitting import (
    Example,
    VerifierSettings,
    fit_scale,
    fit_verifier,
    logits_of,
    set_weights,
)
from probes.verifier.late_interaction import LateInteraction
from probes.verifier.network import Interaction, Members, Tuned
from probes.verifier.reading import (
    ASKED,
    MAX_QUESTION,
    MAX_WINDOW,
    OVERLAP,
    PLACE,
    QUESTION,
    TEXT,
    WHOLE,
    Reader,
    Tokens,
    side_of,
    upper_layers,
)
from probes.verifier.scoring import (
    load_network,
    load_verifier,
    place_of,
    save_verifier,
)
from qa.pipeline.weighing import Passage


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(base_directory())


@pytest.fixture(scope="module")
def saved(reader, tmp_path_factory):
    """A verifier that was not fitted, as files."""
    directory = tmp_path_factory.mktemp("verifier")
    save_verifier(directory, tuned(reader, members=2), card(reader))
    return directory


def tuned(reader: Reader, *, layers: int = 0, members: int = 1) -> Tuned:
    nets = Members([new_network(reader) for _ in range(members)])
    by_tokens = LateInteraction(reader.width)
    return Tuned(upper_layers(base_directory(), layers), nets, by_tokens).eval()


def new_network(reader: Reader) -> Interaction:
    torch.manual_seed(0)
    return Interaction(reader.width, reader.vocabulary)


def card(reader: Reader, **changes: Any) -> VerifierCard:
    values: dict[str, Any] = {
        "base_sha256": reader.sha256,
        "members": 2,
        "tuned": 0,
        "data_sha256": "d" * 64,
        "sources": {"some": {"questions": 1, "licence": "ours"}},
        "settings": {},
        "metrics": {},
    }
    return VerifierCard(**values | changes)


def read(reader: Reader, text: str, question: str = "") -> Tokens:
    return reader.read(reader.windows("", question, text))[0]


@pytest.mark.parametrize(
    ("word", "exists"),
    [("library", True), ("employer", True), ("libary", False), ("replacment", False)],
)
def test_a_word_is_what_the_embedder_knows_as_a_whole(reader, word, exists):
    assert reader.is_word(word) is exists


def test_a_text_is_read_as_by_the_embedder(reader):
    from transformers import AutoModel, AutoTokenizer

    directory = str(base_directory())
    tokens = AutoTokenizer.from_pretrained(directory)(
        "A card costs 12 euros.", return_tensors="pt"
    )
    with torch.inference_mode():
        states = AutoModel.from_pretrained(directory)(**tokens).last_hidden_state[0]
    asked = reader.question("A card costs 12 euros.")
    np.testing.assert_allclose(asked.states, states.numpy(), atol=2e-3)
    assert asked.ids.tolist() == tokens["input_ids"][0].tolist()


@pytest.mark.slow
def test_tuned_layers_read_on_where_the_embedder_s_own_are_left_off(reader, tmp_path):
    network = tuned(reader, layers=2, members=2)
    with torch.no_grad():
        for weights in network.upper.parameters():
            weights.add_(0.01 * torch.randn_like(weights))
    below = Reader(base_directory(), left_off=2)
    texts = ["12 euros.", "A card costs 12 euros. " * 3]
    pairs = [
        (below.question("How much is a card?"), read(below, text)) for text in texts
    ]
    with torch.inference_mode():
        expected = torch.sigmoid(logits_of(network, pairs).mean(0))

    save_verifier(tmp_path, network, card(reader, tuned=2))
    found = load_verifier(tmp_path).score(
        "How much is a card?", [Passage("", "", "", text) for text in texts]
    )
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-2)  # half precision
    own = read(reader, texts[0])  # the embedder is what it was
    np.testing.assert_allclose(
        own.states, read(Reader(base_directory()), texts[0]).states
    )


def test_layers_as_they_came_read_as_the_embedder(reader):
    below = Reader(base_directory(), left_off=2)
    side = side_of([read(below, "A card costs 12 euros."), read(below, "Yes.")])
    with torch.inference_mode():
        states = tuned(reader, layers=2).read(side).states[0].numpy()
    np.testing.assert_allclose(
        states, read(reader, "A card costs 12 euros.").states, atol=1e-2
    )


@pytest.mark.parametrize("left_off", [0, 2])
def test_sentence_vectors_are_the_embedder_s_own(left_off):
    from sentence_transformers import SentenceTransformer

    texts = ["How much is a card?", "A card costs 12 euros."]
    expected = SentenceTransformer(str(base_directory())).encode(texts)
    reader = Reader(base_directory(), left_off=left_off)
    window = read(reader, texts[1], question=texts[0])
    alone = reader.question(texts[1])
    np.testing.assert_allclose(window.vectors[ASKED], expected[0], atol=2e-3)
    np.testing.assert_allclose(alone.vectors[WHOLE], expected[1], atol=2e-3)
    assert not alone.vectors[ASKED].any()


def test_padding_changes_nothing(reader):
    network = Members([new_network(reader)]).eval()
    asked = reader.question("How much is a card?")
    short = read(reader, "12 euros.")
    long = read(reader, "A card costs 12 euros. " * 8)
    with torch.inference_mode():
        alone = network(side_of([asked]), side_of([short]))
        beside = network(side_of([asked, asked]), side_of([short, long]))
    torch.testing.assert_close(alone[0], beside[0], atol=1e-4, rtol=1e-4)


@given(words=st.integers(1, 600))
def test_windows_cover_all_of_a_text_and_overlap(reader, words):
    windows = reader.windows("Fees", "What is it?", " ".join(["card"] * words))
    assert all(len(ids) == len(parts) <= MAX_WINDOW for ids, parts in windows)
    head = sum(part in (PLACE, QUESTION) for part in windows[0][1])
    bodies = [len(ids) - 2 - head for ids, _ in windows]
    assert sum(bodies) - OVERLAP * (len(bodies) - 1) == words


def test_every_token_is_part_of_place_question_or_text(reader):
    ((_, parts),) = reader.windows("Fees", "What is it?", "12 euros.")
    assert sorted(set(parts)) == [PLACE, QUESTION, TEXT]
    ((_, parts),) = reader.windows("", "", "12 euros.")
    assert set(parts) == {TEXT}


def test_a_long_question_is_cut(reader):
    assert len(reader.question("card " * 500)) == MAX_QUESTION


@pytest.mark.slow
def test_a_fit_tells_apart_what_it_was_shown(reader):
    network = tuned(reader, members=2)
    topics = ["fee", "limit", "address", "refund", "password", "delivery", "branch"]
    entries = {each: read(reader, f"About the {each} of the card.") for each in topics}
    for net in network.members.members:
        assert isinstance(net, Interaction)
        set_weights(net, [*entries.values()])
    examples = [
        Example(
            reader.question(f"What about the {topic}?"),
            (entries[topic],),
            tuple(entries[other] for other in topics if other != topic),
        )
        for topic in topics
    ] * 4
    steps = []
    settings = VerifierSettings(
        batch=7, epochs=15, group=4, left_out=0.0, learning_rate=1e-3
    )
    fit_verifier(network, examples, settings, on_step=lambda *at: steps.append(at))
    assert steps[-1] == (60, 60)
    for example in examples[: len(topics)]:
        shown = [*example.positives, *example.negatives]
        logits = logits_of(network, [(example.question, entry) for entry in shown])
        assert logits.argmax(1).tolist() == [0, 0]


def test_the_upper_layers_are_fitted_by_a_rate_of_their_own(reader):
    below = Reader(base_directory(), left_off=1)
    entries = [read(below, text) for text in ("About fees.", "About limits.")]
    examples = [
        Example(below.question("What about fees?"), (entries[0],), (entries[1],))
    ]

    def moved(rate: float) -> bool:
        network = tuned(reader, layers=1)
        before = [each.detach().clone() for each in network.upper.parameters()]
        settings = VerifierSettings(epochs=2, upper_rate=rate, weight_decay=0.0)
        fit_verifier(network, examples, settings)
        pairs = zip(before, network.upper.parameters(), strict=True)
        return not all(torch.equal(one, other) for one, other in pairs)

    assert moved(1e-3)
    assert not moved(0.0)


def test_a_token_in_every_entry_tells_little(reader):
    network = new_network(reader)
    entries = [read(reader, f"The card has number {at}.") for at in range(20)]
    set_weights(network, entries)
    common, rare = entries[0].ids[2], entries[0].ids[-3]
    assert network.weights[common] < network.weights[rare]


@pytest.mark.slow
def test_chunks_of_like_length_give_the_logits_in_the_callers_order(reader):
    network = tuned(reader)
    asked = reader.question("How much is a card?")
    texts = [" ".join(["A card costs 12 euros."] * (1 + at % 5)) for at in range(60)]
    pairs = [(asked, read(reader, text)) for text in texts]
    with torch.inference_mode():
        together = logits_of(network, pairs)
        one_by_one = torch.cat(
            [
                network(side_of([question]), side_of([entry]))
                for question, entry in pairs
            ],
            1,
        )
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
    entries = [
        Passage("", "", "", "A card costs 12 euros."),
        Passage("Branches", "", "When is it open?", "The branch opens at nine. " * 40),
    ]
    first = verifier.score("How much is a card?", entries)
    assert all(0 <= chance <= 1 for chance in first)
    # What was kept of the entries changes nothing, nor does their order.
    again = verifier.score("How much is a card?", entries[::-1])
    assert again == pytest.approx(first[::-1], abs=1e-5)
    assert verifier.score("How much is a card?", []) == []


def test_log_odds_weigh_the_logit_and_the_nearness_of_text_and_question(
    saved, reader, tmp_path
):
    by = Calibration(
        scale=2.0, logit=0.5, nearness=3.0, none=1.0,
        paired_nearness=0.25, paraphrase=4.0, paired_none=2.0,
    )  # fmt: skip
    text, question = "A card costs 12 euros.", "How much is a card?"
    save_verifier(tmp_path, load_network(saved)[1], card(reader, calibration=by))
    verifier = load_verifier(tmp_path)
    passages = [Passage("Fees", "", question, text), Passage("Fees", "", "", text)]

    (paired,), (alone,) = verifier.measure(question, passages)

    assert paired[2] == pytest.approx(1.0, abs=2e-3)  # its question is the question
    assert 0 < alone[1] < 1
    assert alone[2] == NO_QUESTION
    assert verifier.log_odds(question, passages) == pytest.approx(
        [
            0.5 * paired[0] + 0.25 * paired[1] + 4.0 * paired[2] - 2.0,
            0.5 * alone[0] + 3.0 * alone[1] - 1.0,
        ]
    )
    by_itself = verifier.score(question, passages)[1]
    assert by_itself == pytest.approx(1 / (1 + np.exp(-2.0 * alone[0])))


def test_of_a_long_entry_its_best_part_counts(saved, reader):
    verifier = load_verifier(saved)
    long = " ".join(f"Sentence number {at} about the branch." for at in range(60))
    whole = verifier.score("How much is a card?", [Passage("", "", "", long)])[0]
    asked = reader.question("How much is a card?")
    parts = reader.read(reader.windows("", "", long))
    network = verifier._network
    with torch.inference_mode():
        logits = network(side_of([asked] * len(parts)), side_of(parts))
    assert len(parts) > 1
    assert whole == pytest.approx(float(torch.sigmoid(logits.max())), abs=1e-5)


@pytest.mark.slow
def test_of_several_threads_one_at_a_time_computes(saved):
    verifier = load_verifier(saved)
    inside, together = [], []
    new = uuid4()  # in no file of an earlier run

    def enter(*_):
        inside.append(True)
        together.append(len(inside))

    def ask(number):
        for at in range(10):
            card = f"Card {number} {at} {new}"
            verifier.score(f"How much is {card}?", [Passage("", "", "", f"{card}.")])

    hooks = [
        verifier._reader._below.register_forward_pre_hook(enter),
        verifier._network.register_forward_hook(lambda *_: inside.clear()),
    ]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    for each in hooks:
        each.remove()

    # Question, entry.
    assert together == [1, 2] * 40


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
    with pytest.raises(VerifierFileError, match="train verifier"):
        load_verifier(directory)


def test_a_place_is_title_and_heading():
    assert place_of("Fees", "Cards") == "Fees: Cards"
    assert place_of("", "Cards") == "Cards"
    assert place_of("", "") == ""
