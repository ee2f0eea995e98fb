"""The cross-encoder: question and entry as one text, fitted, kept and asked.

The bundled embedder stands in for the larger encoder: any Hugging Face encoder will do.
"""

import pytest
import torch

from probes.exceptions import VerifierFileError
from probes.verifier.card import VerifierCard, base_directory, read_card
from probes.verifier.cross_encoder import CrossEncoder
from probes.verifier.fitting import Example, VerifierSettings, fit_cross_encoder
from probes.verifier.late_interaction import LateInteraction
from probes.verifier.network import Interaction, Members, Tuned
from probes.verifier.reading import Reader, Tokens, upper_layers
from probes.verifier.scoring import load_verifier, save_verifier
from qa.pipeline.weighing import Passage

pytestmark = pytest.mark.slow

# The same words in another order: what was read of each text alone tells little.
QUESTION = "Who lent money to Anna?"
YES, NO = "Ben lent money to Anna.", "Anna lent money to Ben."


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(base_directory())


@pytest.fixture(scope="module")
def fitted(reader) -> CrossEncoder:
    network = new(reader)
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
        group=2, batch=6, epochs=6, learning_rate=2e-3, upper_rate=2e-3, left_out=0.0
    )
    steps: list[tuple[int, int]] = []
    fit_cross_encoder(network, examples, settings, on_step=lambda *at: steps.append(at))
    assert steps[-1] == (30, 30)
    return network


def new(reader: Reader, kept: dict[str, torch.Tensor] | None = None) -> CrossEncoder:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return CrossEncoder.to_fit(base_directory(), reader, kept).eval()


def logits(network: CrossEncoder, pairs: list[tuple[Tokens, Tokens]]) -> list[float]:
    with torch.inference_mode():
        found: list[float] = network.logits(pairs).tolist()
    return found


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


def test_a_pair_is_text_again_for_a_model_with_a_vocabulary_of_its_own(reader):
    window = read(reader, "It is 9 euros.", question="How much?", place="Fees: Cards")
    assert reader.text_of(reader.question("What is the fee?"), window) == (
        "what is the fee?",
        "fees : cards | how much? | it is 9 euros.",
    )


def test_a_pair_reads_the_same_beside_others(reader):
    network = new(reader)
    pairs = [
        (reader.question(QUESTION), read(reader, text))
        for text in (YES, NO, "Fees. " * 30)
    ]
    alone = [logits(network, [pair])[0] for pair in pairs]
    assert logits(network, pairs) == pytest.approx(alone, abs=1e-3)


def test_it_learns_who_did_what_to_whom(reader, fitted):
    pairs = [(reader.question(QUESTION), read(reader, text)) for text in (YES, NO)]
    yes, no = logits(fitted, pairs)
    assert yes > no + 1


def test_only_low_rank_changes_and_the_head_are_fitted_and_kept(reader, fitted):
    kept = fitted.kept()
    assert all("lora_" in name or name.startswith("head.") for name in kept)
    plain = new(reader)
    before, after = plain.encoder.state_dict(), fitted.encoder.state_dict()
    assert all(
        torch.equal(after[name], each)
        for name, each in before.items()
        if "lora_" not in name
    )
    # Fitted further it begins where it ended.
    pairs = [(reader.question(QUESTION), read(reader, text)) for text in (YES, NO)]
    again = logits(new(reader, kept), pairs)
    assert again == pytest.approx(logits(fitted, pairs), abs=1e-4)


def without_layers(reader: Reader, nets: Members) -> Tuned:
    return Tuned(upper_layers(base_directory(), 0), nets, LateInteraction(reader.width))


@pytest.fixture
def beside_the_nets(reader, fitted, tmp_path, settings):
    settings.VERIFIER_ENCODER = str(base_directory())
    nets = Members([Interaction(reader.width, reader.vocabulary)])
    card = VerifierCard(
        base_sha256=reader.sha256, members=1, tuned=0, data_sha256="d" * 64, sources={},
        settings={}, encoder_sha256=reader.sha256,
    )  # fmt: skip
    network = without_layers(reader, nets)
    save_verifier(tmp_path, network, card, fitted.kept())
    return tmp_path


def test_it_is_kept_beside_the_nets_and_asked_by_the_verifier(
    reader, fitted, beside_the_nets
):
    passages = [Passage("", "", "", text) for text in (YES, NO)]
    verifier = load_verifier(beside_the_nets)
    found = verifier.measure_jointly(QUESTION, passages)
    pairs = [(reader.question(QUESTION), read(reader, text)) for text in (YES, NO)]
    # Half as many bits are kept, and in use where the processor has them.
    assert found[:, 0].tolist() == pytest.approx(logits(fitted, pairs), abs=0.3)
    by = verifier.card.calibration
    assert verifier.joint_log_odds(QUESTION, passages) == pytest.approx(
        (by.joint * found[:, 0] + by.nearness * found[:, 1] - by.none).tolist()
    )


def test_other_nets_leave_what_reads_its_states_valid(reader, fitted, beside_the_nets):
    before = read_card(beside_the_nets)
    nets = Members([Interaction(reader.width, reader.vocabulary)])
    save_verifier(beside_the_nets, without_layers(reader, nets), before, fitted.kept())
    after = read_card(beside_the_nets)
    assert after.fingerprint != before.fingerprint
    assert after.tokens_fingerprint == before.tokens_fingerprint
    assert after.cross_fingerprint == before.cross_fingerprint

    changed = {name: value + 1 for name, value in fitted.kept().items()}
    save_verifier(beside_the_nets, without_layers(reader, nets), after, changed)
    assert read_card(beside_the_nets).cross_fingerprint != before.cross_fingerprint


def test_in_use_a_pair_is_read_once(beside_the_nets):
    network = load_verifier(beside_the_nets)._cross
    assert network
    read: list[object] = []
    network.encoder.register_forward_hook(lambda *at: read.append(at[1]))
    passages = [Passage("", "", "", text) for text in (YES, "Nobody lent anything.")]
    asked = "Did Ben lend money?"
    for count in (1, 2, 2):
        load_verifier(beside_the_nets).measure_jointly(asked, passages[:count])
        assert len(read) == count


def test_while_it_is_fitted_a_pair_is_read_again(reader):
    network = new(reader)
    pairs = [(reader.question(QUESTION), read(reader, YES))]
    before = logits(network, pairs)
    with torch.no_grad():
        network.head.state_dict()["2.bias"] += 1.0
    assert logits(network, pairs) == pytest.approx([each + 1.0 for each in before])


def test_another_encoder_than_it_was_fitted_on_is_refused(
    beside_the_nets, tmp_path_factory, settings
):
    other = tmp_path_factory.mktemp("other")
    for file in base_directory().iterdir():
        if file.is_file():
            (other / file.name).write_bytes(file.read_bytes())
    with (other / "model.safetensors").open("ab") as stream:
        stream.write(b" ")
    settings.VERIFIER_ENCODER = str(other)
    with pytest.raises(VerifierFileError, match="fitted on the encoder"):
        load_verifier(beside_the_nets)


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
    save_verifier(tmp_path, without_layers(reader, nets), card)
    verifier = load_verifier(tmp_path)
    assert not verifier.reads_jointly
    assert verifier.joint_log_odds(QUESTION, [Passage("", "", "", YES)]) == []
