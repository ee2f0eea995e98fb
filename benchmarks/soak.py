"""Run a mixed load for an hour and record memory, errors and latency.

    python -m benchmarks.soak [--minutes 60] [--warm-up 12] [--clients 8] [--plot soak.svg]

Starts a separate system with `manage.py up`; clients ask (one question in five is a
demonstration question, which may need the language model), vote and import. Every ten
seconds the proportional memory of each part is read: web server, workers, scheduler,
the fork server, and PostgreSQL, whose shared buffers fill with use. It prints one line
for each twelfth of the run, plots memory and p99 over time, and compares the last
twelfth with the first one after the warm-up, in which workers load their models and
threads reach their largest tensors. The exit status is 1 if memory without PostgreSQL
grew by 5 % or more, a request failed other than with 503, or a write is lost or stored
twice.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.clients import (
    Exchange,
    Ledger,
    System,
    faults_of_writes,
    load,
    quantile,
    system,
    tree,
)

MAX_GROWTH = 0.05
_SAMPLE_SECONDS = 10.0
_SAID_EVERY = 30  # samples between progress messages
_PARTS = 12
_DATABASE = "PostgreSQL"
_MEBIBYTE = 1024**2


Memory = Mapping[str, float]  # proportional, in MiB, by part of the system


@dataclass(frozen=True, slots=True)
class Part:
    """The results for a twelfth of the run; times of requests in seconds."""

    begins: float
    minutes: float
    held: Memory
    refused: Sequence[float]
    known: Sequence[float]
    busy: int
    errors: int

    @property
    def memory(self) -> float:
        return sum(held for name, held in self.held.items() if name != _DATABASE)


def main() -> int:
    """Run, print and plot; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--warm-up", type=float, default=12, help="minutes")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--plot", type=Path, default=Path("soak.svg"))
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    import django

    django.setup()
    from django.conf import settings

    from probes import bundled
    from qa.evaluation.cases import read_cases
    from qa.evaluation.suites.own import QUESTIONS

    bundled.prepare(settings.PLACES.models)
    known = [case.question for case in read_cases(QUESTIONS)]
    ledger = Ledger()
    with tempfile.TemporaryDirectory(prefix="nescio-soak-") as place:
        Path(place).chmod(0o755)
        with system(Path(place) / "var", settings.PLACES.models) as running:
            began = time.time()
            with load(running, ledger, options.clients, known):
                samples = _sample(running, ledger, began + 60 * options.minutes)
            faults = faults_of_writes(running, ledger)
    parts = _parts(ledger.exchanges, samples, began)
    _report(parts)
    _draw(parts, options.plot)
    warm = [part for part in parts[:-1] if part.begins >= options.warm_up] or parts[-2:]
    growth = parts[-1].memory / warm[0].memory - 1
    errors = sum(part.errors for part in parts)
    print(
        f"\nmemory, MiB, {warm[0].begins:.0f} to {warm[0].minutes:.0f} min and at the end:"
    )
    for name, before in warm[0].held.items():
        print(f"{name:>20}{before:>7.0f}{parts[-1].held[name]:>7.0f}")
    print(f"growth after the warm-up, without {_DATABASE}: {growth:+.1%} (limit {MAX_GROWTH:+.0%})")  # fmt: skip
    print(f"requests: {len(ledger.exchanges)}, errors: {errors}")
    print(f"plot: {options.plot}")
    return 1 if growth >= MAX_GROWTH or errors or faults else 0


def _sample(
    running: System, ledger: Ledger, until: float
) -> list[tuple[float, Memory]]:
    samples: list[tuple[float, Memory]] = []
    while time.time() < until:
        time.sleep(_SAMPLE_SECONDS)
        samples.append((time.time(), held := _memory(running)))
        if len(samples) % _SAID_EVERY == 0:
            errors = sum(each.is_error for each in ledger.exchanges)
            print(
                f"{(until - time.time()) / 60:.0f} min left: {sum(held.values()):.0f} MiB, "
                f"{len(ledger.exchanges)} requests, {errors} errors",
                flush=True,
            )
    return samples


def _memory(running: System) -> Memory:
    """Return the memory of each part, by the name of its process group leader."""
    held: defaultdict[str, float] = defaultdict(float)
    up = psutil.Process(running.running.process.pid)
    for process in up.children(recursive=True):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            head = psutil.Process(os.getpgid(process.pid))
            held[head.name()] += process.memory_full_info().pss / _MEBIBYTE
    for process in tree(running.postmaster()):
        with suppress(psutil.NoSuchProcess):
            held[_DATABASE] += process.memory_full_info().pss / _MEBIBYTE
    return held


def _parts(
    exchanges: Sequence[Exchange],
    samples: Sequence[tuple[float, Memory]],
    began: float,
) -> list[Part]:
    length = (samples[-1][0] - began) / _PARTS
    names = sorted({name for _, held in samples for name in held})
    parts = []
    for number in range(_PARTS):
        start, end = began + number * length, began + (number + 1) * length
        inside = [each for each in exchanges if start <= each.began < end]
        held = [each for at, each in samples if start <= at <= end] or [samples[-1][1]]
        parts.append(
            Part(
                begins=(start - began) / 60,
                minutes=(end - began) / 60,
                held={
                    name: statistics.median(each.get(name, 0.0) for each in held)
                    for name in names
                },
                refused=[e.seconds for e in inside if e.kind == "ask"],
                known=[e.seconds for e in inside if e.kind == "known"],
                busy=sum(each.status == 503 for each in inside),
                errors=sum(each.is_error for each in inside),
            )
        )
    return parts


def _report(parts: Sequence[Part]) -> None:
    print(
        f"\n{'minute':>7}{'MiB':>7}{'refusals':>10}{'p50, ms':>9}{'p99, ms':>9}"
        f"{'known':>7}{'p50, ms':>9}{'p99, ms':>9}{'503':>6}{'errors':>8}"
    )
    for part in parts:
        columns = "".join(
            f"{len(some):>{width}}{1000 * quantile(some, 0.5):>9.0f}"
            f"{1000 * quantile(some, 0.99):>9.0f}"
            for some, width in ((part.refused, 10), (part.known, 7))
        )
        print(
            f"{part.minutes:>7.1f}{part.memory:>7.0f}{columns}"
            f"{part.busy:>6}{part.errors:>8}"
        )


def _draw(parts: Sequence[Part], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    memory, latency = figure.subplots(2, 1, sharex=True)
    minutes = [part.minutes for part in parts]
    for name in parts[0].held:
        memory.plot(
            minutes, [part.held[name] for part in parts], marker="o", label=name
        )
    memory.set_ylabel("memory, MiB")
    memory.set_ylim(bottom=0)
    memory.legend()
    for name, of in (("refusals", "refused"), ("demonstration questions", "known")):
        seconds = [1000 * quantile(getattr(part, of), 0.99) for part in parts]
        latency.plot(minutes, seconds, marker="o", label=name)
    latency.set_yscale("log")
    latency.set_ylabel("p99, ms")
    latency.set_xlabel("minutes")
    latency.legend()
    figure.savefig(file)


if __name__ == "__main__":
    sys.exit(main())
