"""Measure a hard-refused question over HTTP, and the web server's memory.

    python -m benchmarks.ask [--entries 10000] [--questions 500] [--answers 20]

Starts a separate system in a scratch directory with the processes of `make up`
(embedded PostgreSQL, web server, worker, scheduler), fills it with the demonstration
and generated entries that are really embedded, asks over HTTP one question after the
other, and stops everything. Every figure is printed with its limit; the exit status is
1 if one exceeds it. `--keep DIRECTORY` keeps the filled database for the next run.

The time is the client's, for the whole HTTP exchange. Database time is that of every
statement and commit that the server waited for; embedding and language model times come
from the answer's stages; the rest is "own".
"""

import argparse
import http.client
import itertools
import json
import os
import random
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import Progress, track

from accounts.acting import as_owner
from benchmarks.clients import tree

P50_MILLISECONDS = 25.0
P99_MILLISECONDS = 60.0
OWN_MILLISECONDS = 10.0
MEMORY_GIB = 1.6

_WARM_UP = 30
_BATCH = 500
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question over HTTP."""

    answer: Mapping[str, object]
    stages: Mapping[str, float]
    milliseconds: float
    sql_milliseconds: float
    sql_calls: int

    @property
    def embed_milliseconds(self) -> float:
        """The time spent in the embedding model."""
        return self.stages.get("retrieve.embed", 0.0)

    @property
    def own_milliseconds(self) -> float:
        """The time spent outside embedding, database and language model."""
        model = self.stages.get("generate", 0.0)
        return (
            self.milliseconds - self.embed_milliseconds - self.sql_milliseconds - model
        )


def main() -> int:
    """Measure and print; return the exit status."""
    options = _options()
    with ExitStack() as stack:
        directory = options.keep or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="nescio-ask-")
        )
        # Django reads its settings once, so the environment must be set before imports.
        os.environ |= {
            "NESCIO_VAR_DIR": str(directory),
            "DJANGO_SETTINGS_MODULE": "nescio.settings",
            "NESCIO_THROTTLE_ASK": "1000000/minute",
            "NESCIO_THROTTLE_USER": "1000000/minute",
            "NESCIO_LOG_LEVEL": "WARNING",
        }
        os.environ.pop("DATABASE_URL", None)
        token = stack.enter_context(_filled_system(options.entries))
        port, server = stack.enter_context(_serving())
        ask = stack.enter_context(_client(port, token))

        refused = _ask_all(ask, _unanswerable(options.questions + _WARM_UP))[_WARM_UP:]
        answered = _ask_all(ask, _answerable(options.answers))
        peak, shared = _memory(server)
    is_good = _report_refusals(refused)
    _report_answers(answered)
    return 0 if _report_memory(peak, shared) and is_good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--answers", type=int, default=20)
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY")
    return parser.parse_args()


@contextmanager
def _filled_system(entries: int) -> Iterator[str]:
    """Start the database, fill it up to `entries` and yield an agent's API token."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections

    from nescio.embedded import postgres

    postgres.start(settings.PLACES)
    try:
        call_command("migrate", verbosity=0)
        token = _fill(entries)
        connections.close_all()
        yield token
    finally:
        connections.close_all()
        postgres.stop(settings.PLACES)


