"""The processes of a running system: web server, a worker for each queue, scheduler.

The web server is `nescio.web_server`. All are forked from `multiprocessing`'s fork
server, which has imported everything, so that a killed one restarts without the ten
seconds that imports take, and all share their libraries' memory.
"""

import multiprocessing
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil
from django.conf import settings

from nescio.embedded.places import log_tail, make_private, rotate_log
from nescio.embedded.postgres import wait_for_ends
from nescio.up.place import Address
from workers.queues import QUEUES

# An environment variable of all processes that `up` starts, which their children
# inherit, so that those left by a killed run can be recognized.
MARK = "NESCIO_STARTED_BY_UP_FOR"


@dataclass(frozen=True, slots=True)
class Child:
    """A process to run; `command` is the arguments of `python -m`."""

    name: str
    command: tuple[str, ...]
    log: Path


def children(address: Address) -> tuple[Child, ...]:
    logs = settings.PLACES.logs
    celery = ("celery", "--app", "nescio")
    return (
        Child(
            "web server",
            (
                "nescio.web_server", "nescio.wsgi:application",
                "--host", address.host, "--port", str(address.port),
            ),
            logs / "web.log",
        ),
        *(
            Child(
                f"{queue} worker",
                (
                    *celery, "worker",
                    "--queues", queue, "--hostname", f"{queue}@%h",
                    "--concurrency", str(settings.WORKER_PROCESSES),
                    "--loglevel", "INFO",
                    "--without-gossip", "--without-mingle",
                ),
                logs / f"worker_{queue}.log",
            )
            for queue in QUEUES
        ),
        Child(
            "scheduler",
            (*celery, "beat", "--loglevel", "INFO", "--pidfile="),
            logs / "scheduler.log",
        ),
    )  # fmt: skip


def environment(address: Address, threads: int) -> Mapping[str, str]:
    """Return the environment for a child whose numeric libraries use `threads` threads.

    Two torch threads on a busy two-core machine are 70 times slower than one.
    """
    pinned = {
        name: str(threads)
        for name in (
            "NESCIO_TORCH_THREADS",
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "RAYON_NUM_THREADS",
        )
    }
    return {
        # Links lead to the chosen host and port.
        "NESCIO_PUBLIC_URL": address.url,
        **os.environ,
        **pinned,
        # Each thread's arena keeps the memory of its largest tensors: with 32 arenas,
        # memory doubles, and grows for hours.
        "MALLOC_ARENA_MAX": "2",
        # The fork server must have no threads, so an allocator's that we do not need is
        # switched off.
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
        "NESCIO_VAR_DIR": str(settings.VAR_DIR),
        "DJANGO_SETTINGS_MODULE": os.environ.get(
            "DJANGO_SETTINGS_MODULE", "nescio.settings"
        ),
        MARK: str(settings.VAR_DIR),
    }


# Supervision of processes: start, watch, restart with back-off, stop.


_FIRST_DELAY_SECONDS = 1.0
_MAX_DELAY_SECONDS = 8.0
# A process that ran this long was healthy, so the back-off starts again.
_HEALTHY_SECONDS = 15.0
_POLL_SECONDS = 0.25
# Forking with loaded libraries is only safe on Linux; elsewhere each child imports its
# own.
PRELOADED = ("nescio.up.preloaded",) if sys.platform == "linux" else ()


@dataclass(slots=True)
class _Run:
    child: Child
    process: ForkServerProcess | None = None
    started_at: float = 0.0
    delay_seconds: float = _FIRST_DELAY_SECONDS
    restart_at: float | None = None


