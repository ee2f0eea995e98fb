"""Compare the speed of an import with that of the bare embedder.

    python -m benchmarks.bulk_embedding [--rows 4000] [--rounds 3]

The same texts are alternately encoded by the embedder alone and imported as rows of a
CSV file into a separate database. The import reads, checks, embeds and writes entries
with revisions, history and vectors. The median over the rounds of its rate must be at
least 0.90 of the bare embedder's; otherwise the exit status is 1.

    python -m benchmarks.bulk_embedding --memory [--rows 100000]

shows that rows are streamed: it compares Python's peak memory while reading a file of
this many rows with that for a tenth of the rows (limit: 1.5 times as much).
"""

import argparse
import io
import os
import random
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accounts.acting import as_owner

if TYPE_CHECKING:
    from kb.models import Audience, KnowledgeBase

MIN_RATIO = 0.90
MAX_GROWTH = 1.5
WORDS = [
    "account",
    "branch",
    "card",
    "cash",
    "charge",
    "cheque",
    "counter",
    "credit",
    "customer",
    "day",
    "debit",
    "deposit",
    "euro",
    "exchange",
    "fee",
    "form",
    "holder",
    "interest",
    "letter",
    "limit",
    "loan",
    "machine",
    "month",
    "notice",
    "number",
    "order",
    "passport",
    "payment",
    "period",
    "person",
    "phone",
    "rate",
    "receipt",
    "request",
    "savings",
    "service",
    "statement",
    "transfer",
    "visit",
    "week",
    "year",
    "abroad",
    "online",
    "valid",
    "yearly",
]


def main() -> int:
    """Measure; return the exit status."""
    options = _options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    os.environ.setdefault("NESCIO_LOG_LEVEL", "ERROR")
    import django

    django.setup()
    if options.memory:
        return _memory(options.rows or 100_000)
    from benchmarks.kill_worker import _own_database

    with _own_database():
        return _throughput(options.rows or 4_000, options.rounds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    return parser.parse_args()


def texts_of(count: int, round_number: int) -> list[str]:
    """Return `count` distinct sentences of 8 to 40 random words."""
    chance = random.Random(round_number)
    return [
        f"Rule {round_number}-{number}: "
        f"{' '.join(chance.choices(WORDS, k=chance.randint(8, 40)))}."
        for number in range(count)
    ]


def _throughput(rows: int, rounds: int) -> int:
    from kb.embedding.embedder import get_embedder
    from kb.embedding.services import active_model
    from kb.models import Audience, EntryEmbedding, KnowledgeBase

    embedder = get_embedder(active_model())
    embedder.encode(texts_of(64, 0))
    knowledge_base = KnowledgeBase.objects.create(slug="bulk", name="Bulk")
    audience = Audience.objects.create(slug="all", name="All", everyone=True)
    ratios = []
    for number in range(1, rounds + 1):
        texts = texts_of(rows, number)
        bare = imported = 0.0
        # Alternate which goes first, so that other load on the machine affects both.
        for who in ("bare", "import") if number % 2 else ("import", "bare"):
            began = time.perf_counter()
            if who == "bare":
                embedder.encode(_embedded(texts, f"rules-{number}"))
                bare = rows / (time.perf_counter() - began)
            else:
                _bring(texts, f"rules-{number}.csv", knowledge_base, audience)
                imported = rows / (time.perf_counter() - began)
        ratios.append(imported / bare)
        print(
            f"round {number}: embedder alone {bare:.0f}/s, import {imported:.0f}/s, "
            f"ratio {imported / bare:.3f}",
            flush=True,
        )
    written = EntryEmbedding.objects.filter(part=1).count()
    ratio = statistics.median(ratios)
    is_good = ratio >= MIN_RATIO and written == rows * rounds
    print(
        f"{written} entries with their vectors; median ratio {ratio:.3f} "
        f"(limit {MIN_RATIO}): {'good' if is_good else 'WRONG'}"
    )
    return 0 if is_good else 1


def _embedded(texts: list[str], title: str) -> list[str]:
    from kb.embedding.services import Embedded

    said = [Embedded(title, "", "", text) for text in texts]
    return [part for each in said for part in each.parts.values()]


def _bring(
    texts: list[str], name: str, knowledge_base: "KnowledgeBase", audience: "Audience"
) -> None:
    from django.db import transaction

    from kb.imports.running import run_import
    from kb.imports.services import Upload, start_import

    @contextmanager
    def writing(done: int, total: int | None) -> Iterator[None]:
        with transaction.atomic():
            yield

    content = "text\n" + "".join(f'"{text}"\n' for text in texts)
    begun = start_import(
        Upload(
            file=io.BytesIO(content.encode()),
            name=name,
            knowledge_base=knowledge_base,
            audience=audience,
        ),
        by=None,
    )
    run_import(begun.pk, apply=True, writing=writing)
    begun.file.delete(save=False)


def _memory(rows: int) -> int:
    import tempfile

    from kb.imports.readers import Limits, read

    peaks = []
    for count in (rows // 10, rows):
        with tempfile.TemporaryFile() as file:
            file.write(b"id,question,answer\n")
            for number in range(count):
                file.write(b"%d,Question %d?,Answer %d.\n" % (number, number, number))
            tracemalloc.start()
            found = read(file, "csv", language="en", limits=Limits(10**9, 10**9))
            total = sum(1 for _ in found)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        peaks.append(peak)
        print(f"{total} rows read, at most {peak / 1024:.0f} KiB held")
    is_good = peaks[1] <= MAX_GROWTH * peaks[0]
    print(f"growth {peaks[1] / peaks[0]:.2f} (limit {MAX_GROWTH})")
    return 0 if is_good else 1


if __name__ == "__main__":
    with as_owner("benchmarks"):
        raise SystemExit(main())