def _fill(entries: int) -> str:
    from django.conf import settings
    from django.contrib.auth.models import Group, User
    from django.db import connection

    from accounts.roles import Role
    from accounts.services import create_token
    from kb.demonstration import load_demonstration
    from kb.entries.services import create_entries
    from kb.entries.values import NewEntry
    from kb.models import Audience, Entry, KnowledgeBase
    from probes import bundled
    from qa.policies.services import ensure_default_policy

    bundled.prepare(settings.PLACES.models)
    author, _ = User.objects.get_or_create(username="author", is_superuser=True)
    load_demonstration(author=author)
    knowledge_base = KnowledgeBase.objects.get()
    ensure_default_policy(knowledge_base)
    everyone = Audience.objects.filter(everyone=True).first()
    texts = _texts(random.Random(7))
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("Embedding entries", total=entries)
        while (there := Entry.objects.count()) < entries:
            batch = itertools.islice(texts, min(_BATCH, entries - there))
            create_entries(
                [
                    NewEntry(
                        knowledge_base=knowledge_base,
                        audience=everyone,
                        text=text,
                        verify=True,
                    )
                    for text in batch
                ],
                author=author,
            )
            progress.update(task, completed=there + _BATCH)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    agent, _ = User.objects.get_or_create(username="agent")
    agent.groups.set([Group.objects.get_or_create(name=Role.AGENT.value)[0]])
    return create_token(user=agent, name="benchmark").secret


def _texts(rng: random.Random) -> Iterator[str]:
    """Yield distinct sentences that a service desk might store."""
    products = ("Classic", "Gold", "Student", "Business", "Travel", "Family")
    things = (
        "replacement card", "courier delivery", "cash withdrawal", "late payment",
        "balance transfer", "paper statement", "additional card", "currency exchange",
        "travel insurance claim", "disputed payment", "PIN reminder", "limit increase",
    )  # fmt: skip
    places = (
        "in the euro area", "in Norway", "in Japan", "at the airport", "online",
        "at a partner bank", "in a shop", "on the hotline", "in the app", "by post",
    )  # fmt: skip
    for number in itertools.count(1):
        yield (
            f"For the {rng.choice(products)} card a {rng.choice(things)} "
            f"{rng.choice(places)} costs {rng.randint(1, 400)} euros and takes "
            f"{rng.randint(1, 30)} working days under tariff {number}."
        )


