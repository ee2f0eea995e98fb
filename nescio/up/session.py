"""The course of one `up` from start to shutdown, and the signals that end it."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import psutil
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from rich.console import Console

from kb.demonstration import SLUG
from kb.documents.models import KnowledgeBase
from nescio import fitness
from nescio.embedded.places import Places, log_tail, make_private
from nescio.up import UpError
from nescio.up import place as lock
from nescio.up import processes as orphans
from nescio.up import questions as report
from nescio.up.place import Address, EmbeddedDatabase, stop_left_over_database
from nescio.up.preparation import (
    Credentials,
    ensure_credentials,
    is_done,
    migrate,
    write_private,
)
from nescio.up.processes import Child, Supervisor, children, environment
from nescio.up.questions import ask, choose, demonstration_tokens, health
from qa.evaluation.cases import read_cases
from qa.evaluation.suites.own import QUESTIONS

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop(BaseException):
    """Raised by a signal to stop everything in order."""


class StopGate:
    """Turns signals into `Stop` until it is closed; then they are only reported.

    Python ignores exceptions raised while an object is finalized, so one signal may be
    lost; the next one raises `Stop` again.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._is_open = True

    def close(self) -> None:
        self._is_open = False

    def receive(self, number: int, frame: FrameType | None) -> None:
        if self._is_open:
            raise Stop
        self._say("Already stopping; this takes half a minute at most.")


@contextmanager
def stop_gate(say: Callable[[str], None]) -> Iterator[StopGate]:
    """Turn SIGINT, SIGTERM and SIGHUP into `Stop` within the block."""
    gate = StopGate(say)
    before = {number: signal.signal(number, gate.receive) for number in _SIGNALS}
    try:
        yield gate
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Waiting until a started system answers.


_READY_SECONDS = 180.0
_MANY_DEATHS = 4
_POLL_SECONDS = 0.4


def wait_until_ready(
    address: Address,
    supervisor: Supervisor,
    processes: tuple[Child, ...],
    console: Console,
) -> None:
    """Wait until the health check succeeds.

    Raises:
        UpError: Too many processes died, or it took too long; the message names the
            failed checks.
    """
    give_up_at = time.monotonic() + _READY_SECONDS
    lacking = "the web server"
    with console.status("Starting web server, workers and scheduler") as status:
        while True:
            is_ready, said = health(address)
            if is_ready:
                return
            lacking = _lacking(said)
            status.update(f"Waiting for {lacking}")
            if supervisor.deaths >= _MANY_DEATHS or time.monotonic() > give_up_at:
                raise UpError(_explain(lacking, processes))
            time.sleep(_POLL_SECONDS)


def _lacking(said: Mapping[str, object]) -> str:
    checks = said.get("checks")
    if not isinstance(checks, dict):
        return "the web server"
    return ", ".join(
        f"{name} ({found['detail']})"
        for name, found in checks.items()
        if not found["ok"]
    )


def _explain(lacking: str, processes: tuple[Child, ...]) -> str:
    logs = "\n".join(
        f"--- the end of {process.log}\n{log_tail(process.log)}"
        for process in processes
    )
    return f"The system did not become ready. Lacking: {lacking}\n{logs}"


# The course of one `up`, in order.


