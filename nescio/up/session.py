"""One `up` from the first look to the last process, in order."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from rich.console import Console

from nescio import fitness
from nescio.embedded.places import Places
from nescio.up import lock, orphans, report
from nescio.up.address import Address
from nescio.up.askers import demonstration_tokens
from nescio.up.children import children, environment
from nescio.up.credentials import Credentials, ensure_credentials, write_private
from nescio.up.embedded import EmbeddedDatabase, stop_left_over_database
from nescio.up.exceptions import UpError
from nescio.up.preparation import is_done, migrate
from nescio.up.questions import ask, choose
from nescio.up.readiness import wait_until_ready
from nescio.up.signals import Stop, stop_gate
from nescio.up.supervisor import Supervisor
from qa.evaluation.cases import read_cases
from qa.evaluation.suites.demo import QUESTIONS

GRACE_SECONDS = 30.0
# Every kind of outcome at the first start; later ones only prove that it answers.
_FIRST_QUESTIONS = 12
_LATER_QUESTIONS = 4


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller wants.

    Attributes:
        questions: How many demonstration questions are asked; None is a dozen at the
            first start and a few at later ones.
        is_check: Stop after the questions instead of serving.
    """

    address: Address
    questions: int | None = None
    is_check: bool = False


def run(options: Options, console: Console) -> None:
    """Bring the system up, ask, serve until a signal, bring it down.

    Raises:
        UpError: It can not be brought up; what was started is stopped again.
    """
    places: Places = settings.PLACES
    say = _speaker(console)
    with stop_gate(say) as gate, ExitStack() as stack:
        try:
            stack.enter_context(lock.hold(places.up_lock, options.address.url))
            clear_away_a_killed_run(console)
            options.address.require_free()
            _serve(options, console, stack)
        except Stop:
            console.print("Stopping…")
        finally:
            gate.close()


def stop(console: Console) -> None:
    """Stop the `up` of this variable directory, or what a killed one left."""
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
    """End what an earlier `up` that was killed left running; True if there was any."""
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
    if settings.DATABASE_IS_EMBEDDED:
        database = EmbeddedDatabase(places, _speaker(console))
        stack.callback(database.stop)
        with console.status("PostgreSQL: starting (after a crash it recovers first)"):
            database.start()
        console.print("PostgreSQL: running, embedded")
    stack.callback(connections.close_all)
    stack.callback(lambda: orphans.end(orphans.find(places.var), GRACE_SECONDS))
    _require_fit_database()
    migrate(console)
    credentials = ensure_credentials(places.credentials_file)
    if is_done():
        console.print("Models and knowledge: prepared before")
    else:
        _prepare()

    supervisor = Supervisor(environment(settings.TORCH_THREADS), _speaker(console))
    stack.callback(supervisor.stop, GRACE_SECONDS)
    processes = children(options.address)
    supervisor.start(processes)
    wait_until_ready(options.address, supervisor, processes, console)
    _tell_scripts(options.address, credentials, stack)
    console.print(f"Ready after {time.time() - began:.1f} s\n")
    _demonstrate(options, console)
    report.welcome(console, options.address, credentials, str(places.up_file))
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


def _prepare() -> None:
    """Prepare models and knowledge in a process of its own, which takes its memory with it."""
    cores = psutil.cpu_count() or 1
    process = subprocess.Popen(  # noqa: S603  # our own command
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "prepare", "--migrated"],
        env=dict(environment(cores)),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status = process.wait()
    except Stop:
        process.kill()  # every step of it is whole or not done
        process.wait()
        raise
    if status != 0:
        msg = f"Preparing the models and the knowledge failed (exit status {status})."
        raise UpError(msg)


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
                asked = ask(options.address, tokens[case.asker], case)
            console.print(report.outcome(number, asked))
            all_asked.append(asked)
    if all_asked:
        console.print(report.summary(all_asked))
        console.print()
        done.touch()