@contextmanager
def _serving(*, with_workers: bool = True) -> Iterator[tuple[int, psutil.Process]]:
    """Run the processes of `make up` and yield the web server's port and process."""
    from django.conf import settings

    from nescio.up.place import Address
    from nescio.up.processes import Supervisor, children, environment
    from nescio.up.session import wait_until_ready

    console = Console(stderr=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", probe.getsockname()[1])
    web, *others = children(address)
    command = tuple(
        "benchmarks.timed_wsgi:application"
        if part == "nescio.wsgi:application"
        else part
        for part in web.command
    )
    processes = (replace(web, command=command), *(others if with_workers else ()))
    for process in processes:
        process.log.parent.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(environment(address, settings.TORCH_THREADS), console.print)
    try:
        supervisor.start(processes)
        wait_until_ready(address, supervisor, processes, console)
        yield address.port, _web_server()
    finally:
        supervisor.stop(20.0)


def _web_server() -> psutil.Process:
    mine = psutil.Process().children(recursive=True)
    return next(p for p in mine if p.name() == "web server")


@contextmanager
def _client(port: int, token: str) -> Iterator[Callable[[str], Exchange]]:
    """Yield a function that asks one question over a persistent connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {
        "Authorization": f"Token {token}",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }

    def ask(question: str) -> Exchange:
        body = json.dumps({"question": question})
        begun = time.perf_counter()
        connection.request("POST", "/api/v1/ask", body, headers)
        response = connection.getresponse()
        content = response.read()
        milliseconds = (time.perf_counter() - begun) * 1000
        if response.status != http.client.OK:
            msg = f"HTTP {response.status}: {content[:500]!r}"
            raise RuntimeError(msg)
        answer = json.loads(content)
        sql, calls = _timing(response.headers["Server-Timing"])
        return Exchange(answer, answer["milliseconds"], milliseconds, sql, calls)

    try:
        yield ask
    finally:
        connection.close()


def _timing(header: str) -> tuple[float, int]:
    _, duration, description = header.split(";")
    return float(duration.removeprefix("dur=")), int(description[6:-1])


def _ask_all(
    ask: Callable[[str], Exchange], questions: Sequence[str]
) -> list[Exchange]:
    console = Console(stderr=True)
    return [ask(q) for q in track(questions, description="Asking", console=console)]


def _unanswerable(count: int) -> list[str]:
    """Return questions that no card issuer's knowledge covers."""
    rng = random.Random(11)
    subjects = ("moons", "rivers", "symphonies", "volcanoes", "penguins", "novels", "mushrooms", "castles")  # fmt: skip
    places = ("Jupiter", "Brazil", "Vienna", "Iceland", "Antarctica", "Portugal", "Mongolia", "Bavaria")  # fmt: skip
    return [
        f"How many {rng.choice(subjects)} of {rng.choice(places)} were described "
        f"before the year {rng.randint(1200, 2020)}?"
        for _ in range(count)
    ]


def _answerable(count: int) -> list[str]:
    from qa.evaluation.cases import read_cases
    from qa.evaluation.suites.own import QUESTIONS

    cases = read_cases(QUESTIONS)
    known = [case.question for case in cases if case.is_answerable and not case.gate]
    return known[:count]


def _memory(server: psutil.Process) -> tuple[int, int]:
    """Return peak resident and current proportional memory (PSS), in bytes.

    The peak is that of the largest process. The proportional memory is the sum over all
    processes of the web server, with shared pages counted once.
    """
    processes = tree(server)
    peak = max(_peak_bytes(process.pid) for process in processes)
    return peak, sum(process.memory_full_info().pss for process in processes)


def _peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _report_refusals(refused: Sequence[Exchange]) -> bool:
    gates = Counter(str(exchange.answer["gate"]) for exchange in refused)
    print(f"\n{len(refused)} questions, decided by {dict(gates)}")
    total = [exchange.milliseconds for exchange in refused]
    print(f"{'milliseconds':24}{'p50':>9}{'p99':>9}")
    stages = list(dict.fromkeys(s for e in refused for s in e.stages))
    for stage in stages:
        _line(f"  {stage}", [e.stages.get(stage, 0.0) for e in refused])
    _line("embedding", [e.embed_milliseconds for e in refused])
    _line("database", [e.sql_milliseconds for e in refused])
    _line("own", [e.own_milliseconds for e in refused])
    _line("whole exchange", total)
    calls = Counter(exchange.sql_calls for exchange in refused)
    print(f"database calls a question: {dict(sorted(calls.items()))}\n")
    own = statistics.median(exchange.own_milliseconds for exchange in refused)
    checks = (
        gates.keys() == {"hard_refusal"},
        _judge("hard refusal p50, ms", statistics.median(total), P50_MILLISECONDS),
        _judge("hard refusal p99, ms", _p99(total), P99_MILLISECONDS),
        _judge("own share p50, ms", own, OWN_MILLISECONDS),
    )
    return all(checks)


def _report_answers(answered: Sequence[Exchange]) -> None:
    if not answered:
        return
    outcomes = Counter(str(exchange.answer["outcome"]) for exchange in answered)
    models = [exchange.stages.get("generate", 0.0) for exchange in answered]
    total = statistics.median(exchange.milliseconds for exchange in answered)
    print(
        f"{len(answered)} answerable questions: {dict(outcomes)}, p50 {total:.0f} ms, "
        f"of that language model {statistics.median(models):.0f} ms"
    )


def _report_memory(peak: int, shared: int) -> bool:
    print(f"web server now, proportional: {shared / _GIB:.2f} GiB")
    return _judge("web server peak resident, GiB", peak / _GIB, MEMORY_GIB)


def _judge(name: str, value: float, limit: float) -> bool:
    verdict = "ok" if value <= limit else "OVER"
    print(f"{name:32}{value:>9.2f}   limit {limit:>6.2f}   {verdict}")
    return value <= limit


def _line(name: str, values: Sequence[float]) -> None:
    print(f"{name:24}{statistics.median(values):>9.2f}{_p99(values):>9.2f}")


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


if __name__ == "__main__":
    with as_owner("benchmarks"):
        sys.exit(main())
