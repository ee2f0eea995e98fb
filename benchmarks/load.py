"""Measure questions per second for 1 to 64 clients, by number of web processes.

    python -m benchmarks.load [--processes 2] [--clients 1 4 16 64] [--seconds 15]
        [--rows 5000]

Starts a separate system with the demonstration for one web process and for
`--processes`. Clients in a separate process ask one question after the other over HTTP:
some that no entry is near to (refused without a model) and some that the
demonstration's entries answer. Prints questions per second, latencies, the processor
time that a question takes in the web server, the database and the client, the web
server's proportional memory, and the ratio of several processes to one. Then 16 clients
ask without a pause while `--rows` rows are imported (0: skip this part): 60 % of the
questions are near no entry, 20 % are answered by entries, and 20 % go to the language
model. The exit status is 1 if several processes answer fewer questions per second than
one does.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Self

from benchmarks.clients import (
    Exchange,
    Ledger,
    System,
    processor_seconds,
    quantile,
    system,
    tree,
)

_CLIENTS_OF_MIX = 16


_SHARES = {"refusals": 0.6, "answers": 0.2, "model": 0.2}
Kinds = Mapping[str, Sequence[str]]
"""{kind: its questions}; for a kind without any, every question is unique."""


@dataclass(frozen=True, slots=True)
class Line:
    """The results for one kind of question; times in milliseconds.

    `away` counts responses of 503 with `Retry-After`. `web`, `database` and `client`
    are the processor time per question.
    """

    rate: float
    p50: float
    p95: float
    p99: float
    away: int
    failed: int
    web: float = 0.0
    database: float = 0.0
    client: float = 0.0

    @classmethod
    def of(cls, exchanges: Sequence[Exchange], seconds: float) -> Self:
        times = [each.seconds for each in exchanges if each.status == 200]
        away = sum(each.status == 503 for each in exchanges)
        p50, p95, p99 = (
            1000 * quantile(times, share) if times else float("nan")
            for share in (0.5, 0.95, 0.99)
        )
        failed = len(exchanges) - len(times) - away
        return cls(len(times) / seconds, p50, p95, p99, away, failed)

    def __str__(self) -> str:
        return (
            f"{self.rate:>6.1f}/s  p50 {self.p50:>6.0f}  p95 {self.p95:>6.0f}  "
            f"p99 {self.p99:>6.0f} ms  {self.away} sent away, {self.failed} failed"
        )


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rows", type=int, default=5_000)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    import django

    django.setup()
    found = {
        processes: _measure(processes, options)
        for processes in dict.fromkeys((1, options.processes))
    }
    worst = float("inf")
    print(f"\n{options.processes} processes against one, questions per second")
    for key, before in found[1].items():
        ratio = found[options.processes][key].rate / before.rate
        worst = min(worst, ratio if key[1] > 1 else worst)
        print(f"{key[0]:9} {key[1]:>3} clients: {ratio:.2f} times")
    return 0 if worst >= 1 else 1


def _measure(
    processes: int, options: argparse.Namespace
) -> dict[tuple[str, int], Line]:
    from django.conf import settings

    from probes import bundled
    from qa.evaluation.cases import read_cases
    from qa.evaluation.suites.own import QUESTIONS

    bundled.prepare(settings.PLACES.models)
    with tempfile.TemporaryDirectory(prefix="nescio-load-") as place:
        Path(place).chmod(0o755)
        with system(
            Path(place) / "var",
            settings.PLACES.models,
            NESCIO_WEB_PROCESSES=str(processes),
        ) as running:
            cases = [each.question for each in read_cases(QUESTIONS)]
            by = {each: _decided_by(running, each) for each in cases}
            known = [each for each, kind in by.items() if kind == "answers"]
            written = [each for each, kind in by.items() if kind == "model"]
            print(
                f"\n{processes} processes; {len(known)} questions that entries answer, "
                f"{len(written)} for the language model"
            )
            found = {}
            for kind, questions in (("refusals", ()), ("answers", known)):
                for count in options.clients:
                    line = _line(running, {kind: questions}, count, options.seconds)
                    found[kind, count] = line
                    print(
                        f"{kind:9} {count:>3} clients {line}  processor: "
                        f"web {line.web:.1f}  database {line.database:.1f}  "
                        f"client {line.client:.1f} ms",
                        flush=True,
                    )
            print(f"web server's memory: {_mebibytes(running)} MiB")
            if options.rows:
                _mix(running, known, written, options)
    return found


def _decided_by(running: System, question: str) -> str:
    said = running.client().ask(question, kind="known")
    if said["gate"] in {"verbatim", "entry"}:
        return "answers" if said["answered"] else "refused"
    return "refused" if said["gate"] == "hard_refusal" else "model"


def _mix(
    running: System,
    known: Sequence[str],
    written: Sequence[str],
    options: argparse.Namespace,
) -> None:
    """Ask questions of all kinds during an import; print a line for each kind."""
    import_run = _import(running, options.rows)
    kinds: Kinds = {"refusals": (), "answers": known, "model": written}
    exchanges, _ = _asked(running, kinds, _CLIENTS_OF_MIX, 2 * options.seconds)
    job = running.client().send("job", "GET", f"imports/{import_run}")
    print(
        f"{_CLIENTS_OF_MIX} clients ask of all kinds, {options.rows} rows are imported "
        f"({job['state']} at the end)"
    )
    for kind in kinds:
        line = Line.of([e for e in exchanges if e.kind == kind], 2 * options.seconds)
        print(f"{kind:9} {line}", flush=True)


def _import(running: System, rows: int) -> str:
    """Start an import of `rows` new entries; return its id."""
    texts = (f"Locker {n} of hall {n % 97} costs {n % 13} euros." for n in range(rows))
    said = running.client().send(
        "import",
        "POST",
        "imports",
        files={"file": ("lockers.csv", "\n".join(["text", *texts]))},
        data={"audience": running.audience},
    )
    return str(said["id"])


def _line(running: System, kinds: Kinds, count: int, seconds: float) -> Line:
    parts = (running.head("web server"), running.postmaster())
    worked = [processor_seconds(part) for part in parts]
    exchanges, own = _asked(running, kinds, count, seconds)
    worked = [
        processor_seconds(part) - was for part, was in zip(parts, worked, strict=True)
    ]
    web, database, client = (1000 * each / len(exchanges) for each in (*worked, own))
    return replace(
        Line.of(exchanges, seconds), web=web, database=database, client=client
    )


def _asked(
    running: System, kinds: Kinds, count: int, seconds: float
) -> tuple[list[Exchange], float]:
    """Ask from a child process, so that the clients have an interpreter to themselves.

    Returns the exchanges, and the processor time of the clients in seconds.
    """
    context = multiprocessing.get_context("fork")
    queue: SimpleQueue[tuple[list[Exchange], float]] = context.SimpleQueue()
    asking = context.Process(
        target=_ask_all, args=(running, kinds, count, seconds, queue)
    )
    asking.start()
    found = queue.get()
    asking.join()
    return found


def _ask_all(
    running: System,
    kinds: Kinds,
    count: int,
    seconds: float,
    queue: "SimpleQueue[tuple[list[Exchange], float]]",
) -> None:
    ledger = Ledger()
    began, end = time.process_time(), time.monotonic() + seconds
    names, shares = list(kinds), [_SHARES[kind] for kind in kinds]

    def ask(number: int) -> None:
        chance, client = random.Random(number), running.client(ledger)
        while time.monotonic() < end:
            (kind,) = chance.choices(names, shares)
            client.ask(chance.choice(kinds[kind]) if kinds[kind] else "", kind=kind)

    threads = [threading.Thread(target=ask, args=(each,)) for each in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.put((ledger.exchanges, time.process_time() - began))


def _mebibytes(running: System) -> int:
    """Return the proportional memory of all web server processes in MiB."""
    held = [p.memory_full_info().pss for p in tree(running.head("web server"))]
    return sum(held) >> 20


if __name__ == "__main__":
    sys.exit(main())