GRACE_SECONDS = 30.0
# Every kind of outcome at the first start; later starts only show that it answers.
_FIRST_QUESTIONS = 12
_LATER_QUESTIONS = 4


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `up`; with `questions` None, a dozen at the first start, few later."""

    address: Address
    questions: int | None = None
    is_check: bool = False
    is_empty: bool = False  # without the demonstration


def run(options: Options, console: Console) -> None:
    """Start the system, ask the questions, serve until a signal, and shut it down."""
    places: Places = settings.PLACES
    say = _speaker(console)
    with stop_gate(say) as gate, ExitStack() as stack:
        try:
            stack.enter_context(lock.hold(places.up_lock, options.address.url))
            clear_away_a_killed_run(console)
            options.address.require_free()
            _serve(options, console, stack)
        except Stop:
            gate.close()
            console.print("Stopping…")
        finally:
            gate.close()


def stop(console: Console) -> None:
    """Stop the `up` of this variable directory, or the processes a killed one left."""
    places: Places = settings.PLACES
    pid = lock.holder(places.up_lock)
    if pid:
        console.print(f"Asking process {pid} to stop…")
        psutil.Process(pid).terminate()
        while lock.holder(places.up_lock) is not None:
            time.sleep(0.1)
        console.print("Stopped.")
        return
    found = clear_away_a_killed_run(console)
    if stop_left_over_database(places):
        console.print("Stopped the embedded PostgreSQL of an earlier run.")
    elif not found:
        console.print(f"Nothing runs for {places.var}.")


def clear_away_a_killed_run(console: Console) -> bool:
    places: Places = settings.PLACES
    places.up_file.unlink(missing_ok=True)
    rest = orphans.find(places.var)
    if rest:
        console.print(
            f"An earlier run was killed: ending the {len(rest)} processes that it left."
        )
        orphans.end(rest, GRACE_SECONDS)
    return bool(rest)


def _serve(options: Options, console: Console, stack: ExitStack) -> None:
    places: Places = settings.PLACES
    began = psutil.Process().create_time()
    for directory in (places.imports, places.exports, places.logs):
        make_private(directory)
    if settings.DATABASE_IS_EMBEDDED:
        database = EmbeddedDatabase(places, _speaker(console))
        stack.callback(database.stop)
        with console.status("PostgreSQL: starting (after a crash it recovers first)"):
            database.start()
        console.print("PostgreSQL: running, embedded")
    stack.callback(connections.close_all)
    stack.callback(lambda: orphans.end(orphans.find(places.var), GRACE_SECONDS))
    _require_fit_database()
    # It starts importing libraries now, in parallel with the following steps.
    supervisor = Supervisor(
        environment(options.address, settings.TORCH_THREADS), _speaker(console)
    )
    migrate(console)
    credentials = ensure_credentials(places.credentials_file)
    if is_done():
        console.print("Models and knowledge: prepared before")
    else:
        _prepare(options)

    stack.callback(supervisor.stop, GRACE_SECONDS)
    processes = children(options.address)
    with console.status("Starting web server, workers and scheduler"):
        supervisor.start(processes)
    wait_until_ready(options.address, supervisor, processes, console)
    _tell_scripts(options.address, credentials, stack)
    console.print(f"Ready after {time.time() - began:.1f} s\n")
    has_demonstration = KnowledgeBase.objects.filter(slug=SLUG).exists()
    if has_demonstration:
        _demonstrate(options, console)
    report.welcome(
        console,
        options.address,
        credentials,
        str(places.up_file),
        has_demonstration=has_demonstration,
    )
    if not options.is_check:
        console.print(f"Logs: {places.logs}. Ctrl-C stops everything.")
        threading.Event().wait()


def _speaker(console: Console) -> Callable[[str], None]:
    return lambda text: console.print(text, markup=False, highlight=False)


def _require_fit_database() -> None:
    try:
        fitness.require_fit_database()
    except ImproperlyConfigured as error:
        raise UpError(str(error)) from error


def _prepare(options: Options) -> None:
    cores = psutil.cpu_count() or 1
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "prepare"]
    left_out = ["--no-demonstration"] if options.is_empty else []
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*command, "--migrated", *left_out],
        env=dict(environment(options.address, cores)),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status = process.wait()
    except Stop:
        process.kill()  # each of its steps is atomic
        process.wait()
        raise
    if status != 0:
        raise UpError(
            f"Preparing the models and the knowledge failed (exit status {status})."
        )


def _tell_scripts(address: Address, credentials: Credentials, stack: ExitStack) -> None:
    file: Path = settings.PLACES.up_file
    write_private(
        file,
        {
            "url": address.url,
            "token": credentials.token,
            "admin_password": credentials.admin_password,
        },
    )
    stack.callback(file.unlink, missing_ok=True)


def _demonstrate(options: Options, console: Console) -> None:
    done = settings.PLACES.var / "demonstrated"
    count = options.questions
    if count is None:
        count = _LATER_QUESTIONS if done.exists() else _FIRST_QUESTIONS
    cases = choose(read_cases(QUESTIONS), count)
    all_asked = []
    with demonstration_tokens() as tokens:
        for number, case in enumerate(cases, start=1):
            with console.status(f"Asking: {case.question}"):
                (asker,) = case.asker
                asked = ask(options.address, tokens[asker], case)
            console.print(report.outcome(number, asked))
            all_asked.append(asked)
    if all_asked:
        console.print(report.summary(all_asked))
        console.print()
        done.touch()
