"""The model service over HTTP: what it computes is what a process computes by itself."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import requests
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from accounts import model_service
from accounts.exceptions import UnavailableError
from accounts.model_service import DEADLINE, MODEL, ModelServiceError
from kb.embedding.embedder import load_embedder, load_local
from kb.embedding.remote import EMBED, RemoteEmbedder, find_remote
from kb.exceptions import EmbedderUnavailableError
from nescio.model_service import ModelService
from nescio.web_server import listen, make_server
from probes.verifier.remote import APART, load_remote_verifier
from probes.verifier.scoring import load_verifier as load_local_verifier
from qa.inference.verifier import load_verifier
from qa.pipeline.weighing import Passage, log_odds

from .running import free_port

pytestmark = [pytest.mark.verifier, pytest.mark.slow]

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
    return serve(ModelService(*models, key=KEY, queue=6, batch=4))


def found_remote() -> RemoteEmbedder:
    found = find_remote("bundled")
    assert found
    return found


def why_of(error: pytest.ExceptionInfo[UnavailableError]) -> str:
    """Return the cause that the log states and the error's message hides."""
    cause = error.value.__cause__ or error.value
    assert isinstance(cause, ModelServiceError)
    return cause.why


@pytest.fixture
def headers(models):
    """Those of a request to the embedder."""
    return {"Authorization": f"Bearer {KEY}", MODEL: models[0].fingerprint}


def test_its_embedder_is_the_one_of_a_process(service, models):
    local, remote = models[0], found_remote()
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
    np.testing.assert_array_equal(
        remote.likeness(QUESTION, PASSAGES), local.likeness(QUESTION, PASSAGES)
    )
    assert remote.likeness(QUESTION, []).shape == (0,)


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
    ("path", "changed", "body", "status", "says"),
    [
        pytest.param(EMBED, {"Authorization": None}, b"", 401, "NESCIO_MODEL_SERVICE_KEY", id="no key"),
        pytest.param(EMBED, {"Authorization": "Bearer x"}, b"", 401, "KEY", id="another key"),
        pytest.param(EMBED, {MODEL: "0" * 64}, b"", 409, "/v1/models", id="another model"),
        pytest.param(EMBED, {MODEL: None}, b"", 409, "The model here is", id="no model"),
        pytest.param(EMBED, {}, b"{", 400, "invalid", id="no JSON"),
        pytest.param(EMBED, {}, b'{"texts": "a"}', 400, "list", id="no list"),
        pytest.param(EMBED, {}, b'{"texts": [null]}', 400, "string", id="no text"),
        pytest.param(EMBED, {}, b'{"texts": [' + b'"a",' * 32 + b'"a"]}', 400, "32", id="many"),
        pytest.param("/v1/other", {}, b"{}", 404, "/v1/other", id="no such path"),
        pytest.param(EMBED, {DEADLINE: "soon"}, b'{"texts": ["a"]}', 400, "soon", id="no number"),
        pytest.param(EMBED, {DEADLINE: "-1"}, b'{"texts": ["a"]}', 504, "too long", id="overdue"),
        pytest.param(
            EMBED, {DEADLINE: "-1"}, b'{"texts": ["a"], "are_questions": true}',
            504, "too long", id="overdue question",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_request_is_said(
    service, headers, path, changed, body, status, says
):
    reply = requests.post(
        f"{service}{path}", data=body, headers={**headers, **changed}, timeout=30
    )

    assert reply.status_code == status
    assert says in reply.text
    assert reply.json()["error"]["code"]


def test_what_is_private_in_a_wrong_request_is_not_repeated(service, headers):
    body = b'{"texts": [{"secret": "4711-0815"}]}'
    reply = requests.post(f"{service}{EMBED}", data=body, headers=headers, timeout=30)

    assert reply.status_code == 400
    assert "4711" not in reply.text


def test_health_needs_no_key_and_figures_do(service, headers):
    assert requests.get(f"{service}/healthz", timeout=30).json() == {"status": "ok"}
    assert requests.get(f"{service}/metrics", timeout=30).status_code == 401
    load_remote_verifier().measure(QUESTION, PASSAGES)
    shown = requests.get(f"{service}/metrics", headers=headers, timeout=30).text
    assert f'nescio_model_service_batch_bucket{{le="1.0",path="{APART}"}}' in shown


def test_without_a_key_everybody_is_let_in(models, serve, settings):
    serve(ModelService(*models, key="", queue=4, batch=4))
    settings.MODEL_SERVICE_KEY = ""

    assert found_remote().encode_question(QUESTION).shape == (384,)


def test_other_machines_are_served_with_a_key_alone(settings):
    settings.MODEL_SERVICE_KEY = ""
    for host in ("0.0.0.0", "models.example.org"):  # refused
        with pytest.raises(CommandError, match="NESCIO_MODEL_SERVICE_KEY"):
            call_command("serve_models", host=host)


def test_three_failures_in_a_row_are_told_and_one_that_works_ends_them(
    models, serve, headers, monkeypatch
):
    embedder, verifier = models
    url = serve(ModelService(embedder, verifier, key=KEY, queue=4, batch=4))
    body = b'{"texts": ["a"]}'

    def post():
        reply = requests.post(f"{url}{EMBED}", data=body, headers=headers, timeout=30)
        return reply.status_code, requests.get(f"{url}/healthz", timeout=30).status_code

    with monkeypatch.context() as patch:
        patch.setattr(embedder, "encode", lambda _texts: [][0])
        assert [post() for _ in range(3)] == [(500, 200), (500, 200), (500, 503)]
    assert post() == (200, 200)


def test_beyond_its_queue_it_sends_away_and_a_client_comes_again(
    models, serve, headers, settings, monkeypatch
):
    embedder, verifier = models
    begun, go_on = threading.Event(), threading.Event()

    encode = embedder.encode_questions

    def wait_and_encode(texts):
        begun.set()
        assert go_on.wait(60)
        return encode(texts)

    monkeypatch.setattr(embedder, "encode_questions", wait_and_encode)
    url = serve(ModelService(embedder, verifier, key=KEY, queue=1, batch=4))
    remote = found_remote()
    settings.MODEL_SERVICE_TIMEOUT_SECONDS = 60
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(remote.encode_question, QUESTION)
        assert begun.wait(60)
        body = b'{"texts": ["a"], "are_questions": true}'
        away = requests.post(f"{url}{EMBED}", data=body, headers=headers, timeout=30)
        settings.MODEL_SERVICE_TIMEOUT_SECONDS = 0.3
        with pytest.raises(EmbedderUnavailableError) as refused:
            remote.encode_question("And another?")
        settings.MODEL_SERVICE_TIMEOUT_SECONDS = 60
        second = pool.submit(remote.encode_question, "And another?")
        time.sleep(0.2)  # it is sent away at least once
        go_on.set()
        assert (first.result().shape, second.result().shape) == ((384,), (384,))
    assert (away.status_code, away.headers["Retry-After"]) == (503, "1")
    assert "503" in why_of(refused)


def test_a_verifier_that_changed_is_read_anew(models, serve, settings):
    embedder, verifier = models
    service = ModelService(embedder, verifier, key=KEY, queue=4, batch=4)
    serve(service)
    before = load_verifier()
    service._routes = {
        path: replace(route, model="0" * 64) for path, route in service._routes.items()
    }

    with pytest.raises(ModelServiceError):
        before.measure(QUESTION, PASSAGES)
    with pytest.raises(EmbedderUnavailableError):
        found_remote().encode_question(QUESTION)
    assert load_verifier() is not before


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        pytest.param("200 OK", b"<html>", "not JSON", id="a web page"),
        pytest.param("200 OK", b"[]", "not a JSON object", id="a list"),
        pytest.param("500 Error", b"oh no", "500: oh no", id="failed"),
    ],
)
def test_a_server_that_is_no_model_service_is_named_in_the_log(
    serve, caplog, status, body, says
):
    def application(environ, start_response):
        start_response(status, [("Content-Type", "text/plain")])
        return [body]

    url = serve(application)
    for ask in (lambda: find_remote("bundled"), load_remote_verifier):
        with pytest.raises(UnavailableError, match="Try again later") as refused:
            ask()
        assert url not in str(refused.value)
    with pytest.raises(ModelServiceError):
        model_service.compute(EMBED, {"texts": []}, model="")
    assert says in caplog.text
    assert url in caplog.text


