"""Load a model by its name: safetensors only, never its own code."""

import hashlib
import json
import logging
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import torch
from django.conf import settings
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from accounts.loaded_once import LoadedOnce
from accounts.torch_threads import set_torch_threads
from probes import bundled
from probes.adapter.merging import AdapterCard, merge_adapter
from probes.cards import sha256_of
from probes.exceptions import ModelFormatError, ModelLoadError
from probes.language_model.model import WhiteBoxModel
from probes.language_model.tokens import Tokens

logger = logging.getLogger(__name__)

# What is fetched from a hub: neither pickled weights nor code.
_WANTED: Final = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja")
_IDENTITY_FILES: Final = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "chat_template.jinja",
)  # fmt: skip

# The adapter that ships for the bundled model.
SHIPPED: Final = Path(bundled.__file__).parent / "shipped" / "adapter"

_loaded: Final = LoadedOnce[tuple[str, str], WhiteBoxModel]()


def load_model(name: str, *, adapter: str | None = None) -> WhiteBoxModel:
    """Return the model of that name, loaded once per process.

    Args:
        name: "bundled", a directory, or a Hugging Face name, optionally with a
            revision: "organisation/model@revision".
        adapter: As `NESCIO_LANGUAGE_ADAPTER`, which is the default.
    """
    wanted = settings.LANGUAGE_ADAPTER if adapter is None else adapter
    if adapter_directory(name, wanted) is None:
        wanted = "none"  # otherwise one model would be loaded twice
    return _loaded.get((name, wanted), lambda: _load(name, wanted))


def fingerprint_without_adapter(name: str) -> str:
    """Return a model's fingerprint without its adapter, from its files alone."""
    model = _loaded.find((name, "none"))
    return model.fingerprint if model else _read_fingerprint(name)


@cache
def _read_fingerprint(name: str) -> str:
    directory = find_model_directory(name)
    weights = _digests(directory.glob("*.safetensors"))
    dtype = choose_dtype(choose_device(settings.MODEL_DEVICE))
    return _fingerprint(directory, weights, dtype, None)


def load_model_from(
    directory: Path,
    *,
    name: str,
    device: torch.device,
    dtype: torch.dtype,
    adapter: Path | None = None,
) -> WhiteBoxModel:
    network, tokens = load_network(directory, name=name, dtype=dtype)
    card = None
    weights = _digests(sorted(directory.glob("*.safetensors")))
    if adapter is not None:
        card = merge_adapter(network, adapter, base_sha256=_json_sha256(weights))
    network.to(device)  # type: ignore[arg-type]  # a decorator hides the real signature
    return WhiteBoxModel(
        network,
        tokens,
        name=name,
        fingerprint=_fingerprint(directory, weights, dtype, card),
        adapter=card,
        passage_bytes=settings.PASSAGE_CACHE_MIB * 2**20,
    )


def load_network(
    directory: Path, *, name: str, dtype: torch.dtype
) -> tuple[PreTrainedModel, Tokens]:
    """Load a model's weights into the CPU's memory, and its tokenizer."""
    if not any(directory.glob("*.safetensors")):
        raise ModelFormatError(
            f"{name} has no *.safetensors in {directory}. Pickled weights can run code "
            "when they are loaded and are refused; convert them to safetensors first."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False
        )
        network: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=dtype,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelLoadError(
            f"{name} could not be loaded from {directory}: {error}"
        ) from error
    ends = getattr(network.generation_config, "eos_token_id", None)
    tokens = Tokens(tokenizer, [ends] if isinstance(ends, int) else ends or [])
    return network, tokens


def _load(name: str, adapter: str) -> WhiteBoxModel:
    began = time.monotonic()
    set_torch_threads()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    device = choose_device(settings.MODEL_DEVICE)
    model = load_model_from(
        find_model_directory(name),
        name=name,
        device=device,
        dtype=choose_dtype(device),
        adapter=adapter_directory(name, adapter),
    )
    logger.info(
        "Loaded language model %s (%s on %s, fingerprint %s) in %.1f s",
        name, model.dtype, device, model.fingerprint[:12], time.monotonic() - began,
    )  # fmt: skip
    return model


def find_model_directory(name: str) -> Path:
    if name == "bundled":
        return bundled.prepare(settings.PLACES.models)
    if Path(name).is_dir():
        return Path(name)
    repository, _, revision = name.partition("@")
    try:
        return Path(
            snapshot_download(
                repository, revision=revision or None, allow_patterns=list(_WANTED)
            )
        )
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise ModelLoadError(
            f"{name} is neither a directory nor a model that could be fetched: {error} "
            "Set NESCIO_LANGUAGE_MODEL to a directory, a hub name or 'bundled'."
        ) from error


def adapter_directory(name: str, wanted: str) -> Path | None:
    """Return the adapter's directory for `NESCIO_LANGUAGE_ADAPTER`, or None."""
    if wanted == "none" or (wanted == "bundled" and name != "bundled"):
        return None
    return SHIPPED if wanted == "bundled" else Path(wanted)


def weights_sha256(directory: Path) -> str:
    return _json_sha256(_digests(directory.glob("*.safetensors")))


def _fingerprint(
    directory: Path,
    weights: Mapping[str, str],
    dtype: torch.dtype,
    card: AdapterCard | None,
) -> str:
    others = [directory / name for name in _IDENTITY_FILES]
    return _json_sha256(
        {
            "files": {**weights, **_digests(filter(Path.is_file, others))},
            "adapter": card.weights_sha256 if card else None,
            "dtype": str(dtype),
        }
    )


def _digests(files: Iterable[Path]) -> dict[str, str]:
    return {file.name: _digest(file) for file in files}


def _json_sha256(said: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _digest(file: Path) -> str:
    # A hub's cache names large files by their sha256, which saves reading gigabytes.
    blob = file.resolve().name
    if file.is_symlink() and len(blob) == 64:
        return blob
    return sha256_of(file)


def choose_device(wanted: str) -> torch.device:
    """Return the device for `NESCIO_MODEL_DEVICE`; "auto" is CUDA if there is one."""
    if wanted != "auto":
        return torch.device(wanted)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def choose_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype that `NESCIO_MODEL_PRECISION` names.

    "auto" is bfloat16 if the hardware supports it, and float32 otherwise.
    """
    if settings.MODEL_PRECISION != "auto":
        chosen: torch.dtype = getattr(torch, settings.MODEL_PRECISION)
        return chosen
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    if device.type != "cpu":
        return torch.float32
    able = torch.cpu.get_capabilities()
    in_hardware = able.get("avx512_bf16", False) or able.get("amx_bf16", False)
    return torch.bfloat16 if in_hardware else torch.float32
