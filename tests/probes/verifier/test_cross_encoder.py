"""The cross-encoder: question and entry as one text, fitted, kept and asked."""

import pytest
import torch

from probes.verifier.cross_encoder import CrossEncoder, joint_logits
from probes.verifier.fitting import Example, VerifierSettings, fit_cross_encoder
from probes.verifier.network import Interaction, Members, Tuned
from probes.verifier.reading import Reader, Tokens, base_directory, upper_layers
from probes.verifier.scoring import VerifierCard, load_verifier, save_verifier
from qa.pipeline.choice import Passage

# The same words in another order: what was read of each text alone tells little.
QUESTION = "Who lent money to Anna?"
YES, NO = "Ben lent money to Anna.", "Anna lent money to Ben."


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(base_directory())


@pytest.fixture(scope="module")
def fitted(reader) -> CrossEncoder:
    network = new()
    names = ["Anna", "Ben", "Cleo", "Dan", "Eve", "Finn"]
    examples = []
    for one in names:
        for other in names:
            if one != other:
                asked = reader.question(f"Who lent money to {one}?")
                yes = read(reader, f"{other} lent money to {one}.")
                no = read(reader, f"{one} lent money to {other}.")
                examples.append(Example(asked, (yes,), (no,)))
    settings = VerifierSettings(
        group=2, batch=6, epochs=3, learning_rate=1e-3, left_out=0.0
    )
    steps: list[tuple[int, int]] = []
    fit_cross_encoder(
        network, reader, examples, settings, on_step=lambda *at: steps.append(at)
    )
    assert steps[-1] == (15, 15)
    return network


def new() -> CrossEncoder:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return CrossEncoder.of(base_directory()).eval()


def read(reader: Reader, text: str, question: str = "", place: str = "") -> Tokens:
    return reader.read(reader.windows(place, question, text))[0]


def test_both_are_one_text_with_bars_after_place_and_question(reader):
    window = read(reader, "It is 9 euros.", question="How much?", place="Fees: Cards")
    ids, kinds = reader.joined(reader.question("What is the fee?"), window)
    text = reader._tokenizer.decode(ids)
    assert text == (
        "[CLS] what is the fee? [SEP] fees : cards | how much? | it is 9 euros. [SEP]"
    )
    assert kinds.tolist() == [0] * 7 + [1] * (len(ids) - 7)


def test_a_pair_reads_the_same_beside_others(reader):
    network = new()
    pairs = [
        (reader.question(QUESTION), read(reader, text))
        for text in (YES, NO, "Fees. " * 30)
    ]
    with torch.inference_mode():
        every = joint_logits(network, reader, pairs)
        alone = [float(joint_logits(network, reader, [pair])) for pair in pairs]
    assert every.tolist() == pytest.approx(alone, abs=1e-3)


def test_it_learns_who_did_what_to_whom(reader, fitted):
    pairs = [(reader.question(QUESTION), read(reader, text)) for text in (YES, NO)]
    with torch.inference_mode():
        yes, no = joint_logits(fitted, reader, pairs).tolist()
    assert yes > no + 1


def test_it_is_kept_beside_the_nets_and_asked_by_the_verifier(reader, fitted, tmp_path):
    nets = Members([Interaction(reader.width, reader.vocabulary)])
    card = VerifierCard(
        base_sha256=reader.sha256, members=1, tuned=0, data_sha256="d" * 64, sources={},
        settings={}, has_cross_encoder=True,
    )  # fmt: skip
    save_verifier(
        tmp_path, Tuned(upper_layers(base_directory(), 0), nets, fitted), card
    )
    passages = [Passage("", "", "", text) for text in (YES, NO)]
    verifier = load_verifier(tmp_path)
    found = verifier.measure_jointly(QUESTION, passages)
    pairs = [(reader.question(QUESTION), read(reader, text)) for text in (YES, NO)]
    with torch.inference_mode():
        expected = joint_logits(fitted, reader, pairs).tolist()
    # Four bits a weight, and half as many in use where the processor has them.
    assert found[:, 0].tolist() == pytest.approx(expected, abs=0.3)
    by = verifier.card.calibration
    assert verifier.joint_log_odds(QUESTION, passages) == pytest.approx(
        (by.joint * found[:, 0] + by.nearness * found[:, 1] - by.none).tolist()
    )


def test_of_a_long_entry_the_window_that_seems_likeliest_is_read(reader):
    verifier = load_verifier()
    filler = "The branch is open on weekdays from nine to five. " * 30
    answer = "A replacement card costs 12 euros."
    question = "How much is a replacement card?"
    entries = [Passage("", "", "", text) for text in (answer, filler + answer, filler)]
    short, long, other = verifier.measure_jointly(question, entries)[:, 0]
    assert short > other
    assert long > other


def test_a_verifier_without_one_reads_apart_only(reader, tmp_path):
    nets = Members([Interaction(reader.width, reader.vocabulary)])
    card = VerifierCard(
        base_sha256=reader.sha256, members=1, tuned=0, data_sha256="d" * 64, sources={},
        settings={},
    )  # fmt: skip
    save_verifier(tmp_path, Tuned(upper_layers(base_directory(), 0), nets), card)
    verifier = load_verifier(tmp_path)
    assert verifier.joint_log_odds(QUESTION, [Passage("", "", "", YES)]) == []
