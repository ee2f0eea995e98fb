"""Kill every process, fill the disk and send slowly while clients ask, vote and import.

    python -m benchmarks.faults [--kills 200] [--minutes 120] [--seed 1]

Starts a separate system with `manage.py up`, and eight clients. The web server's child,
the process that forks it, the worker, its child, the scheduler, the fork server of them
all, a database backend and the postmaster are repeatedly killed with SIGKILL, in random
order; then 128 connections send a request body slowly; then the disk is filled. It
prints for each how long the system took to serve again (for the worker, until any
waiting import has finished; for the scheduler, until it runs), and at the end how many
acknowledged writes are lost or stored twice. The exit status is 1 if any is, or if a
recovery takes more than 15 s (worker: 60 s), or if the slow connections or the full
disk make other requests fail in an unexpected way.

The full disk is a small separate one that only root can mount; otherwise that part is
skipped with a message.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import psutil

from benchmarks.clients import (
    Client,
    Ledger,
    System,
    faults_of_writes,
    load,
    quantile,
    system,
    tree,
    wait_until,
)

LIMIT_SECONDS = 15.0
_WORKER_LIMIT_SECONDS = 60.0  # as in kill_worker: it loads the models, then imports
_GIVE_UP_SECONDS = 180.0
_CLIENTS = 8
_SLOW = 64
_SLOW_SECONDS = 15.0
_MEBIBYTE = 1024**2
_MOUNTED = "NESCIO_FAULTS_DISK"


def main() -> int:
    """Run on a separate small disk if possible; return the exit status."""
    options = _options()
    if os.geteuid() == 0 and _MOUNTED not in os.environ and shutil.which("unshare"):
        # In a separate mount namespace the disk disappears with the last process.
        script = f'mount -t tmpfs -o size={options.disk}m none $0 && exec "$@"'
        with tempfile.TemporaryDirectory(prefix="nescio-faults-") as place:
            command = [sys.executable, "-m", "benchmarks.faults", *sys.argv[1:]]
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c", script, place, *command],
                env={**os.environ, _MOUNTED: place},
                check=False,
            )
        return done.returncode
    with tempfile.TemporaryDirectory(prefix="nescio-faults-") as place:
        return _run(options, Path(os.environ.get(_MOUNTED, place)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=120, help="Stop killing then.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disk", type=int, default=2_048, help="MiB")
    return parser.parse_args()


def _run(options: argparse.Namespace, place: Path) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    from django.conf import settings

    from probes import bundled

    bundled.prepare(settings.PLACES.models)
    place.chmod(0o755)
    ledger = Ledger()
    with system(place / "var", settings.PLACES.models) as running:
        with load(running, ledger, _CLIENTS):
            times = _kill_all(running, options)
            _report_times(times)
            slow_is_good = _send_slowly(running)
            full_is_good = _fill(running, place)
        faults = faults_of_writes(running, ledger)
    written = {kind: len(texts) for kind, texts in ledger.acknowledged.items()}
    print(f"\nacknowledged writes: {written}")
    is_in_time = all(max(times[kind]) <= _limit(kind) for kind in times)
    is_good = is_in_time and not faults
    return 0 if is_good and slow_is_good and full_is_good else 1


# --- SIGKILL ---------------------------------------------------------------------------


class Targets:
    """Finds the current processes of a running system."""

    def __init__(self, running: System, chance: random.Random) -> None:
        self._running = running
        self._chance = chance

    def web_parent(self) -> psutil.Process | None:
        return self._running.head("web server")

    def web_child(self) -> psutil.Process | None:
        parent = self.web_parent()
        return next(iter(parent.children()), None) if parent else None

    def worker(self) -> psutil.Process | None:
        return self._running.head("imports worker")

    def worker_child(self) -> psutil.Process | None:
        parent = self.worker()
        return next(iter(parent.children()), None) if parent else None

    def scheduler(self) -> psutil.Process | None:
        return self._running.head("scheduler")

    def fork_server(self) -> psutil.Process | None:
        web = self.web_parent()
        return web.parent() if web else None

    def postmaster(self) -> psutil.Process | None:
        return self._running.postmaster()

    def backend(self) -> psutil.Process | None:
        head = self.postmaster()
        clients = [
            each
            for each in (head.children() if head else [])
            if any("nescio nescio" in word for word in each.cmdline())
        ]
        return self._chance.choice(clients) if clients else None


def _kill_all(running: System, options: argparse.Namespace) -> dict[str, list[float]]:
    chance = random.Random(options.seed)
    targets = Targets(running, chance)
    finds: dict[str, Callable[[], psutil.Process | None]] = {
        "web child": targets.web_child,
        "web server": targets.web_parent,
        "worker": targets.worker,
        "worker's child": targets.worker_child,
        "fork server": targets.fork_server,
        "scheduler": targets.scheduler,
        "database backend": targets.backend,
        "postmaster": targets.postmaster,
    }
    times: dict[str, list[float]] = defaultdict(list)
    kinds: list[str] = []
    end = time.monotonic() + 60 * options.minutes
    for number in range(1, options.kills + 1):
        if time.monotonic() > end:
            break
        kinds = kinds or chance.sample([*finds], len(finds))
        kind = kinds.pop()
        time.sleep(2 * chance.random())
        victim = _found(finds[kind])
        began = time.monotonic()
        moment = running.rows("SELECT clock_timestamp()") if "worker" in kind else []
        with_it = tree(victim)
        victim.send_signal(signal.SIGKILL)
        # Its orphans may still serve requests; wait until all of them have ended.
        wait_until(lambda: not any(map(_is_alive, with_it)), _GIVE_UP_SECONDS)  # noqa: B023
        if kind == "scheduler":
            wait_until(lambda: _is_other(targets.scheduler(), victim), _GIVE_UP_SECONDS)  # noqa: B023
        elif "worker" in kind:
            _until_imported(running, moment[0][0])
        else:
            _until_answered(running)
        times[kind].append(time.monotonic() - began)
        print(f"kill {number:3}: {kind:16} {times[kind][-1]:6.1f} s", flush=True)
    return times


def _found(find: Callable[[], psutil.Process | None]) -> psutil.Process:
    found: list[psutil.Process] = []

    def look() -> bool:
        try:
            process = find()
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False
        found.extend([process] if process else [])
        return bool(found)

    if wait_until(look, _GIVE_UP_SECONDS) == float("inf"):
        raise RuntimeError("A process that should run was not started again.")
    return found[-1]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_other(process: psutil.Process | None, than: psutil.Process) -> bool:
    return process is not None and process != than


def _until_answered(running: System) -> float:
    probe = running.client()
    return wait_until(probe.ask, _GIVE_UP_SECONDS)


def _until_imported(running: System, since: datetime) -> None:
    """Wait until any import finishes after `since`, when the worker was killed."""
    client, texts = running.client(), list[str]()
    while not texts:
        texts = client.load(running.audience)
    done = f"""
        SELECT 1 FROM jobs_job WHERE kind = 'kb.import' AND state = 'succeeded'
        AND finished_at > '{since.isoformat()}' LIMIT 1
    """
    wait_until(lambda: running.rows(done), _GIVE_UP_SECONDS)


def _limit(kind: str) -> float:
    return _WORKER_LIMIT_SECONDS if "worker" in kind else LIMIT_SECONDS


def _report_times(times: dict[str, list[float]]) -> None:
    print(f"\n{'SIGKILL of':18}{'times':>6}{'p50, s':>9}{'max, s':>9}   limit")
    for kind, seconds in times.items():
        print(
            f"{kind:18}{len(seconds):>6}{quantile(seconds, 0.5):>9.1f}"
            f"{max(seconds):>9.1f}   {_limit(kind):.0f} "
            f"{'ok' if max(seconds) <= _limit(kind) else 'OVER'}",
            flush=True,
        )


# --- Slow clients and a full disk ------------------------------------------------------


def _send_slowly(running: System) -> bool:
    """Send bodies slowly on many connections, half signed in, while a client asks."""
    host, _, port = running.running.url.removeprefix("http://").partition(":")
    head = "POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    signed = f"Authorization: Token {running.token}\r\n"
    probe, ledger = Client(running.running.url, running.token, Ledger()), Ledger()
    probe.ledger = ledger
    opened = []
    for number in range(2 * _SLOW):
        opened.append(socket.create_connection((host, int(port)), timeout=5))
        opened[-1].sendall(f"{head}{signed if number % 2 else ''}\r\n".encode())
    end = time.monotonic() + _SLOW_SECONDS
    health = []
    while time.monotonic() < end:
        for each in opened:
            try:
                each.sendall(b"x")
            except OSError:  # the server has closed the connection
                continue
        probe.ask()
        began = time.monotonic()
        health.append((running.running.request("GET", "/healthz")[0], began))
    for each in opened:
        each.close()
    failed = Counter(each.status for each in ledger.exchanges if each.status != 200)
    slowest = max(each.seconds for each in ledger.exchanges)
    unwell = sum(status != 200 for status, _ in health)
    print(
        f"\n{2 * _SLOW} slow connections: {len(ledger.exchanges)} questions, "
        f"{failed.total()} failed {dict(failed)}, the slowest {slowest:.1f} s; "
        f"{len(health)} health checks, {unwell} failed"
    )
    return not failed and not unwell


def _fill(running: System, place: Path) -> bool:
    """Fill the disk, check the responses, free the space, and check again."""
    if _MOUNTED not in os.environ:
        print("full disk: skipped; only root can mount the small disk")
        return True
    filler = place / "filler"
    reserve_is_good = _answers_when_full(running, filler, leave=200)
    all_is_good = _answers_when_full(running, filler, leave=0)
    filler.unlink()
    seconds = _until_answered(running)
    print(f"with space free again, it answered after {seconds:.1f} s")
    return reserve_is_good and all_is_good and seconds <= LIMIT_SECONDS


def _answers_when_full(running: System, filler: Path, *, leave: int) -> bool:
    with filler.open("ab") as stream:
        while (free := shutil.disk_usage(filler).free // _MEBIBYTE) > leave:
            try:
                stream.write(bytes(min(16, free - leave) * _MEBIBYTE))
                stream.flush()
            except OSError:
                break
    client = running.client()
    client.ask()
    client.load(running.audience)
    client.send(
        "entry",
        "POST",
        "entries",
        json={"text": "It costs 12 euros.", "audience": running.audience},
    )
    health = running.running.request("GET", "/healthz")
    said = {each.kind: each.status for each in client.ledger.exchanges}
    detail = health[1]["checks"]["disk"]["detail"]
    print(f"disk with {free} MiB left: {said}, health {health[0]}: {detail}")
    return set(said.values()) == {503} and health[0] == 503


if __name__ == "__main__":
    sys.exit(main())
