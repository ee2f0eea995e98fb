"""Hold a mixed load for an hour: memory, errors and latency along the way.

    python -m benchmarks.soak [--minutes 60] [--clients 8] [--plot soak.svg]

Brings up a system of its own with `manage.py up`; clients ask (one question in five is a
demonstration question, which may need the language model), vote and import. Every ten
seconds the proportional memory of web server and workers is read. It prints one line for
each tenth of the run, draws memory and p99 over time, and compares the last tenth with the
second one, in which everything has been loaded. The exit status is 1 where memory grew by
5 % or more, a request failed otherwise than by 503, or a write is lost or there twice.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.clients import Exchange, Ledger, System, compare, load, quantile, system

MAX_GROWTH = 0.05
_SAMPLE_SECONDS = 10.0
_PARTS = 10
_MEBIBYTE = 1024**2


@dataclass(frozen=True, slots=True)
class Sample:
    """Proportional memory, in MiB, at a time since the epoch."""

    at: float
    web: float
    workers: float


@dataclass(frozen=True, slots=True)
class Part:
    """A tenth of the run."""

    minutes: float
    web: float
    workers: float
    refused: Sequence[float]
    known: Sequence[float]
    busy: int
    errors: int

    @property
    def memory(self) -> float:
        return self.web + self.workers


def main() -> int:
    """Run, print and draw; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
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
                samples = _sample(running, began + 60 * options.minutes)
            lost, doubled = compare(running, ledger)
    parts = _parts(ledger.exchanges, samples, began)
    _report(parts)
    _draw(parts, options.plot)
    growth = parts[-1].memory / parts[1].memory - 1
    errors = sum(part.errors for part in parts)
    print(f"\nmemory from the second tenth to the last: {growth:+.1%} (limit {MAX_GROWTH:+.0%})")  # fmt: skip
    print(f"requests: {len(ledger.exchanges)}, errors: {errors}")
    print(f"acknowledged writes lost: {lost.total()}, there twice: {doubled.total()}")
    print(f"plot: {options.plot}")
    is_good = growth < MAX_GROWTH and not errors and not lost.total()
    return 0 if is_good and not doubled.total() else 1


def _sample(running: System, until: float) -> list[Sample]:
    samples = []
    while time.time() < until:
        time.sleep(_SAMPLE_SECONDS)
        samples.append(
            Sample(time.time(), _memory(running, "nescio.web_server"), _memory(running, "worker"))
        )  # fmt: skip
    return samples


def _memory(running: System, word: str) -> float:
    head = psutil.Process(running.running.process.pid)
    trees = [each for each in head.children() if word in each.cmdline()]
    processes = [p for each in trees for p in (each, *each.children(recursive=True))]
    return sum(_proportional(process) for process in processes) / _MEBIBYTE


def _proportional(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss)
    except psutil.NoSuchProcess:  # the reader of an import lives for a second
        return 0.0


def _parts(
    exchanges: Sequence[Exchange], samples: Sequence[Sample], began: float
) -> list[Part]:
    length = (samples[-1].at - began) / _PARTS
    parts = []
    for number in range(_PARTS):
        start, end = began + number * length, began + (number + 1) * length
        inside = [each for each in exchanges if start <= each.began < end]
        held = [each for each in samples if start <= each.at <= end] or [samples[-1]]
        parts.append(
            Part(
                minutes=(end - began) / 60,
                web=statistics.median(each.web for each in held),
                workers=statistics.median(each.workers for each in held),
                refused=[e.seconds for e in inside if e.kind == "ask"],
                known=[e.seconds for e in inside if e.kind == "known"],
                busy=sum(each.status == 503 for each in inside),
                errors=sum(each.is_error for each in inside),
            )
        )
    return parts


def _report(parts: Sequence[Part]) -> None:
    print(
        f"\n{'minute':>7}{'web, MiB':>10}{'workers':>9}{'refusals':>10}{'p50, ms':>9}{'p99, ms':>9}"
        f"{'known':>7}{'p50, ms':>9}{'p99, ms':>9}{'503':>6}{'errors':>8}"
    )
    for part in parts:
        columns = "".join(
            f"{len(some):>{width}}{1000 * quantile(some, 0.5):>9.0f}"
            f"{1000 * quantile(some, 0.99):>9.0f}"
            for some, width in ((part.refused, 10), (part.known, 7))
        )
        print(
            f"{part.minutes:>7.1f}{part.web:>10.0f}{part.workers:>9.0f}{columns}"
            f"{part.busy:>6}{part.errors:>8}"
        )


def _draw(parts: Sequence[Part], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    memory, latency = figure.subplots(2, 1, sharex=True)
    minutes = [part.minutes for part in parts]
    memory.plot(minutes, [part.web for part in parts], marker="o", label="web server")
    memory.plot(minutes, [part.workers for part in parts], marker="o", label="workers")
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
