"""Questions a second by 1 to 64 clients, with one process of the web server and with several.

    python -m benchmarks.load [--processes 2] [--clients 1 4 16 64] [--seconds 15]

Brings up a system of its own for each number of processes, with the demonstration. Clients
ask over HTTP one question after the other, from a process of their own: what nothing is near
to (refused without a model) and what the demonstration's entries answer. Prints questions
a second, latencies, the processor time that a question takes of web server, database and
client, and the web server's proportional memory, and the ratio of several processes to
one. The exit status is 1 where several answer fewer questions a second.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from benchmarks.clients import (
    Exchange,
    Ledger,
    System,
    processor_seconds,
    quantile,
    system,
    tree,
)

_KINDS = ("refusals", "answers")


@dataclass(frozen=True, slots=True)
class Line:
    """What clients of one kind got; times in milliseconds.

    `web`, `database` and `client` are the processor time of one question.
    """

    rate: float
    p50: float
    p95: float
    p99: float
    failed: int
    web: float
    database: float
    client: float


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    import django

    django.setup()
    found = {
        processes: _measure(processes, options.clients, options.seconds)
        for processes in dict.fromkeys((1, options.processes))
    }
    worst = float("inf")
    print(f"\n{options.processes} processes against one, questions a second")
    for key, before in found[1].items():
        ratio = found[options.processes][key].rate / before.rate
        worst = min(worst, ratio if key[1] > 1 else worst)
        print(f"{key[0]:9} {key[1]:>3} clients: {ratio:.2f} times")
    return 0 if worst >= 1 else 1


def _measure(
    processes: int, clients: Sequence[int], seconds: float
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
            known = [each for each in cases if _is_answered_by_entries(running, each)]
            print(
                f"\n{processes} processes; {len(known)} questions that entries answer"
            )
            found = {}
            for kind, questions in zip(_KINDS, ((), known), strict=True):
                for count in clients:
                    line = _line(running, questions, count, seconds)
                    found[kind, count] = line
                    print(
                        f"{kind:9} {count:>3} clients {line.rate:>6.1f}/s  "
                        f"p50 {line.p50:>6.0f}  p95 {line.p95:>6.0f}  "
                        f"p99 {line.p99:>6.0f} ms  {line.failed} failed  processor: "
                        f"web {line.web:.1f}  database {line.database:.1f}  "
                        f"client {line.client:.1f} ms",
                        flush=True,
                    )
            print(f"web server's memory: {_mebibytes(running)} MiB")
    return found


def _is_answered_by_entries(running: System, question: str) -> bool:
    said = running.client().ask(question, kind="known")
    return bool(said["answered"] and said["gate"] in {"verbatim", "entry"})


def _line(
    running: System, questions: Sequence[str], count: int, seconds: float
) -> Line:
    """Ask from a process of its own, so that no client waits for another's interpreter."""
    context = multiprocessing.get_context("fork")
    queue: SimpleQueue[tuple[list[Exchange], float]] = context.SimpleQueue()
    parts = (running.head("web server"), running.postmaster())
    worked = [processor_seconds(part) for part in parts]
    asking = context.Process(
        target=_ask_all, args=(running, questions, count, seconds, queue)
    )
    asking.start()
    exchanges, own = queue.get()
    asking.join()
    worked = [
        processor_seconds(part) - was for part, was in zip(parts, worked, strict=True)
    ]
    times = [each.seconds for each in exchanges if each.status == 200]
    p50, p95, p99 = (1000 * quantile(times, share) for share in (0.5, 0.95, 0.99))
    web, database, client = (1000 * each / len(exchanges) for each in (*worked, own))
    failed = len(exchanges) - len(times)
    rate = len(times) / seconds
    return Line(rate, p50, p95, p99, failed, web, database, client)


def _ask_all(
    running: System,
    questions: Sequence[str],
    count: int,
    seconds: float,
    queue: "SimpleQueue[tuple[list[Exchange], float]]",
) -> None:
    ledger = Ledger()
    began, end = time.process_time(), time.monotonic() + seconds

    def ask(number: int) -> None:
        chance, client = random.Random(number), running.client(ledger)
        while time.monotonic() < end:
            client.ask(chance.choice(questions) if questions else "")

    threads = [threading.Thread(target=ask, args=(each,)) for each in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.put((ledger.exchanges, time.process_time() - began))


def _mebibytes(running: System) -> int:
    """Return the proportional memory of the web server's processes together."""
    held = [p.memory_full_info().pss for p in tree(running.head("web server"))]
    return sum(held) >> 20


if __name__ == "__main__":
    sys.exit(main())
