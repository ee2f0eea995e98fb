"""Measure search in a million entries: loading, indexing, recall, latency, decisions.

    python -m benchmarks.million DIRECTORY [--entries 1000000] [--decisions 10000]
        [--questions 500] [--half] [--yes]

Starts a separate PostgreSQL in DIRECTORY and fills it by COPY with entries of three
vectors each, grouped in topics. Each chunk of entries is drawn from a seed of its own,
so that no model has to run, with distances like those of the bundled model
(`benchmarks.million_rows`). What was loaded and indexed is kept there: an interrupted
run continues, and a larger --entries adds to it. Prints what the run will cost and asks
first, unless --yes is given.

Exact search is computed in numpy from the same vectors. The search measured is the
product's (`kb.search`, with row-level security, in this process), given the question's
vector. REST adds embedding and HTTP (benchmarks/ask.py) and, before a refusal, a search
of what the asker may not see, which is measured separately. Half of the questions are
about topics of the entries ("near"), half about others ("far"), of which most are
refused. --half also measures an index in half precision. The exit status is 1 if a
recall@4 is below 0.99, a p99 is above 20 ms, or a question is decided differently than
with exact search.
"""

# ruff: noqa: E402  # the directory must be known before Django reads its settings
import argparse
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


OPTIONS = _options()
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "nescio.settings",
    "NESCIO_VAR_DIR": str(OPTIONS.directory.resolve()),
}
os.environ.pop("DATABASE_URL", None)

import django

django.setup()

import psutil
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone

from accounts.acting import as_owner
from benchmarks.clients import tree
from benchmarks.million_rows import (
    CHUNK,
    VECTORS,
    VERIFIED_ONE_IN,
    count_loaded,
    find_truths,
    load,
    make_foundations,
    make_questions,
)
from benchmarks.million_search import (
    Case,
    compare_decisions,
    measure_case,
    measure_half,
    measure_withheld,
    print_heads,
    vector_of,
    write_until_stopped,
    writes_going_on,
)
from benchmarks.recall import (
    DIMENSIONS,
    SHARES,
    make_texts,
    make_words,
    reader_of,
)
from kb.embedding import vector_index
from kb.models import Audience, EmbeddingModel, KnowledgeBase
from kb.types import Scope
from nescio.embedded import postgres

_TABLES = (
    "kb_entry", "kb_revision", "kb_entryembedding", "kb_halfvector", "kb_upkeep",
)  # fmt: skip
# KiB of disk and milliseconds per entry, measured at 100,000 entries on one core.
_DISK, _TIME = 21.0, 4.0


def build_indexes() -> None:
    """Build the product's index and, with --half, one in half precision beside it."""
    model = EmbeddingModel.objects.get(state="active")
    if not vector_index.is_ready(model):
        memory = psutil.virtual_memory().total // 2**20 // 3
        with connection.cursor() as cursor:
            cursor.execute(f"SET maintenance_work_mem = '{memory}MB'")
        with measured(f"product's vector index built with up to {memory} MiB"):
            vector_index.build(model)
    print(f"product's vector index: {vector_index.size_bytes(model) / 2**20:.0f} MiB")
    if not OPTIONS.half:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('million_half')")
        if cursor.fetchone()[0] is None:
            with measured("half-precision index built"):
                cursor.execute(
                    "CREATE INDEX million_half ON kb_halfvector USING hnsw"
                    f" ((half::halfvec({DIMENSIONS})) halfvec_l2_ops)"
                    " WITH (m = 16, ef_construction = 128)"
                )
        cursor.execute("SELECT pg_relation_size('million_half') / 2^20")
        print(f"half-precision index: {cursor.fetchone()[0]:.0f} MiB")


@contextmanager
def measured(name: str) -> Iterator[None]:
    """Print how long the block takes, and the database's peak private memory."""
    found = postgres.running(settings.PLACES)
    server = psutil.Process(found.pid) if found else None
    end, most = threading.Event(), [0]

    def sample() -> None:
        while not end.wait(2):
            own = 0
            for each in tree(server):
                try:
                    own += each.memory_full_info().uss
                except psutil.NoSuchProcess:  # a backend that has just ended
                    continue
            most[0] = max(most[0], own)

    thread = threading.Thread(target=sample)
    begun = time.perf_counter()
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    print(
        f"{name} in {time.perf_counter() - begun:.0f} s; database's private memory"
        f" {most[0] / 2**20:.0f} MiB at most",
        flush=True,
    )


