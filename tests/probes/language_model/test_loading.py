import threading

import pytest
import torch

from probes.exceptions import ModelFormatError, ModelLoadError
from probes.language_model import load_model, load_model_from
from probes.language_model.loading import choose_device, choose_dtype
from tests.probes import tiny_models

CPU = torch.device("cpu")


def load(directory, dtype=torch.float32):
    return load_model_from(directory, name="tiny", device=CPU, dtype=dtype)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_model_of_any_family_is_loaded_from_its_directory(family, tmp_path):
    model = load(tiny_models.save(tmp_path, family=family))

    tokens = model.tokens
    written = model.generate(model.read(tokens.encode_text("hello")), max_tokens=3)
    assert len(written.ids) <= 3
    assert model.dtype is torch.float32


def test_pickled_weights_are_refused(tmp_path):
    directory = tiny_models.save(tmp_path, safetensors=False)

    with pytest.raises(ModelFormatError, match="convert them to safetensors"):
        load(directory)


def test_a_model_that_wants_its_own_code_is_refused(tmp_path):
    directory = tiny_models.save(tmp_path)
    configuration = directory / "config.json"
    text = configuration.read_text().replace(
        '"model_type": "llama"',
        '"model_type": "own", "auto_map": {"AutoConfig": "own.Own", '
        '"AutoModelForCausalLM": "own.Own"}',
    )
    configuration.write_text(text)
    (directory / "own.py").write_text("raise SystemExit('its code ran')")

    with pytest.raises(ModelLoadError, match="tiny could not be loaded"):
        load(directory)


def test_a_fingerprint_tells_weights_tokenizers_and_dtypes_apart(tmp_path):
    directory = tiny_models.save(tmp_path)
    first = load(directory).fingerprint

    assert load(directory).fingerprint == first
    assert load(directory, torch.bfloat16).fingerprint != first
    template = directory / "chat_template.jinja"
    template.write_text(template.read_text() + " ")
    second = load(directory).fingerprint
    weights = directory / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert len({first, second, load(directory).fingerprint}) == 3
    assert len(first) == 64


def test_a_name_that_leads_nowhere_says_what_to_set(tmp_path):
    with pytest.raises(ModelLoadError, match="NESCIO_LANGUAGE_MODEL"):
        load_model(str(tmp_path / "missing"))


def test_threads_that_load_at_once_get_one_model(tmp_path):
    name = str(tiny_models.save(tmp_path))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(load_model(name)))
        for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(map(id, found))) == 1


def test_the_dtype_follows_what_the_processor_computes_in(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    assert choose_dtype(CPU) is torch.bfloat16
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert choose_dtype(CPU) is torch.float32
    assert choose_device("cpu") == CPU


def test_a_named_precision_is_taken_whatever_the_processor_has(monkeypatch, settings):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    settings.MODEL_PRECISION = "bfloat16"
    assert choose_dtype(CPU) is torch.bfloat16
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    settings.MODEL_PRECISION = "float32"
    assert choose_dtype(CPU) is torch.float32


def test_the_bundled_models_prefix_cache_holds_to_its_dtype(bundled_model):
    tokens = bundled_model.tokens
    prefix = tokens.encode_text(
        "Note: The fee is 3 euros.\nQuestion: What is it?\n" * 8
    )
    rest = tokens.encode_text("Note: The pool is open.\nQuestion: Is it?")

    cached = bundled_model.read(rest, bundled_model.read_prefix(prefix))

    whole = bundled_model.read(prefix + rest)
    near = torch.allclose(
        cached.next_log_probabilities.exp(),
        whole.next_log_probabilities.exp(),
        atol=0.02,
    )
    assert near
    best = cached.next_log_probabilities.argmax()
    assert best == whole.next_log_probabilities.argmax()