def test_one_of_another_version_is_said(serve):
    def application(environ, start_response):
        start_response("200 OK", [("Content-Type", "application/json")])
        return [b'{"embedder": {}, "verifier": {"members": 0}}']

    serve(application)
    with pytest.raises(EmbedderUnavailableError, match="another version"):
        find_remote("bundled")
    with pytest.raises(ModelServiceError) as refused:
        load_remote_verifier()
    assert "another version" in refused.value.why


def test_what_it_does_not_have_is_said_or_loaded_here(serve, models, settings):
    serve(ModelService(models[0], None, key=KEY, queue=4, batch=4))

    assert find_remote("another/model") is None
    with pytest.raises(ModelServiceError) as without:
        load_remote_verifier()
    assert "NESCIO_VERIFIER" in without.value.why
    settings.MODEL_SERVICE_KEY = "wrong"
    with pytest.raises(EmbedderUnavailableError) as wrong_key:
        find_remote("bundled")
    assert "401" in why_of(wrong_key)
    settings.MODEL_SERVICE_URL = f"http://127.0.0.1:{free_port()}"
    settings.MODEL_SERVICE_TIMEOUT_SECONDS = 0.5
    with pytest.raises(EmbedderUnavailableError) as down:
        find_remote("bundled")
    assert "cannot be reached" in why_of(down)


def test_a_web_server_whose_models_are_elsewhere_loads_none():
    code = (
        "from nescio.forking import import_web_server; import_web_server(); "
        "from nescio.warm_up import load_before_forking; load_before_forking(); "
        "from qa.answers.sources import configured_rewriter; configured_rewriter(); "
        "import sys; print(sorted({'torch', 'transformers'} & {*sys.modules}))"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "nescio.settings",
        "NESCIO_MODEL_SERVICE_URL": "http://models.invalid:8100",
        "NESCIO_LANGUAGE_SERVER_URL": "http://language.invalid/v1",
        "NESCIO_LANGUAGE_MODEL": "small",
        "NESCIO_WEB_PROCESSES": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=django_settings.BASE_DIR,
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
