"""Measure the page of entries due for review in a large knowledge base.

    python -m benchmarks.due [--entries 1000000]

Creates a separate database beside the configured one, fills it by SQL, and drops it. A
tenth of the entries is overdue, a hundredth waits for review, a thousandth has expired;
a twentieth has been used. Prints a line for each query of the page: milliseconds
(median of five), and whether the plan sorts or scans a whole table.
"""

# ruff: noqa: E402  # imports that need Django come after its setup
import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")

import django

django.setup()

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import connection
from django.utils import timezone

from accounts.acting import acting_for, as_owner
from benchmarks.recall import own_database
from kb.entries.due import Reason
from kb.models import Audience, EntryQuerySet, KnowledgeBase
from kb.upkeep.services import due_entries, read_page, sizes
from nescio.embedded import postgres

_FILL = """
INSERT INTO kb_entry (knowledge_base_id, question, text, state, origin, confidence,
    audience_id, language, valid_until, owner_id, created_at, updated_at, verified_by_id,
    verified_at)
SELECT %(base)s, '', 'Fact ' || n, CASE WHEN n %% 100 = 0 THEN 'needs_review'
        ELSE 'verified' END,
    'imported', CASE WHEN n %% 100 = 0 THEN 0.8 ELSE 1 END,
    CASE WHEN n %% 10 = 3 THEN %(few)s ELSE %(all)s END, 'xx',
    CASE WHEN n %% 1000 = 7 THEN now() - interval '1 day' END,
    CASE WHEN n %% 500 = 1 THEN %(user)s END, now(), now(), %(user)s,
    now() - (hashint8(n) & 65535) / 65536.0 * 200 * interval '1 day'
FROM generate_series(1, %(entries)s) n;
UPDATE kb_upkeep SET uses = (hashint8(entry_id) & 1023) WHERE entry_id %% 20 = 0;
"""


def fill(entries: int) -> tuple[User, User]:
    """Write the entries; return a user who sees all, and one who sees a tenth."""
    curator, few = (
        User.objects.create(username="all"),
        User.objects.create(username="few"),
    )
    group = Group.objects.create(name="few")
    few.groups.add(group)
    curator.groups.add(group, Group.objects.create(name="rest"))
    audiences = [
        Audience.objects.create(slug=name, name=name) for name in ("rest", "few")
    ]
    audiences[0].groups.add(Group.objects.get(name="rest"))
    audiences[1].groups.add(group)
    base = KnowledgeBase.objects.create(slug="due", name="Due")
    with connection.cursor() as cursor:
        # The trigger would write a revision per entry, which the page does not need.
        cursor.execute("ALTER TABLE kb_entry DISABLE TRIGGER kb_entry_recorded")
        cursor.execute(
            _FILL,
            {
                "base": base.pk, "all": audiences[0].pk, "few": audiences[1].pk,
                "user": curator.pk, "entries": entries,
            },
        )  # fmt: skip
        cursor.execute("VACUUM ANALYZE kb_entry")
        cursor.execute("VACUUM ANALYZE kb_upkeep")
    return curator, few


def measure(name: str, ask: Callable[[], object], plan: EntryQuerySet | None) -> None:
    """Print how long `ask` takes, and the costly nodes of its query plan."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        ask()
        times.append(1_000 * (time.perf_counter() - start))
    explained = "" if plan is None else plan.explain()
    costly = [word for word in ("Sort", "Seq Scan on kb_entry", "Seq Scan on kb_upkeep")
              if word in explained]  # fmt: skip
    print(f"{name:<42}{statistics.median(times):9.1f} ms  {', '.join(costly)}")


def measure_pages(name: str, user: User) -> None:
    """Measure the queries of the page for `user`."""
    now = timezone.now()
    for mine in (False, True):
        queue = due_entries(user, at=now, mine=mine)
        whose = f"{name}, {'own' if mine else 'all'}"
        first = read_page(queue, size=25, after=None).following
        measure(
            f"{whose}: first page",
            partial(read_page, queue, size=25, after=None),
            queue[:26],
        )
        if first:
            measure(
                f"{whose}: next page",
                partial(read_page, queue, size=25, after=first),
                queue.after(first)[:26],
            )
        measure(
            f"{whose}: counts by reason",
            partial(sizes, user, at=now, mine=mine),
            None,
        )
    for reason in Reason:
        narrowed = due_entries(user, at=now, reason=reason)
        measure(
            f"{name}: {reason.value}, first page",
            partial(read_page, narrowed, size=25, after=None),
            narrowed[:26],
        )


def main() -> None:
    """Fill a database, measure, and drop it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    entries = parser.parse_args().entries
    if settings.DATABASE_IS_EMBEDDED:
        postgres.start(settings.PLACES)
    with as_owner("benchmarks"), own_database():
        start = time.perf_counter()
        curator, few = fill(entries)
        print(f"{entries} entries written in {time.perf_counter() - start:.0f} s")
        for name, user in (("sees all", curator), ("sees a tenth", few)):
            with acting_for(user):
                measure_pages(name, user)


if __name__ == "__main__":
    main()
