"""The model service: embedder and verifier for many web servers and workers, on one device.

`manage.py serve_models` runs it: one process has the models once, on a GPU where there is one;
web servers and workers whose NESCIO_MODEL_SERVICE_URL names it load neither. Questions that
come together are computed together. Beyond `NESCIO_MODEL_SERVICE_QUEUE` requests one more is
answered 503, and one whose sender no longer waits is not computed.
"""

import hmac
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

import numpy as np
import prometheus_client
from pydantic import BaseModel, Field
from safetensors.numpy import save

from accounts.batches import Batches, OverdueError
from accounts.exceptions import error_envelope
from accounts.model_service import DEADLINE, DESCRIPTION
from kb.embedding.embedder import LocalEmbedder
from kb.embedding.remote import EMBED, Described
from nescio.web_server import HEALTH_PATHS
from probes.verifier.remote import APART, JOINTLY, READING, TOGETHER, WORDS
from probes.verifier.scoring import Asked, Verifier
from qa.pipeline.choice import Passage

_MOST_QUESTIONS: Final = 32  # of one batch
_WAITS_SECONDS: Final = 60.0  # who does not say how long
_DEADLINE: Final = "HTTP_" + DEADLINE.upper().replace("-", "_")
METRICS: Final = "/metrics"
_METRICS: Final = prometheus_client.CONTENT_TYPE_LATEST
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
Text = Annotated[str, Field(max_length=200_000)]


class EmbedRequest(BaseModel):
    texts: Annotated[list[Text], Field(max_length=512)]
    are_questions: bool = False


class ReadRequest(BaseModel):
    """Entries are (title, section, question, text)."""

    question: Text
    entries: Annotated[list[tuple[Text, Text, Text, Text]], Field(max_length=512)]

    @property
    def asked(self) -> Asked:
        return self.question, [Passage(*each) for each in self.entries]


class PairsRequest(BaseModel):
    texts: Annotated[list[tuple[Text, Text]], Field(max_length=256)]


class WordsRequest(BaseModel):
    words: Annotated[list[Text], Field(max_length=512)]


class _RefusedError(Exception):
    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ModelService:
    """The WSGI application."""

    def __init__(
        self,
        embedder: LocalEmbedder,
        verifier: Verifier | None,
        *,
        key: str,
        queue: int,
    ) -> None:
        """Serve these models to whoever has the key; "" is for everybody.

        Args:
            queue: Requests that are computed or wait, at most.
        """
        self._embedder, self._verifier, self._key = embedder, verifier, key
        self._places = threading.BoundedSemaphore(queue)
        questions: _Together[str, np.ndarray] = _Together(
            EMBED, lambda texts: [*embedder.encode_questions(texts)]
        )
        self._routes: dict[str, tuple[type[BaseModel], Callable[..., Arrays]]] = {
            EMBED: (EmbedRequest, partial(_embed, embedder, questions))
        }
        if verifier is not None:
            apart = _Together(APART, verifier.measure_all)
            jointly = _Together(JOINTLY, verifier.measure_all_jointly)
            self._routes |= {
                APART: (ReadRequest, partial(_read_apart, apart)),
                JOINTLY: (ReadRequest, partial(_read_jointly, jointly)),
                TOGETHER: (PairsRequest, partial(_read_together, verifier)),
                WORDS: (WordsRequest, partial(_know_words, verifier)),
            }

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
        except (
            ValueError
        ) as error:  # pydantic's is one, and a deadline that is no number
            status, body = HTTPStatus.BAD_REQUEST, _error("invalid", str(error))
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
            return _JSON, b'{"status": "ok"}'
        said = str(environ.get("HTTP_AUTHORIZATION", ""))
        if not hmac.compare_digest(said.encode(), f"Bearer {self._key}".encode()):
            raise _RefusedError(
                HTTPStatus.UNAUTHORIZED,
                "invalid_credentials",
                "The key is not NESCIO_MODEL_SERVICE_KEY of the service.",
            )
        if path == METRICS:
            return _METRICS, prometheus_client.generate_latest()
        if path == DESCRIPTION:
            return _JSON, json.dumps(self.describe()).encode()
        if path not in self._routes:
            raise _RefusedError(
                HTTPStatus.NOT_FOUND, "not_found", f"The model service has no {path}."
            )
        if not self._places.acquire(blocking=False):
            raise _RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "busy",
                "Too many requests wait. Ask again in a second.",
            )
        try:
            kind, compute = self._routes[path]
            request = kind.model_validate_json(environ["wsgi.input"].read())
            waits = environ.get(_DEADLINE, "")
            deadline = began + (float(waits) if waits else _WAITS_SECONDS)
            arrays = compute(request, deadline)
        finally:
            self._places.release()
        return _ARRAYS, save(
            {name: np.ascontiguousarray(v) for name, v in arrays.items()}
        )

    def describe(self) -> Mapping[str, object]:
        """Return what a client has to know of the models."""
        embedder = self._embedder
        own = Described(embedder.name, embedder.fingerprint, embedder.dimensions)
        card = asdict(self._verifier.card) if self._verifier else None
        return {"embedder": asdict(own), "verifier": card}


class _Together(Batches[Item, Result]):
    """Batches that are counted."""

    def __init__(
        self, path: str, run: Callable[[Sequence[Item]], Sequence[Result]]
    ) -> None:
        def counted(items: Sequence[Item]) -> Sequence[Result]:
            _BATCH.labels(path).observe(len(items))
            return run(items)

        super().__init__(counted, most=_MOST_QUESTIONS)


def _embed(
    embedder: LocalEmbedder,
    questions: "_Together[str, np.ndarray]",
    request: EmbedRequest,
    deadline: float,
) -> Arrays:
    if not request.are_questions:  # an import: between two batches questions come
        return {"vectors": embedder.encode(request.texts)}
    vectors = [questions.ask(text, deadline=deadline) for text in request.texts]
    return {"vectors": np.reshape(vectors, (len(vectors), embedder.dimensions))}


def _read_apart(
    apart: "_Together[Asked, list[np.ndarray]]", request: ReadRequest, deadline: float
) -> Arrays:
    rows = apart.ask(request.asked, deadline=deadline)
    return {
        "readings": np.concatenate([np.empty((0, READING)), *rows]),
        "windows": np.array([len(each) for each in rows], dtype=np.int64),
    }


def _read_jointly(
    jointly: "_Together[Asked, np.ndarray]", request: ReadRequest, deadline: float
) -> Arrays:
    return {"readings": jointly.ask(request.asked, deadline=deadline)}


def _read_together(
    verifier: Verifier, request: PairsRequest, _deadline: float
) -> Arrays:
    return {"states": verifier.read_together(request.texts)}


def _know_words(verifier: Verifier, request: WordsRequest, _deadline: float) -> Arrays:
    known = [verifier.is_word(word) for word in request.words]
    return {"known": np.array(known, dtype=np.uint8)}


def _error(code: str, message: str) -> bytes:
    return json.dumps(error_envelope(code, message)).encode()
