"""Fitting, saving and merging, on tiny models and against peft itself."""

import json

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file

from probes.adapter.fitting import (
    AdapterSettings,
    Example,
    Step,
    fit_adapter,
    save_adapter,
)
from probes.adapter.merging import (
    CARD,
    CONFIGURATION,
    WEIGHTS,
    AdapterCard,
    merge_adapter,
    read_card,
)
from probes.cards import sha256_of
from probes.exceptions import AdapterFileError, AdapterMismatchError, TooFewLabelsError
from probes.language_model import load_model_from
from probes.language_model.loading import adapter_directory, weights_sha256
from tests.probes import tiny_models

pytestmark = pytest.mark.slow

BASE = "b" * 64
END = 257
# After a prompt that ends with 7 comes 9, after one that ends with 8 nothing.
EXAMPLES = [
    Example((1, 2 + number % 40, 7), (9, END))
    if number % 2
    else Example((1, 2 + number % 40, 3, 8), (END,))
    for number in range(80)
]
QUICK = AdapterSettings(rank=4, scale=8.0, learning_rate=2e-2, batch=16, epochs=6)


def card(**changes):
    values = {
        "base": "tiny", "base_sha256": BASE, "form": "test-1", "data_sha256": "d" * 64,
        "groups": ("Oxygen",), "settings": {"rank": 4}, "metrics": {"examples": 80.0},
    }  # fmt: skip
    return AdapterCard(**values | changes)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """An adapter fitted to a tiny Llama: its files, and the steps of the fitting."""
    directory = tmp_path_factory.mktemp("adapter")
    steps: list[Step] = []
    adapted = fit_adapter(
        tiny_models.network("llama"), EXAMPLES, QUICK, on_step=steps.append
    )
    save_adapter(directory, adapted, card())
    return directory, steps


def likeliest(network, ids):
    with torch.inference_mode():
        return int(network(input_ids=torch.tensor([ids])).logits[0, -1].argmax())


def test_what_was_taught_is_done_after_merging(fitted):
    directory, steps = fitted
    network = tiny_models.network("llama")

    said = merge_adapter(network, directory, base_sha256=BASE)

    assert likeliest(network, [1, 30, 7]) == 9
    assert likeliest(network, [1, 30, 7, 9]) == END
    assert likeliest(network, [1, 31, 3, 8]) == END
    assert said.groups == ("Oxygen",)
    assert [step.number for step in steps] == list(range(1, 31))
    assert all(isinstance(step, Step) and step.total == 30 for step in steps)
    # So small a vocabulary matrix can give no token much.
    assert steps[-1].loss < steps[0].loss - 0.3


def test_the_models_own_weights_stay_as_they_were(fitted):
    before = dict(tiny_models.network("llama").named_parameters())
    network = tiny_models.network("llama")

    adapted = fit_adapter(network, EXAMPLES, AdapterSettings(rank=2, batch=40))

    for name, weight in adapted.get_base_model().named_parameters():
        if "lora" not in name:
            assert torch.equal(weight, before[name.replace(".base_layer", "")])


def test_fitting_is_repeatable_and_leaves_the_random_numbers_alone():
    settings = AdapterSettings(rank=2, batch=40)
    networks = [tiny_models.network("llama") for _ in range(2)]
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)

    first, second = (fit_adapter(network, EXAMPLES, settings) for network in networks)

    assert torch.equal(torch.rand(1), expected)
    others = dict(second.named_parameters())
    assert all(torch.equal(w, others[name]) for name, w in first.named_parameters())


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_merging_equals_pefts(family, tmp_path):
    adapted = fit_adapter(
        tiny_models.network(family), EXAMPLES, AdapterSettings(rank=2, batch=40)
    )
    save_adapter(tmp_path, adapted, card())
    network = tiny_models.network(family)

    merge_adapter(network, tmp_path, base_sha256=BASE)

    reference = PeftModel.from_pretrained(
        tiny_models.network(family), str(tmp_path)
    ).merge_and_unload()
    merged = dict(network.named_parameters())
    changed = 0
    for name, weight in reference.named_parameters():
        torch.testing.assert_close(merged[name], weight, rtol=1e-4, atol=1e-5)
        own = dict(tiny_models.network(family).named_parameters())[name]
        changed += not torch.equal(weight, own)
    assert changed > 6


