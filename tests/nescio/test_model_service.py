"""The model service over HTTP: what it computes is what a process computes by itself."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import requests
from django.conf import settings as django_settings

from accounts import model_service
from accounts.model_service import DEADLINE, ModelServiceError
from kb.embedding.embedder import load_embedder, load_local
from kb.embedding.remote import EMBED, RemoteEmbedder
from kb.exceptions import EmbedderUnavailableError
from nescio.model_service import ModelService
from nescio.web_server import listen, make_server
from probes.verifier.remote import APART, load_remote_verifier
from probes.verifier.scoring import load_verifier as load_local_verifier
from qa.inference.verifier import load_verifier
from qa.pipeline.choice import Passage, log_odds

from .running import free_port

pytestmark = pytest.mark.verifier

KEY = "only for tests"
QUESTION = "What does a new card cost?"
LONG = " ".join(
    f"Rule {at} says that form {at} is due on day {at}." for at in range(60)
)
PASSAGES = [
    Passage(
        "Cards", "Fees", "", "A lost card costs £8 to replace. Cash abroad costs 2.5%."
    ),
    Passage("", "", "How do I close my account?", "Write to us. It takes 14 days."),
    Passage("Rules", "", "", LONG),
    Passage("Fees", "", "", "Card | Price\n--- | ---\nGold | £20\nBlue | £5"),
]


@pytest.fixture(scope="module")
def models():
    embedder = load_local("bundled")
    return embedder, load_local_verifier(base=lambda: embedder.network)


@pytest.fixture
def serve(settings):
    """Serve an application over HTTP, which the settings then name."""
    ends, threads = [], []

    def begin(application):
        port, end = free_port(), threading.Event()
        server = make_server(application, listen("127.0.0.1", port), threads=8)
        thread = threading.Thread(target=server.serve, args=(end,))
        thread.start()
        ends.append(end)
        threads.append(thread)
        settings.MODEL_SERVICE_URL = f"http://127.0.0.1:{port}"
        settings.MODEL_SERVICE_KEY = KEY
        return settings.MODEL_SERVICE_URL

    yield begin
    model_service.close()
    for end in ends:
        end.set()
    for thread in threads:
        thread.join(30)


@pytest.fixture
def service(models, serve):
    return serve(ModelService(*models, key=KEY, queue=6))


def _headers(**more):
    return {"Authorization": f"Bearer {KEY}", **more}


def test_its_embedder_is_the_one_of_a_process(service, models):
    local, remote = models[0], RemoteEmbedder("bundled")
    texts = ["", "A lost card costs £8.", LONG, *(f"Text {at}" for at in range(130))]

    assert (remote.fingerprint, remote.dimensions) == (local.fingerprint, 384)
    # Of other batches the last bits are others.
    np.testing.assert_allclose(remote.encode(texts), local.encode(texts), atol=1e-6)
    np.testing.assert_array_equal(
        remote.encode_question(QUESTION), local.encode_question(QUESTION)
    )
    assert remote.encode([]).shape == (0, 384)


def test_its_verifier_is_the_one_of_a_process(service, models):
    local, remote = models[1], load_remote_verifier()

    assert remote.fingerprint == local.fingerprint
    assert remote.card == local.card
    assert remote.reads_jointly
    for mine, theirs in zip(
        local.measure(QUESTION, PASSAGES),
        remote.measure(QUESTION, PASSAGES),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(
        local.measure_jointly(QUESTION, PASSAGES),
        remote.measure_jointly(QUESTION, PASSAGES),
    )
    pairs = [("It is open.", "It is closed."), ("a", "b")]
    np.testing.assert_array_equal(
        local.read_together(pairs), remote.read_together(pairs)
    )
    assert [remote.is_word(each) for each in ("card", "crad", "card")] == [
        True,
        False,
        True,
    ]
    assert log_odds(QUESTION, PASSAGES, remote) == log_odds(QUESTION, PASSAGES, local)
    assert remote.measure(QUESTION, []) == []
    assert remote.measure_jointly(QUESTION, []).shape == (0, 3)


def test_the_settings_decide_who_computes(service, models, settings):
    assert isinstance(load_embedder("bundled", reload=True), RemoteEmbedder)
    assert load_verifier().fingerprint == models[1].fingerprint
    assert load_verifier() is not models[1]
    settings.MODEL_SERVICE_URL = ""
    assert load_embedder("bundled", reload=True).fingerprint == models[0].fingerprint
    assert load_verifier() is models[1]


def test_questions_asked_at_once_get_each_its_own(service, models):
    verifier, remote = models[1], load_remote_verifier()
    questions = [f"What does card number {at} cost?" for at in range(12)]

    with ThreadPoolExecutor(6) as pool:
        found = [*pool.map(lambda q: remote.measure(q, PASSAGES[:2]), questions)]
    for question, readings in zip(questions, found, strict=True):
        wanted = np.concatenate(verifier.measure(question, PASSAGES[:2]))
        # Of another number of pairs in a pass the last bits are others.
        np.testing.assert_allclose(np.concatenate(readings), wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "says"),
    [
        pytest.param(EMBED, {}, b'{"texts": []}', 401, "NESCIO_MODEL_SERVICE_KEY", id="no key"),
        pytest.param(EMBED, _headers(Authorization="Bearer x"), b"", 401, "KEY", id="another"),
        pytest.param(EMBED, _headers(), b"{", 400, "invalid", id="no JSON"),
        pytest.param(EMBED, _headers(), b'{"texts": "a"}', 400, "list", id="no list"),
        pytest.param(EMBED, _headers(), b'{"texts": [null]}', 400, "string", id="no text"),
        pytest.param(APART, _headers(), b'{"question": "a", "entries": [["b"]]}', 400, "entries", id="no entry"),
        pytest.param("/v1/other", _headers(), b"{}", 404, "/v1/other", id="no such path"),
        pytest.param(EMBED, _headers(**{DEADLINE: "soon"}), b'{"texts": ["a"]}', 400, "soon", id="no number"),
        pytest.param(
            EMBED, _headers(**{DEADLINE: "-1"}), b'{"texts": ["a"], "are_questions": true}',
            504, "too long", id="overdue",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_request_is_said(
    service, path, headers, body, status, says
):
    reply = requests.post(f"{service}{path}", data=body, headers=headers, timeout=30)

    assert reply.status_code == status
    assert says in reply.text
    assert reply.json()["error"]["code"]


def test_health_needs_no_key_and_figures_do(service):
    assert requests.get(f"{service}/healthz", timeout=30).json() == {"status": "ok"}
    assert requests.get(f"{service}/metrics", timeout=30).status_code == 401
    load_remote_verifier().measure(QUESTION, PASSAGES)
    shown = requests.get(f"{service}/metrics", headers=_headers(), timeout=30).text
    assert f'nescio_model_service_batch_bucket{{le="1.0",path="{APART}"}}' in shown


def test_beyond_its_queue_it_sends_away_and_a_client_comes_again(
    models, serve, settings, monkeypatch
):
    embedder, verifier = models
    begun, go_on = threading.Event(), threading.Event()

    encode = embedder.encode_questions

    def wait_and_encode(texts):
        begun.set()
        assert go_on.wait(60)
        return encode(texts)

    monkeypatch.setattr(embedder, "encode_questions", wait_and_encode)
    url = serve(ModelService(embedder, verifier, key=KEY, queue=1))
    remote = RemoteEmbedder("bundled")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(remote.encode_question, QUESTION)
        assert begun.wait(60)
        body = b'{"texts": ["a"], "are_questions": true}'
        away = requests.post(f"{url}{EMBED}", data=body, headers=_headers(), timeout=30)
        settings.MODEL_SERVICE_TIMEOUT_SECONDS = 0.3
        with pytest.raises(ModelServiceError, match="503"):
            remote.encode_question("And another?")
        settings.MODEL_SERVICE_TIMEOUT_SECONDS = 60
        monkeypatch.setattr(model_service, "_TRIES", 1_000)
        second = pool.submit(remote.encode_question, "And another?")
        go_on.set()
        assert (first.result().shape, second.result().shape) == ((384,), (384,))
    assert (away.status_code, away.headers["Retry-After"]) == (503, "1")


@pytest.mark.parametrize(
    ("status", "kind", "body", "says"),
    [
        pytest.param("200 OK", "text/html", b"<html>", "no JSON", id="a web page"),
        pytest.param(
            "200 OK", "application/json", b"{}", "another version", id="empty"
        ),
        pytest.param("500 Error", "text/plain", b"oh no", "500: oh no", id="failed"),
    ],
)
def test_a_server_that_is_no_model_service_is_named(serve, status, kind, body, says):
    def application(environ, start_response):
        start_response(status, [("Content-Type", kind)])
        return [body]

    serve(application)
    with pytest.raises(ModelServiceError, match=says):
        RemoteEmbedder("bundled")
    with pytest.raises(ModelServiceError):
        load_remote_verifier()
    with pytest.raises(
        ModelServiceError, match=says if status != "200 OK" else "arrays"
    ):
        model_service.compute(EMBED, {"texts": []})


def test_a_service_that_is_down_or_has_other_models_is_said(serve, models, settings):
    serve(ModelService(models[0], None, key=KEY, queue=4))
    with pytest.raises(EmbedderUnavailableError, match="NESCIO_EMBEDDING_MODEL"):
        RemoteEmbedder("another/model")
    with pytest.raises(ModelServiceError, match="NESCIO_VERIFIER"):
        load_remote_verifier()
    settings.MODEL_SERVICE_KEY = "wrong"
    with pytest.raises(ModelServiceError, match="401"):
        RemoteEmbedder("bundled")
    settings.MODEL_SERVICE_URL = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ModelServiceError, match="cannot be reached"):
        RemoteEmbedder("bundled")


def test_a_web_server_whose_models_are_elsewhere_loads_none():
    code = (
        "from nescio.forking import import_web_server; import_web_server(); "
        "from nescio.warm_up import load_before_forking; load_before_forking(); "
        "import sys; print(sorted({'torch', 'transformers'} & {*sys.modules}))"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "nescio.settings",
        "NESCIO_MODEL_SERVICE_URL": "http://models.invalid:8100",
        "NESCIO_LANGUAGE_SERVER_URL": "http://language.invalid/v1",
        "NESCIO_WEB_PROCESSES": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=django_settings.BASE_DIR,
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
