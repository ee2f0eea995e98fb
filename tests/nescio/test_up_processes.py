"""The supervisor with real processes that live as long as a test needs."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from nescio.embedded import places
from nescio.embedded.places import log_tail
from nescio.up import processes
from nescio.up.place import Address
from nescio.up.processes import Child, Supervisor, children, end, environment
from tests.waiting import GIVE_UP_SECONDS, wait_until
from workers.queues import QUEUES

pytestmark = pytest.mark.slow

# Starts a process of its own, tells both pids, and goes on.
_PARENT = """
import subprocess, sys, os, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
open(sys.argv[1], "a").write(f"{os.getpid()} {child.pid}\\n")
time.sleep(300)
"""
_TALKER = """
import itertools, time
for number in itertools.count():
    print(number, flush=True)
    time.sleep(0.0002)
"""
_DEAF = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "a").write("deaf\\n")
time.sleep(300)
"""


def test_each_queue_has_a_worker_of_its_own():
    workers = [
        child.command
        for child in children(Address("127.0.0.1", 1))
        if "worker" in child.command
    ]

    assert [each[each.index("--queues") + 1] for each in workers] == list(QUEUES)


def _links_of_a_child(address):
    shown = subprocess.run(
        [sys.executable, "-c", "from nescio.settings import *; print(PUBLIC_URL)"],
        env=dict(environment(address, 1)),
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.strip()


def test_links_lead_to_the_port_that_was_chosen(monkeypatch):
    monkeypatch.delenv("NESCIO_PUBLIC_URL", raising=False)
    assert _links_of_a_child(Address("0.0.0.0", 8151)) == "http://127.0.0.1:8151"

    monkeypatch.setenv("NESCIO_PUBLIC_URL", "https://desk.example.org")
    assert _links_of_a_child(Address("127.0.0.1", 8151)) == "https://desk.example.org"


@pytest.fixture
def said():
    return []


@pytest.fixture
def supervise(said, tmp_path, monkeypatch):
    supervisors = []
    monkeypatch.syspath_prepend(tmp_path)

    def start(script):
        written = tmp_path / "written"
        (tmp_path / "child_of_test.py").write_text(script)
        child = Child("child", ("child_of_test", str(written)), tmp_path / "child.log")
        supervisors.append(Supervisor({"GIVEN": "by us"}, said.append, preloaded=()))
        supervisors[-1].start([child])
        return supervisors[-1], written

    yield start
    for supervisor in supervisors:
        supervisor.stop(0)


def _lines(file: Path):
    return file.read_text().splitlines() if file.exists() else []


def _alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"


def test_stop_ends_the_child_and_what_the_child_started(supervise):
    supervisor, written = supervise(_PARENT)
    wait_until(lambda: _lines(written))
    pids = [int(pid) for pid in _lines(written)[0].split()]

    supervisor.stop(10)

    wait_until(lambda: not any(_alive(pid) for pid in pids))


def test_child_that_does_not_listen_is_killed_after_its_grace(supervise, said):
    supervisor, written = supervise(_DEAF)
    wait_until(lambda: _lines(written))
    began = time.monotonic()

    supervisor.stop(0.5)

    assert 0.4 < time.monotonic() - began < GIVE_UP_SECONDS
    assert "did not end in time" in said[0]


def test_child_that_dies_is_started_again_and_its_rest_is_ended(supervise, said):
    supervisor, written = supervise(_PARENT)
    wait_until(lambda: _lines(written))
    first, rest = (int(pid) for pid in _lines(written)[0].split())

    psutil.Process(first).kill()
    wait_until(lambda: len(_lines(written)) == 2 and len(said) == 2)

    assert supervisor.deaths == 1
    assert "The child ended with signal SIGKILL" in said[0]
    assert said[1] == "The child is started again."
    wait_until(lambda: not _alive(rest))


def test_children_of_a_killed_fork_server_are_replaced(supervise, said):
    supervisor, written = supervise(_PARENT)
    wait_until(lambda: _lines(written))
    first = psutil.Process(int(_lines(written)[0].split()[0]))
    assert first.name() == "child"
    assert first.environ()["GIVEN"] == "by us"
    assert "GIVEN" not in os.environ

    psutil.Process(first.ppid()).kill()
    wait_until(lambda: len(_lines(written)) == 2 and len(said) == 2)

    wait_until(lambda: not _alive(first.pid))
    assert supervisor.deaths == 1
    assert said[1] == "The child is started again."


def test_child_that_can_not_run_is_tried_less_and_less_often(supervise, said):
    supervise("import sys; sys.exit('no configuration')")

    def ends():
        return [each for each in said if "exit status" in each]

    wait_until(lambda: len(ends()) >= 2)

    assert "exit status 1; it is started again in 1 s" in ends()[0]
    assert "no configuration" in ends()[0]
    assert "it is started again in 2 s" in ends()[1]


def test_child_that_was_healthy_is_started_again_at_once(supervise, said, monkeypatch):
    monkeypatch.setattr(processes, "_HEALTHY_SECONDS", 0.0)

    supervise("import sys; sys.exit('a fault')")
    wait_until(lambda: len(said) >= 3)

    assert all("it is started again at once" in each for each in said[::2])


def test_a_log_is_rotated_while_its_process_goes_on_writing(
    supervise, tmp_path, monkeypatch
):
    monkeypatch.setattr(places, "LOG_BYTES", 10_000)
    log = tmp_path / "child.log"

    supervisor, _ = supervise(_TALKER)
    wait_until(lambda: log.with_suffix(".log.1").exists())

    wait_until(lambda: len(_lines(log)) > 2)
    assert _lines(log.with_suffix(".log.1"))[0] == "0"
    assert int(_lines(log)[1]) > 1
    assert supervisor.deaths == 0


def test_logs_are_for_their_owner_alone(supervise, tmp_path):
    tmp_path.chmod(0o755)

    _, written = supervise(_PARENT)
    wait_until(lambda: _lines(written))

    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_orphans_that_are_deaf_are_killed(tmp_path):
    written = tmp_path / "written"
    process = subprocess.Popen([sys.executable, "-c", _DEAF, str(written)])
    wait_until(lambda: _lines(written))

    end([psutil.Process(process.pid)], grace_seconds=0.2)

    assert not _alive(process.pid)
    process.wait()


def test_log_tail_of_a_large_log_is_its_end(tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))

    assert log_tail(log, 2) == "line 99998\nline 99999"
    assert log_tail(tmp_path / "none") == ""
