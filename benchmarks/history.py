"""Measure what recording every change costs when entries are written.

    python -m benchmarks.history [--entries 10000] [--rounds 3]

Creates entries without their vectors (which take most of the time) and through the
services, and changes them in one bulk update. Prints for the best round how long
writing took, how long the history trigger took after that, and the ratio of both
together to writing alone. Uses a separate test database, which is dropped afterwards.
"""

# ruff: noqa: E402  # imports that need Django come after its setup
import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")

import django

django.setup()

from django.conf import settings
from django.db import connection, transaction
from django.test.utils import setup_databases, teardown_databases

from accounts.acting import as_owner, unrestricted
from kb.entries.revisions import make_revision
from kb.entries.services import create_entries
from kb.entries.values import NewEntry
from kb.models import Entry, Revision
from nescio.embedded import postgres
from tests.factories import make_audience, make_curator, make_knowledge_base


def main() -> None:
    """Create a test database, measure in it, and drop it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    postgres.start(settings.PLACES)
    with as_owner("benchmarks"):
        databases = setup_databases(verbosity=0, interactive=False)
    try:
        with unrestricted("benchmarks"):
            measure(arguments.entries, arguments.rounds)
    finally:
        with as_owner("benchmarks"):
            teardown_databases(databases, verbosity=0)


def measure(count: int, rounds: int) -> None:
    """Measure each way of writing entries and print its ratio."""
    author, audience = make_curator(), make_audience()
    knowledge_base = make_knowledge_base()
    texts = [
        f"Fee number {number} is {number % 97} euros a year for every card."
        for number in range(count)
    ]

    def in_bulk() -> None:
        entries = [
            Entry(
                knowledge_base=knowledge_base,
                audience=audience,
                text=text,
                state="in_review",
                confidence=0.5,
            )
            for text in texts
        ]
        Entry.objects.bulk_create(entries, batch_size=500)
        revisions = [
            make_revision(entry, number=1, author=author, reason="")
            for entry in entries
        ]
        Revision.objects.bulk_create(revisions, batch_size=500)

    def by_services() -> None:
        new = [
            NewEntry(
                knowledge_base=knowledge_base, audience=audience, text=text, verify=True
            )
            for text in texts
        ]
        create_entries(new, author=author)

    compare(f"{count} entries without vectors", in_bulk, rounds)
    with transaction.atomic():
        in_bulk()
    compare(
        f"one bulk update of {count} entries, a revision each",
        lambda: Entry.objects.update(confidence=0.25),
        rounds,
    )
    compare(f"{count} entries by the services", by_services, rounds)


def compare(name: str, work: Callable[[], object], rounds: int) -> None:
    """Print how much longer `work` takes because of the trigger; it is rolled back."""
    best = min((times(work) for _ in range(rounds)), key=sum)
    print(
        f"{name}: {best[0]:.2f} s and {best[1]:.2f} s for the trigger:"
        f" {sum(best) / best[0]:.3f}",
        flush=True,
    )


def times(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds taken by the work and by the trigger, and roll both back."""
    with transaction.atomic(), connection.cursor() as cursor:
        begun = time.perf_counter()
        work()
        written = time.perf_counter()
        cursor.execute("SET CONSTRAINTS kb_entry_recorded IMMEDIATE")
        recorded = time.perf_counter()
        transaction.set_rollback(True)
    return written - begun, recorded - written


if __name__ == "__main__":
    main()
