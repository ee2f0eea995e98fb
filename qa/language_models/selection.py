import threading
from typing import Final

from django.conf import settings

from qa.pipeline.types import LanguageModel

_lock: Final = threading.Lock()
_loaded: dict[tuple[str, str], LanguageModel] = {}


def load_language_model() -> LanguageModel:
    """Return the language model that the settings name, made once per process.

    A set `NESCIO_LANGUAGE_SERVER_URL` takes an OpenAI-compatible server, else the
    white-box model `NESCIO_LANGUAGE_MODEL` is loaded.

    Raises:
        ModelLoadError: The model is not there or cannot be read.
    """
    key = (settings.LANGUAGE_SERVER_URL, settings.LANGUAGE_MODEL)
    with _lock:
        model = _loaded.get(key)
        if model is None:
            model = _loaded[key] = _make(*key)
        return model


def _make(server_url: str, name: str) -> LanguageModel:
    # torch takes 400 MiB and seconds: a process that never asks never imports it.
    from probes.language_model import load_model  # noqa: PLC0415
    from qa.language_models.guided import GuidedLanguageModel  # noqa: PLC0415

    return GuidedLanguageModel(load_model(name))