def test_a_model_is_loaded_with_its_adapter_and_known_by_it(tmp_path, fitted):
    directory = tiny_models.save(tmp_path / "model")
    weights = tmp_path / "adapter"
    adapted = fit_adapter(tiny_models.network("llama"), EXAMPLES, QUICK)
    save_adapter(weights, adapted, card(base_sha256=weights_sha256(directory)))
    cpu, single = torch.device("cpu"), torch.float32

    plain = load_model_from(directory, name="tiny", device=cpu, dtype=single)
    model = load_model_from(
        directory, name="tiny", device=cpu, dtype=single, adapter=weights
    )

    assert plain.adapter is None
    assert model.adapter == read_card(weights)
    assert model.fingerprint != plain.fingerprint
    assert model.generate(model.read([1, 30, 7]), max_tokens=4).ids == (9,)
    assert model.generate(model.read([1, 31, 3, 8]), max_tokens=4).ids == ()


def test_an_adapter_of_another_model_is_refused(fitted):
    with pytest.raises(AdapterMismatchError, match="train adapter"):
        merge_adapter(tiny_models.network("llama"), fitted[0], base_sha256="c" * 64)


DAMAGES = {
    "no card": lambda d: (d / CARD).unlink(),
    "no weights": lambda d: (d / WEIGHTS).unlink(),
    "a list for a card": lambda d: (d / CARD).write_text("[]"),
    "half a card": lambda d: (d / CARD).write_text("{"),
    "cut weights": lambda d: (d / WEIGHTS).write_bytes((d / WEIGHTS).read_bytes()[:-9]),
    "unknown format": lambda d: change(d / CARD, format=9),
    "unknown field": lambda d: change(d / CARD, surprise=1),
    "another kind": lambda d: change(d / CONFIGURATION, use_dora=True),
    "no LoRA": lambda d: change(d / CONFIGURATION, peft_type="IA3"),
    "no rank": lambda d: change(d / CONFIGURATION, r=0),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_refused_with_a_remedy(fitted, tmp_path, damage):
    for file in fitted[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    damage(tmp_path)
    network = tiny_models.network("llama")
    before = {name: w.clone() for name, w in network.named_parameters()}

    with pytest.raises(AdapterFileError, match="NESCIO_LANGUAGE_ADAPTER"):
        merge_adapter(network, tmp_path, base_sha256=BASE)

    assert all(torch.equal(w, before[name]) for name, w in network.named_parameters())


def test_weights_that_are_no_numbers_are_refused(fitted, tmp_path):
    for file in fitted[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(tmp_path / WEIGHTS)
    name = next(iter(tensors))
    tensors[name][0, 0] = torch.nan
    save_file(tensors, tmp_path / WEIGHTS)
    change(tmp_path / CARD, weights_sha256=sha256_of(tmp_path / WEIGHTS))

    with pytest.raises(AdapterFileError, match="changes"):
        merge_adapter(tiny_models.network("llama"), tmp_path, base_sha256=BASE)


def test_no_path_of_the_machine_stands_in_the_files(fitted):
    said = json.loads((fitted[0] / CONFIGURATION).read_text())

    assert said["base_model_name_or_path"] == "tiny"
    assert {file.name for file in fitted[0].iterdir()} == {CARD, CONFIGURATION, WEIGHTS}


def test_too_little_is_not_started_on():
    with pytest.raises(TooFewLabelsError, match="at least 50"):
        fit_adapter(tiny_models.network("llama"), EXAMPLES[:9], AdapterSettings())


def test_the_adapter_that_comes_along_is_for_the_bundled_model_alone(tmp_path):
    assert adapter_directory("organisation/model", "bundled") is None
    assert adapter_directory("bundled", "none") is None
    assert adapter_directory("organisation/model", str(tmp_path)) == tmp_path
    assert adapter_directory("bundled", "bundled") is not None


def change(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
