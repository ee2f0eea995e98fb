"""Compare the latency of hard refusals with and without load on the language model.

    python -m benchmarks.overload [--clients 64] [--seconds 120] [--questions 200]

Starts a separate system without the verifier, so that demonstration questions go to the
bundled language model. One client asks questions that no entry answers, first alone and
then while 64 others ask the language model, waiting as long as the `Retry-After` of a
503 asks them to. The exit status is 1 if the p99 of a refusal under load is over four
times its p99 alone.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.clients import Ledger, System, quantile, system

MAX_RATIO = 4.0
_WARM_UP = 20


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    import django

    django.setup()
    from django.conf import settings

    from probes import bundled
    from qa.evaluation.cases import read_cases
    from qa.evaluation.suites.own import QUESTIONS

    bundled.prepare(settings.PLACES.models)
    known = [case.question for case in read_cases(QUESTIONS) if case.is_answerable]
    with tempfile.TemporaryDirectory(prefix="nescio-overload-") as place:
        Path(place).chmod(0o755)
        var = Path(place) / "var"
        with system(var, settings.PLACES.models, NESCIO_VERIFIER="none") as running:
            _refusals(running, questions=_WARM_UP)
            alone = _refusals(running, questions=options.questions)
            ledger = Ledger()
            end = threading.Event()
            threads = [
                threading.Thread(
                    target=_ask, args=(running, ledger, known, number, end)
                )
                for number in range(options.clients)
            ]
            for thread in threads:
                thread.start()
            time.sleep(5)  # until the queue is full
            loaded = _refusals(running, seconds=options.seconds)
            end.set()
            for thread in threads:
                thread.join()
    return _report(alone, loaded, ledger)


def _ask(
    running: System,
    ledger: Ledger,
    known: Sequence[str],
    number: int,
    end: threading.Event,
) -> None:
    client = running.client(ledger)
    while not end.is_set():
        client.ask(known[number % len(known)], kind="known")
        end.wait(client.retry_after)
        number += 1


def _refusals(
    running: System, *, questions: int = 1_000_000, seconds: float = float("inf")
) -> list[float]:
    client, end = running.client(), time.monotonic() + seconds
    while questions and time.monotonic() < end:
        client.ask()
        questions -= 1
    failed = [each for each in client.ledger.exchanges if each.status != 200]
    if failed:
        print(
            f"{len(failed)} refusals failed: {Counter(each.status for each in failed)}"
        )
    return [each.seconds for each in client.ledger.exchanges]


def _report(alone: Sequence[float], loaded: Sequence[float], ledger: Ledger) -> int:
    for name, seconds in (("alone", alone), ("under load", loaded)):
        p50, p99 = (1000 * quantile(seconds, share) for share in (0.5, 0.99))
        print(
            f"refusals {name:11}{len(seconds):>6}  p50 {p50:>7.0f} ms  p99 {p99:>7.0f} ms"
        )
    answered = [each.seconds for each in ledger.exchanges if each.status == 200]
    busy = [each.seconds for each in ledger.exchanges if each.status == 503]
    print(
        f"questions to the model: {len(answered)} decided, the slowest "
        f"{max(answered, default=0):.1f} s; {len(busy)} sent away, p50 "
        f"{1000 * quantile(busy, 0.5):.0f} ms"
    )
    ratio = quantile(loaded, 0.99) / quantile(alone, 0.99)
    print(f"p99 under load is {ratio:.1f} times that alone (limit {MAX_RATIO:.0f})")
    return 0 if ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
