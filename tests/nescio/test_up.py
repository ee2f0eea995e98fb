"""`up` as its user meets it: whole systems on variable directories of their own."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from nescio.embedded import postgres
from nescio.embedded.places import Places
from nescio.up import processes as orphans
from probes import bundled
from tests.waiting import wait_until

from .running import ROOT, RunningSystem, free_port, give_models

pytestmark = pytest.mark.system


@contextmanager
def _variable_directory():
    bundled.prepare(settings.PLACES.models)
    # Not under pytest's own directory, which every session of pytest closes to others.
    with tempfile.TemporaryDirectory(prefix="nescio-test-") as directory:
        var = Path(directory) / "var"
        give_models(settings.PLACES.models, var)
        yield var
        orphans.end(orphans.find(var), 10)
        postgres.stop(Places(var))


@pytest.fixture
def var():
    with _variable_directory() as var:
        yield var


@pytest.fixture(scope="module")
def first_run():
    """A first start that was stopped again: database, models and knowledge are made."""
    with _variable_directory() as var:
        system = RunningSystem(var, free_port(), arguments=("--questions", "1"))
        try:
            first = FirstRun(var, dict(system.wait_until_ready().access))
            system.wait_for_output("curl -sS")  # the last of what it says
            mode = stat.S_IMODE((var / "up.json").stat().st_mode)
            assert mode == 0o600
        finally:
            status = system.stop()
        assert status == 0, system.output
        yield replace(first, output=system.output)


@dataclass(frozen=True, slots=True)
class FirstRun:
    var: Path
    access: dict[str, str]
    output: str = ""


@pytest.fixture
def started_before(first_run, var):
    """Let `var` be as the first start left it: half a minute less for each test."""
    for name in ("postgres", "secret_key", "credentials.json"):
        subprocess.run(["cp", "-a", first_run.var / name, var / name], check=True)
    return var


@pytest.fixture
def run(var):
    systems = []

    def start(*arguments, port=None):
        options = {"arguments": arguments} if arguments else {}
        systems.append(RunningSystem(var, port or free_port(), **options))
        return systems[-1]

    yield start
    for system in systems:
        system.stop()


def _admin_names(system):
    status, body = system.request("GET", "/api/v1/tokens", token=system.access["token"])
    assert status == 200, body
    return {token["name"] for token in body["results"]}


def _questions(system):
    """Return the questions that were asked, the newest first."""
    status, answers = system.request(
        "GET", "/api/v1/answers", token=system.access["token"]
    )
    assert status == 200, answers
    return [answer["question"] for answer in answers["results"]]


def _processes(var):
    return {process.name() for process in orphans.find(var)}


def test_first_start_makes_everything_and_ctrl_c_stops_all_it_started(first_run):
    var = first_run.var
    assert set(first_run.access) == {"url", "token", "admin_password"}
    assert _processes(var) == set()
    assert not postgres.is_running(Places(var))
    assert not (var / "up.json").exists()
    assert "curl -sS" in first_run.output
    assert "Warning" not in first_run.output
    assert first_run.access["token"] in first_run.output
    assert "RuntimeWarning" not in (var / "log" / "web.log").read_text()


def test_the_second_start_serves_what_the_first_made_and_starts_again_what_is_killed(
    run, started_before, first_run
):
    var = started_before
    system = run().wait_until_ready()
    sys.stdout.write(f"\nsecond start: {system.seconds():.1f} s\n")
    assert system.access["token"] == first_run.access["token"]

    status, health = system.request("GET", "/healthz")
    assert (status, health["checks"]["broker"]["ok"]) == (200, True), health
    assert system.access["url"] == system.url
    assert "make up" in _admin_names(system)

    # Another one for the same directory, and one for the same port.
    second = RunningSystem(var, free_port())
    assert second.wait() == 1
    assert f"already served by process {system.process.pid}" in second.output
    elsewhere = RunningSystem(
        var.with_name("other"), int(system.url.rpartition(":")[2])
    )
    assert elsewhere.wait() == 1
    assert "NESCIO_PORT=" in elsewhere.output
    assert not (elsewhere.var / "postgres").exists()

    assert "RuntimeWarning" not in (var / "log" / "web.log").read_text()
    assert "Warning" not in system.output

    places = Places(var)

    web = next(p for p in orphans.find(var) if p.name() == "web server")
    head = psutil.Process(os.getpgid(web.pid))
    assert (
        psutil.Process(head.ppid()).num_threads() == 1
    )  # what forks may have no other
    head.kill()
    system.wait_for_health(lambda status, _: status != 200)
    system.wait_for_health(lambda status, _: status == 200)
    assert "The web server ended with signal SIGKILL" in system.output

    server = postgres.running(places)
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    system.wait_for_health(
        lambda status, _: (
            status == 200 and postgres.running(places) not in {None, server}
        )
    )
    system.wait_for_output("The embedded PostgreSQL is back")
    # From another terminal, by the SIGTERM that a service manager sends too.
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--stop"],
        cwd=ROOT,
        env={**os.environ, "NESCIO_VAR_DIR": str(var)},
        check=True,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert f"process {system.process.pid}" in done.stdout
    assert system.wait() == 0
    assert _processes(var) == set()
    assert not postgres.is_running(places)
    assert not (var / "up.json").exists()


def test_run_after_sigkill_clears_away_what_is_left_and_loses_nothing(
    run, started_before
):
    var = started_before
    system = run().wait_until_ready()
    access = system.access
    system.request(
        "POST", "/api/v1/ask", {"question": "Why is the sky blue?"}, access["token"]
    )
    questions = _questions(system)
    assert questions[0] == "Why is the sky blue?"
    server = postgres.running(Places(var))
    system.send(signal.SIGKILL)
    system.wait()
    left = _processes(var)
    assert {"web server", "imports worker", "scheduler"} <= left

    again = run(port=int(system.url.rpartition(":")[2])).wait_until_ready()

    assert "An earlier run was killed" in again.output
    assert postgres.running(Places(var)) == server
    assert again.access == access
    assert _questions(again) == questions

    # The database that the killed run started is this one's to stop.
    assert again.stop() == 0
    assert _processes(var) == set()
    assert not postgres.is_running(Places(var))


def test_web_processes_share_models_counts_and_the_port(
    run, started_before, monkeypatch
):
    monkeypatch.setenv("NESCIO_WEB_PROCESSES", "2")
    monkeypatch.setenv("NESCIO_THROTTLE_ASK", "24/day")
    monkeypatch.setenv("NESCIO_METRICS_TOKEN", "counted")
    system = run().wait_until_ready()
    token = system.access["token"]

    def ask(number):
        body = {"question": f"Why is the sky blue in scene {number}?"}
        return system.request("POST", "/api/v1/ask", body, token)[0]

    webs = (p for p in orphans.find(started_before) if p.name() == "web server")
    (head,) = (p for p in webs if p.pid == os.getpgid(p.pid))
    assert head.num_threads() == 1  # what forks may have no other
    servers = head.children()
    assert len(servers) == 2
    # The weights lie in the pages that were there before the fork.
    assert all(p.memory_full_info().uss < p.memory_info().rss / 2 for p in servers)

    with ThreadPoolExecutor(8) as clients:
        assert [*clients.map(ask, range(20))] == [200] * 20
    servers[0].kill()
    servers[0].wait(60)
    assert [ask(20 + number) for number in range(4)] == [200] * 4
    wait_until(lambda: len(head.children()) == 2)
    assert ask(24) == 429  # counted by both, and by one that is gone
    metrics = urllib.request.Request(
        f"{system.url}/metrics", headers={"Authorization": "Bearer counted"}
    )
    with urllib.request.urlopen(metrics) as response:
        lines = response.read().decode().splitlines()
    counts = [line for line in lines if line.startswith("nescio_questions_total")]
    assert sum(float(line.rpartition(" ")[2]) for line in counts) == 24


def test_first_start_that_is_killed_goes_on_at_the_second(run, var):
    system = run()
    system_is_preparing = Places(var).credentials_file.exists
    while not system_is_preparing():
        assert system.process.poll() is None, system.output
        time.sleep(0.01)
    system.send(signal.SIGKILL)
    system.wait()
    password = json.loads(Places(var).credentials_file.read_text())["admin_password"]

    again = run("--empty").wait_until_ready()

    again.wait_for_output("Begin with a knowledge base")
    assert again.access["admin_password"] == password
    status, _ = again.request(
        "POST", "/api/v1/tokens", {"username": "admin", "password": password}
    )
    assert status == 201


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_can_start_it(var):
    nobody = 65_534
    if not _others_may_read(sys.prefix):
        pytest.skip(f"other users may not run {sys.executable}")
    for path in (var, *var.rglob("*")):
        os.chown(path, nobody, nobody)
    _let_others_through(var)
    system = RunningSystem(
        var,
        free_port(),
        user={"user": nobody, "group": nobody, "extra_groups": []},
    )

    system.wait_until_ready()
    server = postgres.running(Places(var))
    assert server is not None
    owner = psutil.Process(server.pid).uids().real

    assert owner == nobody
    assert system.stop() == 0


def test_port_that_is_in_use_is_named_before_anything_starts(var):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        system = RunningSystem(var, port)

        assert system.wait() == 1

    assert f"Port {port} on 127.0.0.1 is in use" in system.output
    assert f"NESCIO_PORT={port + 1}" in system.output
    assert not (var / "postgres").exists()


def _others_may_read(directory):
    interpreter = Path(os.path.realpath(sys.executable))
    starts = (Path(directory).resolve(), interpreter.parent, ROOT)
    return all(
        place.stat().st_mode & stat.S_IXOTH
        for start in starts
        for place in (start, *start.parents)
    )


def _let_others_through(directory):
    for place in directory.parents:
        mode = place.stat().st_mode
        if not mode & stat.S_IXOTH:
            place.chmod(mode | stat.S_IXOTH)
