"""Measure what conflict detection adds to saving one entry.

    python -m benchmarks.conflicts [--entries 10000] [--saves 60]

Fills a separate database with entries of 8 to 40 words, embedded by the bundled model.
Then a curator writes entries one after the other, each a stored one with a different
ending, and the check that REST and the admin run on each is timed. Prints medians and
95th percentiles in milliseconds: the whole check, the share of the database by
statement, and the judgement of all pairs of an entry; and the processor time of this
process and the database's, which other load hardly affects.
"""

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from accounts.acting import acting_for, as_owner
from benchmarks.bulk_embedding import texts_of
from benchmarks.row_security import served_seconds

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_WARM_UP = 5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=60)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    os.environ.setdefault("NESCIO_LOG_LEVEL", "ERROR")
    import django

    django.setup()
    from benchmarks.kill_worker import _own_database

    with as_owner("benchmarks"), _own_database():
        curator, texts = _fill(options.entries)
        with acting_for(curator):
            _measure(curator, texts, options.saves)


def _fill(count: int) -> "tuple[User, list[str]]":
    from django.db import connection

    from tests.factories import make_curator, make_entries

    texts = texts_of(count, 1)
    begun = time.perf_counter()
    make_entries(texts)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    print(f"{count} entries in {time.perf_counter() - begun:.0f} s", flush=True)
    return make_curator(), texts


def _measure(curator: "User", texts: list[str], saves: int) -> None:
    from django.db import connection

    from kb.upkeep.conflict_resolution import resolve_written
    from tests.factories import make_entry

    times: dict[str, list[float]] = defaultdict(list)
    processor: tuple[list[float], list[float]] = ([], [])
    for turn in range(saves + _WARM_UP):
        words = texts[turn * len(texts) // (saves + _WARM_UP)].rstrip(".").split()
        entry = make_entry(f"{' '.join(words[:-2])} abroad {turn}.", author=curator)
        spent: dict[str, float] = defaultdict(float)
        worked = time.process_time(), served_seconds(connection.connection)
        with _timed_judgement(spent), connection.execute_wrapper(_timer(spent)):
            begun = time.perf_counter()
            resolve_written(entry.pk, by=curator)
            spent["whole check"] = time.perf_counter() - begun
        served = served_seconds(connection.connection) - worked[1]
        processor[0].append((time.process_time() - worked[0]) * 1000)
        processor[1].append(served * 1000)
        if turn >= _WARM_UP:
            for name, seconds in spent.items():
                times[name].append(seconds * 1000)
    for name, each in sorted(
        times.items(), key=lambda item: -statistics.median(item[1])
    ):
        high = sorted(each)[int(0.95 * (len(each) - 1))]
        print(
            f"{statistics.median(each):7.2f} {high:7.2f} ms, of {len(each):3}: {name}"
        )
    ours, servers = (statistics.mean(each[_WARM_UP:]) for each in processor)
    print(f"processor time, mean: {ours:.2f} ms here, {servers:.2f} ms the database")


def _timer(spent: dict[str, float]) -> Callable[..., object]:
    def execute(run: Callable[..., object], sql: str, *rest: object) -> object:
        begun = time.perf_counter()
        try:
            return run(sql, *rest)
        finally:
            name = "nearest entries" if "near AS" in sql else "other statements"
            spent[name] += time.perf_counter() - begun

    return execute


@contextmanager
def _timed_judgement(spent: dict[str, float]) -> Iterator[None]:
    """Time `judge` as conflict detection calls it."""
    from kb.conflicts import finding as conflict_finding
    from kb.conflicts.judgement import judge

    def timed(*statements: Any, **more: Any) -> Any:
        begun = time.perf_counter()
        judgement = judge(*statements, **more)
        spent["judgement"] += time.perf_counter() - begun
        return judgement

    with patch.object(conflict_finding, "judge", timed):
        yield


if __name__ == "__main__":
    main()