def print_sizes() -> None:
    with connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(
                "SELECT pg_table_size(%(t)s) / 2^20, pg_indexes_size(%(t)s) / 2^20",
                {"t": table},
            )
            rows, indexes = cursor.fetchone()
            print(f"{table:20} {rows:8.0f} MiB, its indexes {indexes:8.0f} MiB")
        cursor.execute("SELECT pg_database_size(current_database()) / 2^30")
        print(f"{'all':20} {cursor.fetchone()[0]:8.2f} GiB", flush=True)


def run() -> bool:
    """Load, build, measure and print; return whether all limits were kept."""
    call_command("migrate", verbosity=0)
    make_foundations()
    words = make_words(np.random.default_rng(7))
    entries = max(OPTIONS.entries, count_loaded())
    load(entries, words)
    build_indexes()
    print_sizes()

    questions = make_questions(max(OPTIONS.decisions, OPTIONS.questions), entries)
    texts = make_texts(np.random.default_rng(29), len(questions), words)
    vectors = [vector_of(each) for each in questions]
    some = OPTIONS.questions
    print("exact search, in numpy", flush=True)
    (all_found,) = find_truths(questions, entries, cases=1)
    _, *others, withheld = find_truths(questions[:some], entries, cases=4)
    ids = tuple(Audience.objects.get(slug=name).pk for name in SHARES)
    base = KnowledgeBase.objects.get().pk
    now = timezone.now()
    cases = [
        Case("unfiltered", reader_of(ids), Scope(base, ids, 0.75, now)),
        Case(
            "unfiltered, second look",
            reader_of(ids),
            Scope(base, ids, 0.75, now),
            deep=True,
        ),
        Case("1 % visible", reader_of(ids[:1]), Scope(base, ids[:1], 0.75, now)),
        Case(
            f"verified alone, 1 in {VERIFIED_ONE_IN}",
            reader_of(ids),
            Scope(base, ids, 1.0, now),
        ),
    ]
    if OPTIONS.half:
        measure_half(vectors[:some], all_found)
    measure_withheld(cases[2], vectors[:some], withheld)
    measure_withheld(cases[3], vectors[:some], None)
    print_heads()
    good = [
        measure_case(case, vectors[:some], texts, truth)
        for case, truth in zip(cases, [all_found, all_found, *others], strict=True)
    ]
    with writes_going_on(OPTIONS.directory):
        for case in cases:
            written = replace(case, name=f"{case.name}, writes")
            good.append(measure_case(written, vectors[:some], texts, None))
    decided = slice(OPTIONS.decisions)
    differ = compare_decisions(cases[0], vectors[decided], texts[decided], all_found)
    return all(good) and not differ


def may_begin() -> bool:
    """Print what the run will cost, and ask whether to continue."""
    entries, place = OPTIONS.entries, OPTIONS.directory
    if entries < CHUNK or entries % CHUNK:
        sys.exit(f"--entries {entries} is not a multiple of {CHUNK}.")
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free / 2**30
    disk, minutes = entries * _DISK / 2**20, entries * _TIME / 60_000
    print(
        f"{entries} entries of {VECTORS} vectors: about {disk:.1f} GiB of disk in {place}"
        f" ({free:.0f} GiB are free), {minutes:.0f} minutes of one core to load and index"
        " them where nothing is there yet (several times that where the index is larger"
        f" than maintenance_work_mem), and 100 ms for each of {OPTIONS.decisions} decisions"
    )
    if disk + 5 > free:
        sys.exit(f"That leaves less than 5 GiB of {free:.0f}. Use fewer --entries.")
    return OPTIONS.yes or input("Continue? [y/N] ").strip().lower() == "y"


def main() -> int:
    if OPTIONS.write:
        with as_owner("benchmarks"):
            write_until_stopped()
    if not may_begin():
        return 1
    memory = psutil.virtual_memory().total // 2**20
    # As on a dedicated database server: the index should fit in shared buffers.
    postgres.start(settings.PLACES, shared_buffers_mib=memory * 3 // 8)
    try:
        with as_owner("benchmarks"):
            return 0 if run() else 1
    finally:
        connections.close_all()
        postgres.stop(settings.PLACES)


if __name__ == "__main__":
    sys.exit(main())
