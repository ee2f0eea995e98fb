"""The model service: embedder and verifier for many web servers and workers.

`manage.py serve_models` runs it: one process holds the models, on a GPU if there is
one; web servers and workers whose NESCIO_MODEL_SERVICE_URL names it load neither.
Concurrent questions are computed in batches. Beyond `NESCIO_MODEL_SERVICE_QUEUE`
requests, further ones get a 503; requests whose client no longer waits are not
computed.
"""

import hmac
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

import numpy as np
import prometheus_client
from pydantic import BaseModel, Field, ValidationError
from safetensors.numpy import save

from accounts.batches import Batches, OverdueError
from accounts.exceptions import error_envelope
from accounts.model_service import DEADLINE, DESCRIPTION, MODEL
from kb.embedding.embedder import LocalEmbedder
from kb.embedding.remote import EMBED, MAX_TEXTS, Described
from nescio.web_server import HEALTH_PATHS
from probes.verifier.remote import (
    APART,
    JOINTLY,
    LIKENESS,
    MAX_ENTRIES,
    MAX_PAIRS,
    READING,
    TOGETHER,
)
from probes.verifier.scoring import Asked, Verifier
from qa.pipeline.weighing import Passage

logger = logging.getLogger(__name__)

_MAX_FAILURES: Final = 3  # in a row; then the service reports itself as unhealthy
_WAITS_SECONDS: Final = 60.0  # for a client that states no deadline
_DEADLINE, _MODEL = (f"HTTP_{h.upper().replace('-', '_')}" for h in (DEADLINE, MODEL))
_ARRAYS: Final = "application/octet-stream"
_JSON: Final = "application/json"
_SECONDS: Final = prometheus_client.Histogram(
    "nescio_model_service_seconds", "Seconds of a request to the model service.",
    ["path", "status"],
    buckets=(0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.3, 2.6, 5.1, 10),
)  # fmt: skip
_BATCH: Final = prometheus_client.Histogram(
    "nescio_model_service_batch", "Questions that were computed together.", ["path"],
    buckets=(1, 2, 4, 8, 16, 32),
)  # fmt: skip

Arrays = Mapping[str, np.ndarray]
Item = TypeVar("Item")
Result = TypeVar("Result")
# Entries have at most 8,000 characters, plus headings.
Text = Annotated[str, Field(max_length=20_000)]


class EmbedRequest(BaseModel):
    texts: Annotated[list[Text], Field(max_length=MAX_TEXTS)]
    are_questions: bool = False


class ReadRequest(BaseModel):
    """Entries are (title, section, question, text)."""

    question: Text
    entries: Annotated[
        list[tuple[Text, Text, Text, Text]], Field(max_length=MAX_ENTRIES)
    ]

    @property
    def asked(self) -> Asked:
        return self.question, [Passage(*each) for each in self.entries]


class PairsRequest(BaseModel):
    texts: Annotated[list[tuple[Text, Text]], Field(max_length=MAX_PAIRS)]


class _RefusedError(Exception):
    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True)
class _Route:
    """The computation of a path: from a request and a monotonic deadline to arrays."""

    model: str  # its fingerprint
    reads: type[BaseModel]
    compute: Callable[[Any, float], Arrays]


