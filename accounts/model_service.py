"""The client of the model service: embedder and verifier in a process of their own.

`manage.py serve_models` is the server. Requests are JSON; replies are named arrays in
the safetensors format, which holds only numbers and no code. Each request carries the
fingerprint of the model that is to answer it.
"""

import logging
import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx2
import numpy as np
from django.conf import settings
from safetensors import SafetensorError
from safetensors.numpy import load

from accounts.exceptions import UnavailableError

logger = logging.getLogger(__name__)

DEADLINE: Final = "Nescio-Deadline-Seconds"  # header: seconds until the client gives up
MODEL: Final = "Nescio-Model"  # header: the fingerprint of the model to use
DESCRIPTION: Final = "/v1/models"
_PAUSE_SECONDS: Final = (0.05, 2.0)  # the first, and the longest
_PASSING: Final = frozenset({502, 503, 504})


class ModelServiceError(UnavailableError):
    """The model service is down, overloaded or of another version; see the log."""

    code = "model_service_unavailable"

    def __init__(self, why: str) -> None:
        super().__init__(
            "The model service cannot be used now. Try again later. Operators: the log "
            "says why."
        )
        logger.error(
            "The model service at %s cannot be used: %s. Check that it runs (manage.py "
            "serve_models), NESCIO_MODEL_SERVICE_URL and NESCIO_MODEL_SERVICE_KEY.",
            settings.MODEL_SERVICE_URL,
            why,
        )
        self.why = why


class ModelChangedError(ModelServiceError):
    """The service now has a different model than when it was first asked."""


def describe() -> Mapping[str, Any]:
    """Return the service's description of its models, as parsed JSON."""
    try:
        found = _send("GET", DESCRIPTION).json()
    except ValueError as error:
        raise ModelServiceError("its description is not JSON") from error
    if not isinstance(found, dict):
        raise ModelServiceError("its description is not a JSON object")
    return found


def compute(
    path: str, body: Mapping[str, object], *, model: str
) -> Mapping[str, np.ndarray]:
    """Return the arrays that the service computes for a request.

    Args:
        model: The fingerprint of the model that is to compute them.

    Raises:
        ModelChangedError: The service has another model by now.
        ModelServiceError: The service cannot be reached within the time limit, is
            overloaded, or sends an unreadable reply.
    """
    reply = _send("POST", path, body, model)
    try:
        return load(reply.content)
    except SafetensorError as error:
        raise ModelServiceError("its reply holds no arrays") from error


def rows_of(
    arrays: Mapping[str, np.ndarray], name: str, shape: Sequence[int]
) -> np.ndarray:
    """Return one of the arrays, checked to be finite and of this shape (-1: any)."""
    found = arrays.get(name)
    if (
        found is None
        or found.ndim != len(shape)
        or any(w not in {-1, g} for w, g in zip(shape, found.shape, strict=True))
        or not np.isfinite(found).all()
    ):
        raise ModelServiceError(f"its reply has no {name} of shape {tuple(shape)}")
    return found


def _send(
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    model: str = "",
) -> httpx2.Response:
    """Send a request; retry within the time limit while the service is overloaded."""
    deadline = time.monotonic() + settings.MODEL_SERVICE_TIMEOUT_SECONDS
    pause, longest = _PAUSE_SECONDS
    while True:
        remaining = max(deadline - time.monotonic(), 0.001)
        try:
            reply = _client().request(
                method,
                path,
                json=body,
                timeout=remaining,
                headers={DEADLINE: f"{remaining:.3f}", MODEL: model},
            )
        except httpx2.TimeoutException as error:
            raise ModelServiceError("it took too long") from error
        except httpx2.HTTPError as error:
            why = f"it cannot be reached ({error})"
        else:
            if reply.status_code == httpx2.codes.OK:
                return reply
            why = f"it replied {reply.status_code}: {reply.text[:200]}"
            if reply.status_code == httpx2.codes.CONFLICT:
                raise ModelChangedError(why)
            if reply.status_code not in _PASSING:
                raise ModelServiceError(why)
        # Random, so that clients that were refused together do not retry together.
        wait = pause * random.uniform(0.5, 1.5)  # noqa: S311  # no secret
        if time.monotonic() + wait >= deadline:
            raise ModelServiceError(why)
        time.sleep(wait)
        pause = min(2 * pause, longest)


_lock = threading.Lock()
_clients: dict[tuple[str, str], httpx2.Client] = {}


def _client() -> httpx2.Client:
    own = (settings.MODEL_SERVICE_URL, settings.MODEL_SERVICE_KEY)
    with _lock:
        if own not in _clients:
            url, key = own
            _clients[own] = httpx2.Client(
                base_url=url,
                headers={"Authorization": f"Bearer {key}"} if key else {},
                trust_env=False,  # a proxy is for connections to the outside
            )
        return _clients[own]


def close() -> None:
    """Close the connections of this process."""
    with _lock:
        for client in _clients.values():
            client.close()
        _clients.clear()


def _begin_anew() -> None:
    global _lock, _clients  # another thread may have held the lock during the fork
    _lock, _clients = threading.Lock(), {}


os.register_at_fork(after_in_child=_begin_anew)  # connections can't be shared