class Supervisor:
    """Runs children, each the leader of a session, so that Ctrl-C reaches only us.

    The fork server begins to import `preloaded` at once. All supervisors in a process
    share one. If it is killed, its children end too, and the next start launches
    another.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        preloaded: Sequence[str] = PRELOADED,
    ) -> None:
        self._environment = environment
        self._say = say
        self._runs: list[_Run] = []
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="supervisor")
        self._deaths = 0
        forkserver.set_forkserver_preload([*preloaded])
        self._ensure_forker()

    @property
    def deaths(self) -> int:
        return self._deaths

    def start(self, children: Sequence[Child]) -> None:
        for child in children:
            self._runs.append(_Run(child))
            self._launch(self._runs[-1])
        self._watcher.start()

    def stop(self, grace_seconds: float) -> None:
        """Terminate the group leaders, wait, and kill all remaining processes."""
        self._stopping.set()
        if self._watcher.ident is not None:
            self._watcher.join()
        processes = [run.process for run in self._runs if run.process is not None]
        for process in processes:
            process.terminate()
        give_up_at = time.monotonic() + grace_seconds
        for process in processes:
            process.join(max(0.0, give_up_at - time.monotonic()))
            if process.is_alive():
                self._say(f"Process {process.pid} did not end in time and is killed.")
            _kill_group(process.pid)
            process.join()

    def _watch(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            for run in self._runs:
                rotate_log(run.child.log)
                self._look_after(run)

    def _look_after(self, run: _Run) -> None:
        now = time.monotonic()
        if run.process is None:
            is_due = run.restart_at is not None and now >= run.restart_at
            if is_due and self._launch(run):
                self._say(f"The {run.child.name} is started again.")
            return
        status = run.process.exitcode
        if status is None:
            return
        _kill_group(run.process.pid)
        if now - run.started_at > _HEALTHY_SECONDS:
            run.delay_seconds = 0.0
        self._put_off(run, f"ended with {_describe(status)}")

    def _put_off(self, run: _Run, what: str) -> None:
        self._deaths += 1
        when = f"in {run.delay_seconds:.0f} s" if run.delay_seconds else "at once"
        self._say(
            f"The {run.child.name} {what}; it is started again "
            f"{when}. The end of {run.child.log}:\n{log_tail(run.child.log)}"
        )
        run.process, run.restart_at = None, time.monotonic() + run.delay_seconds
        longer = max(_FIRST_DELAY_SECONDS, 2 * run.delay_seconds)
        run.delay_seconds = min(longer, _MAX_DELAY_SECONDS)

    def _launch(self, run: _Run) -> bool:
        make_private(run.child.log.parent)
        process = multiprocessing.get_context("forkserver").Process(
            target=become, args=(run.child,)
        )
        try:
            self._ensure_forker()
            process.start()
        except (OSError, EOFError):  # the fork server was killed meanwhile
            self._put_off(run, "could not be started")
            return False
        run.process, run.started_at = process, time.monotonic()
        return True

    def _ensure_forker(self) -> None:
        # The resource tracker ignores signals and ends by itself, so it must not have
        # the mark. Its warnings about resources of killed processes are of no use.
        with _variables({"PYTHONWARNINGS": "ignore"}):
            resource_tracker.ensure_running()
        with _variables(self._environment):
            forkserver.ensure_running()


@contextmanager
def _variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the block, for programs started there."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def become(child: Child) -> None:
    """Run the child's module like `python -m`, in a process that was forked for it."""
    os.setsid()
    with child.log.open("ab") as log, open(os.devnull, "rb") as nothing:
        for stream, number in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(stream.fileno(), number)
    if sys.platform == "linux":  # the name in `top` and `ps -e`, at most 15 characters
        Path("/proc/self/comm").write_text(child.name)
    module, *arguments = child.command
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _describe(status: int) -> str:
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"


def _kill_group(leader: int | None) -> None:
    if leader is None:  # only if it was never started
        return
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError:  # on macOS, for a group of zombies
        return


# Processes that a killed `up` left running.


def find(var: Path) -> Sequence[psutil.Process]:
    """Return the live processes that an `up` for `var` started, whatever their parent.

    They have a mark in their environment, which their own children inherit. A list of
    pids could be left incomplete by a kill, or name pids that were reused.
    """
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in ours and _mark(process) == str(var)
    ]


def end(processes: Sequence[psutil.Process], grace_seconds: float) -> None:
    for process in processes:
        try:
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    alive = wait_for_ends(processes, grace_seconds)
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    wait_for_ends(alive, 5)


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return None
    except OSError:  # it ended before its environment was read
        return None