class ModelService:
    """The WSGI application."""

    def __init__(
        self,
        embedder: LocalEmbedder,
        verifier: Verifier | None,
        *,
        key: str,
        queue: int,
        batch: int,
    ) -> None:
        """Serve these models to clients that have the key, or to all if it is empty.

        Args:
            queue: The maximum number of requests that are computed or wait.
            batch: The maximum number of questions that are computed together.
        """
        self._embedder, self._verifier, self._key = embedder, verifier, key
        self._places = threading.BoundedSemaphore(queue)
        self._failures = 0

        def together(
            path: str, run: Callable[[Sequence[Item]], Sequence[Result]]
        ) -> Batches[Item, Result]:
            def counted(items: Sequence[Item]) -> Sequence[Result]:
                _BATCH.labels(path).observe(len(items))
                return run(items)

            return Batches(counted, most=batch)

        own = embedder.fingerprint
        questions: Batches[str, np.ndarray] = together(
            EMBED, lambda texts: [*embedder.encode_questions(texts)]
        )
        embed = partial(_embed, embedder, questions)
        self._routes = {EMBED: _Route(own, EmbedRequest, embed)}
        if verifier is not None:
            own = verifier.fingerprint
            apart = partial(_read_apart, together(APART, verifier.measure_all))
            jointly = partial(
                _read_jointly, together(JOINTLY, verifier.measure_all_jointly)
            )
            alike = partial(_read_likeness, together(LIKENESS, verifier.all_likenesses))
            pairs = partial(_read_together, verifier)
            self._routes[APART] = _Route(own, ReadRequest, apart)
            self._routes[JOINTLY] = _Route(own, ReadRequest, jointly)
            self._routes[LIKENESS] = _Route(own, ReadRequest, alike)
            self._routes[TOGETHER] = _Route(own, PairsRequest, pairs)

    def __call__(
        self, environ: Mapping[str, Any], start_response: Callable[..., object]
    ) -> Iterable[bytes]:
        began, path = time.monotonic(), str(environ["PATH_INFO"])
        status, kind = HTTPStatus.OK, _JSON
        try:
            kind, body = self._reply(environ, path, began)
        except _RefusedError as error:
            status, body = error.status, _error(error.code, str(error))
        except OverdueError as error:
            status, body = HTTPStatus.GATEWAY_TIMEOUT, _error("overdue", str(error))
        if path in self._routes:
            _SECONDS.labels(path, status).observe(time.monotonic() - began)
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            headers.append(("Retry-After", "1"))
        start_response(f"{status} {status.phrase}", headers)
        return [body]

    def _reply(
        self, environ: Mapping[str, Any], path: str, began: float
    ) -> tuple[str, bytes]:
        if path in HEALTH_PATHS:
            if self._failures >= _MAX_FAILURES:
                raise _RefusedError(
                    HTTPStatus.SERVICE_UNAVAILABLE, "failing", "The last ones failed."
                )
            return _JSON, b'{"status": "ok"}'
        said = str(environ.get("HTTP_AUTHORIZATION", ""))
        wanted = f"Bearer {self._key}"
        if self._key and not hmac.compare_digest(said.encode(), wanted.encode()):
            raise _RefusedError(
                HTTPStatus.UNAUTHORIZED,
                "invalid_credentials",
                "The key differs from the service's NESCIO_MODEL_SERVICE_KEY.",
            )
        if path == "/metrics":
            kind = prometheus_client.CONTENT_TYPE_LATEST
            return kind, prometheus_client.generate_latest()
        if path == DESCRIPTION:
            return _JSON, json.dumps(self.describe()).encode()
        route = self._routes.get(path)
        if route is None:
            raise _RefusedError(
                HTTPStatus.NOT_FOUND, "not_found", f"The model service has no {path}."
            )
        if environ.get(_MODEL, "") != route.model:
            raise _RefusedError(
                HTTPStatus.CONFLICT,
                "another_model",
                f"The model here is {route.model[:12]}; see {DESCRIPTION}.",
            )
        if not self._places.acquire(blocking=False):
            raise _RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "busy",
                "Too many requests wait. Ask again in a second.",
            )
        try:
            return _ARRAYS, self._computed(route, environ, began)
        finally:
            self._places.release()

    def _computed(
        self, route: _Route, environ: Mapping[str, Any], began: float
    ) -> bytes:
        waits = environ.get(_DEADLINE, "")
        try:
            request = route.reads.model_validate_json(environ["wsgi.input"].read())
            deadline = began + (float(waits) if waits else _WAITS_SECONDS)
        except ValidationError as error:
            wrong = error.errors(include_input=False, include_url=False)
            raise _RefusedError(
                HTTPStatus.BAD_REQUEST, "invalid", json.dumps(wrong, default=str)
            ) from error
        except ValueError as error:
            raise _RefusedError(
                HTTPStatus.BAD_REQUEST,
                "invalid",
                f"{DEADLINE} is not a number: {waits!r}.",
            ) from error
        try:
            arrays = route.compute(request, deadline)
        except OverdueError:
            raise
        except Exception as error:  # from any library: the next request may succeed
            self._failures += 1
            logger.exception("A request could not be computed.")
            raise _RefusedError(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "failed",
                "It failed; the log says why.",
            ) from error
        self._failures = 0
        return save({name: np.ascontiguousarray(v) for name, v in arrays.items()})

    def describe(self) -> Mapping[str, object]:
        """Return the description of the models for clients, ready for JSON."""
        embedder = self._embedder
        own = Described(embedder.name, embedder.fingerprint, embedder.dimensions)
        card = asdict(self._verifier.card) if self._verifier else None
        return {"embedder": asdict(own), "verifier": card}


def _embed(
    embedder: LocalEmbedder,
    questions: Batches[str, np.ndarray],
    request: EmbedRequest,
    deadline: float,
) -> Arrays:
    if not request.are_questions:  # an import; questions run between its requests
        _check(deadline)
        return {"vectors": embedder.encode(request.texts)}
    vectors = [questions.ask(text, deadline=deadline) for text in request.texts]
    return {"vectors": np.reshape(vectors, (len(vectors), embedder.dimensions))}


def _read_apart(
    apart: Batches[Asked, list[np.ndarray]], request: ReadRequest, deadline: float
) -> Arrays:
    rows = apart.ask(request.asked, deadline=deadline)
    return {
        "readings": np.concatenate([np.empty((0, READING)), *rows]),
        "windows": np.array([len(each) for each in rows], dtype=np.int64),
    }


def _read_jointly(
    jointly: Batches[Asked, np.ndarray], request: ReadRequest, deadline: float
) -> Arrays:
    return {"readings": jointly.ask(request.asked, deadline=deadline)}


def _read_likeness(
    alike: Batches[Asked, np.ndarray], request: ReadRequest, deadline: float
) -> Arrays:
    return {"likeness": alike.ask(request.asked, deadline=deadline)}


def _read_together(
    verifier: Verifier, request: PairsRequest, deadline: float
) -> Arrays:
    _check(deadline)
    return {"states": verifier.read_together(request.texts)}


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise OverdueError("It waited too long.")


def _error(code: str, message: str) -> bytes:
    return json.dumps(error_envelope(code, message)).encode()
