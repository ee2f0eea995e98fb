"""The client of a model service: embedder and verifier in another process, mostly on a GPU.

`manage.py serve_models` is the other side. What is sent is JSON; what comes back are
named arrays in safetensors' format, which holds numbers and nothing that runs.
"""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

import httpx2
import numpy as np
from django.conf import settings
from safetensors import SafetensorError
from safetensors.numpy import load

from accounts.exceptions import UnavailableError

DEADLINE: Final = "Nescio-Deadline-Seconds"  # header: how long whoever asks still waits
DESCRIPTION: Final = "/v1/models"
_PAUSE_SECONDS: Final = 0.2
_TRIES: Final = 3
_PASSING: Final = frozenset({502, 503, 504})
_lock = threading.Lock()
_clients: dict[tuple[int, str, str], httpx2.Client] = {}
os.register_at_fork(after_in_child=_clients.clear)


class ModelServiceError(UnavailableError):
    """The model service is down, overrun or another version."""

    code = "model_service_unavailable"


def is_used() -> bool:
    return bool(settings.MODEL_SERVICE_URL)


def describe() -> Mapping[str, object]:
    """Return what the service says of its models, as JSON."""
    try:
        found: Mapping[str, object] = _send("GET", DESCRIPTION, None).json()
    except ValueError as error:
        raise _unusable("its description is no JSON") from error
    return found


def compute(path: str, body: Mapping[str, object]) -> Mapping[str, np.ndarray]:
    """Return the arrays that the service makes of a request.

    Raises:
        ModelServiceError: It cannot be reached within the time limit, has too much to do,
            or replies what cannot be read.
    """
    reply = _send("POST", path, body)
    try:
        return load(reply.content)
    except SafetensorError as error:
        raise _unusable("its reply holds no arrays") from error


def rows_of(
    arrays: Mapping[str, np.ndarray], name: str, shape: Sequence[int]
) -> np.ndarray:
    """Return one of the arrays, of this shape, where -1 is any length."""
    found = arrays.get(name)
    if (
        found is None
        or found.ndim != len(shape)
        or any(w not in {-1, g} for w, g in zip(shape, found.shape, strict=True))
    ):
        raise _unusable(f"its reply has no {name} of shape {tuple(shape)}")
    return found


def _send(method: str, path: str, body: Mapping[str, object] | None) -> httpx2.Response:
    """Send once, and again while it is overrun or starting, within one time limit."""
    deadline = time.monotonic() + settings.MODEL_SERVICE_TIMEOUT_SECONDS
    for left in reversed(range(_TRIES)):
        remaining = max(deadline - time.monotonic(), 0.001)
        try:
            reply = _client().request(
                method,
                path,
                json=body,
                timeout=remaining,
                headers={DEADLINE: f"{remaining:.3f}"},
            )
        except httpx2.TimeoutException as error:
            raise _unusable("it took too long") from error
        except httpx2.HTTPError as error:
            if not left or time.monotonic() + _PAUSE_SECONDS >= deadline:
                raise _unusable(f"it cannot be reached ({error})") from error
        else:
            if reply.status_code == httpx2.codes.OK:
                return reply
            is_late = time.monotonic() + _PAUSE_SECONDS >= deadline
            if reply.status_code not in _PASSING or not left or is_late:
                raise _unusable(f"it replied {reply.status_code}: {reply.text[:200]}")
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError  # the last try returns or raises


def _client() -> httpx2.Client:
    """Return this process's client: connections can't be shared with a fork."""
    own = (os.getpid(), settings.MODEL_SERVICE_URL, settings.MODEL_SERVICE_KEY)
    with _lock:
        if own not in _clients:
            _clients[own] = httpx2.Client(
                base_url=settings.MODEL_SERVICE_URL,
                headers={"Authorization": f"Bearer {settings.MODEL_SERVICE_KEY}"},
                trust_env=False,  # an operator's proxy is for what lies outside
            )
        return _clients[own]


def close() -> None:
    """Close the connections of this process."""
    with _lock:
        for client in _clients.values():
            client.close()
        _clients.clear()


def _unusable(why: str) -> ModelServiceError:
    return ModelServiceError(
        f"The model service at {settings.MODEL_SERVICE_URL} cannot be used: {why}. Check "
        "that it runs (manage.py serve_models), NESCIO_MODEL_SERVICE_URL and "
        "NESCIO_MODEL_SERVICE_KEY."
    )
