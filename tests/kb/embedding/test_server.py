"""Vectors of a server: the same knowledge, another machine, and all that may go wrong."""

import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.embedding import switch
from kb.embedding.embedder import get_embedder, load_bundled, load_embedder
from kb.embedding.services import active_model
from kb.exceptions import EmbedderUnavailableError
from kb.models import EmbeddingModel, EntryEmbedding
from kb.search import embed_question, search
from kb.types import Scope
from tests.factories import make_audience, make_entries, make_knowledge_base

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
NAME = "server:cards"
TEXTS = ["How much is a card?", "The Gold card costs 72 euros a year."]
Reply = Callable[[list[list[float]]], object]


def as_published(vectors: list[list[float]]) -> object:
    rows = [{"index": at, "embedding": each} for at, each in enumerate(vectors)]
    return {"object": "list", "model": "cards", "data": rows[::-1]}


@dataclass
class Place:
    """A server of the bundled model, not normalized and a little off each time."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    status: int = 200
    order: Sequence[int] = range(384)  # another one makes another model
    reply: Reply = as_published

    def answer(self, body: dict[str, Any], key: str) -> tuple[int, bytes]:
        self.asked.append(body)
        self.keys.append(key)
        made = load_bundled().encode(body["input"])[:, list(self.order)]
        noise = np.random.default_rng(len(self.asked)).standard_normal(made.shape)
        said = self.reply((3 * (made + 1e-4 * noise)).tolist())
        text = said if isinstance(said, str) else json.dumps(said)
        return self.status, text.encode()


@pytest.fixture
def place(settings) -> Iterator[Place]:
    found = Place()
    load_bundled()  # what loads one embedder would wait for itself

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, text = found.answer(body, self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.EMBEDDING_SERVER_URL = f"http://127.0.0.1:{server.server_port}/v1"
    settings.EMBEDDING_SERVER_KEY = "sk-cards"
    settings.EMBEDDING_MODEL = NAME
    load_embedder(NAME, reload=True)
    found.asked.clear()
    yield found
    server.shutdown()
    server.server_close()


def test_vectors_are_the_models_and_of_unit_length(place, settings):
    settings.EMBEDDING_QUESTION_PROMPT, settings.EMBEDDING_ENTRY_PROMPT = (
        "ask: ",
        "say: ",
    )
    embedder = load_embedder(NAME)

    vectors = embedder.encode([*TEXTS * 20])

    assert vectors.shape == (40, embedder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    expected = load_bundled().encode([f"say: {text}" for text in TEXTS])
    assert np.allclose(vectors[:2], expected, atol=1e-3)
    assert [len(body["input"]) for body in place.asked] == [32, 8]
    embedder.encode_question(TEXTS[0])
    assert place.asked[-1]["input"] == [f"ask: {TEXTS[0]}"]
    assert place.asked[-1]["model"] == "cards"
    assert set(place.keys) == {"Bearer sk-cards"}
    assert embedder.encode([]).shape == (0, 384)


def test_knowledge_moves_to_a_server_and_is_found_by_every_process(place):
    make_entries([f"Fee number {at} is {at} euros." for at in range(40)])
    EmbeddingModel.objects.update(name="bundled")
    job = enqueue(switch.KIND, {"name": NAME})

    run_job(job.pk, {switch.KIND: switch.embed_and_switch})

    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.SUCCEEDED, "")
    model = active_model()
    assert (model.name, model.dimensions) == (NAME, 384)
    assert EntryEmbedding.objects.filter(model=model).count() >= 40
    # Another process makes the sample again, with other noise.
    assert load_embedder(NAME, reload=True).fingerprint == model.fingerprint
    scope = Scope(make_knowledge_base().pk, (make_audience().pk,), 0.5, timezone.now())
    (hit,) = search(
        embed_question("Fee number 7 is 7 euros."), "", scope=scope, top_k=1
    ).hits
    assert hit.text == "Fee number 7 is 7 euros."
    assert hit.distance < 0.01


def test_a_server_that_has_another_model_by_now_is_not_believed(place):
    model = active_model()
    assert model.name == NAME

    place.order = range(383, -1, -1)

    changed = load_embedder(NAME, reload=True)
    assert changed.fingerprint != model.fingerprint
    with pytest.raises(EmbedderUnavailableError, match=f"switch_embedder {NAME}"):
        get_embedder(EmbeddingModel(name=NAME, fingerprint="0" * 64))


@pytest.mark.parametrize(
    ("status", "reply", "said"),
    [
        pytest.param(401, as_published, "Check NESCIO_EMBEDDING_SERVER_URL", id="key"),
        pytest.param(404, as_published, "'cards'", id="model"),
        pytest.param(200, lambda _: "text", "sent no vectors", id="no JSON"),
        pytest.param(200, lambda _: {"is": 1}, "sent no vectors", id="another reply"),
        pytest.param(200, lambda v: as_published(v[:-1]), "0 vectors", id="too few"),
        pytest.param(
            200,
            lambda v: as_published([[0.0] * 384 for _ in v]),
            "zero or not finite",
            id="zero",
        ),
        pytest.param(
            200,
            lambda v: as_published([[math.nan] * 384 for _ in v]),
            "zero or not finite",
            id="nan",
        ),
    ],
)
def test_what_is_no_vector_is_refused_with_what_to_check(place, status, reply, said):
    embedder = load_embedder(NAME)
    place.status, place.reply = status, reply

    with pytest.raises(EmbedderUnavailableError, match=said):
        embedder.encode_question(TEXTS[0])


def test_without_a_server_the_remedy_is_named(settings):
    settings.EMBEDDING_SERVER_URL = ""

    with pytest.raises(EmbedderUnavailableError, match="NESCIO_EMBEDDING_SERVER_URL"):
        load_embedder("server:another", reload=True)


def test_a_server_that_is_down_is_told_as_unavailable(place, settings):
    settings.EMBEDDING_SERVER_URL = "http://127.0.0.1:9/v1"

    with pytest.raises(EmbedderUnavailableError, match="Connection error"):
        load_embedder(NAME, reload=True)
