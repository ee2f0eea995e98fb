"""Measure the cost of row-level security: the same statements with and without it.

    python -m benchmarks.row_security DIRECTORY [--questions 200]

DIRECTORY is the variable directory of a filled system, such as `benchmarks.ask --keep`
leaves, whose database is running. The queries of a refused question are run as the
owner of the tables, whom no security policy restricts, and as an agent, one right after
the other, so that other load on the machine affects both. Prints the medians, the
median of the differences, the processor time of each side's server process (which other
load does not affect), and the time to tell the database who is reading.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.ask import _WARM_UP, _unanswerable
from benchmarks.clients import processor_seconds

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from kb.types import QuestionVector


def main() -> None:
    """Measure and print."""
    options = _options()
    os.environ |= {
        "NESCIO_VAR_DIR": str(options.directory),
        "DJANGO_SETTINGS_MODULE": "nescio.settings",
    }
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.db import connection

    from accounts.acting import acting_for, as_owner
    from kb.embedding.services import embed_question

    with as_owner("benchmarks"):
        agent = User.objects.get(username="agent")
        ask = _asking(agent)
    drivers = {"owner": connection.connection}
    drivers["agent"] = connection.get_new_connection(connection.get_connection_params())
    warm: dict[str, float] = {}
    times: dict[str, list[float]] = {"owner": [], "agent": []}
    for turn, question in enumerate(_unanswerable(options.questions + _WARM_UP)):
        if turn == _WARM_UP:
            warm = {name: served_seconds(each) for name, each in drivers.items()}
        with as_owner("benchmarks"):
            vector = embed_question(question)
        # Each role has its own connection, because a cached plan is for one role.
        sides = [("owner", as_owner("benchmarks")), ("agent", acting_for(agent))]
        for name, reading in sides[:: -1 if turn % 2 else 1]:  # alternate the order
            connection.connection = drivers[name]
            with reading:
                begun = time.perf_counter()
                ask(vector)
                times[name].append((time.perf_counter() - begun) * 1000)
    processor = {name: served_seconds(each) for name, each in drivers.items()}
    owner, secured = times["owner"][_WARM_UP:], times["agent"][_WARM_UP:]
    added = [b - a for a, b in zip(owner, secured, strict=True)]
    print(f"without, p50 {statistics.median(owner):8.3f} ms")
    print(f"with,    p50 {statistics.median(secured):8.3f} ms")
    print(f"added,   p50 {statistics.median(added):8.3f} ms")
    for name, begun_at in warm.items():
        spent = (processor[name] - begun_at) * 1000 / options.questions
        print(f"processor of the database, {name}: {spent:.3f} ms a question")
    print(f"setting the reader: {_telling(agent) * 1000:.0f} microseconds per change")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    return parser.parse_args()


def _asking(agent: "User") -> "Callable[[QuestionVector], None]":
    """Return a function that runs a refused question's queries, given its vector."""
    from django.utils import timezone

    from kb.models import Audience, KnowledgeBase
    from kb.search import nearest_excluded, search
    from kb.types import Scope

    scope = Scope(
        knowledge_base_id=KnowledgeBase.objects.get().pk,
        audience_ids=tuple(
            Audience.objects.visible_to(agent).values_list("pk", flat=True)
        ),
        unverified_floor=0.5,
        at=timezone.now(),
    )

    def ask(vector: "QuestionVector") -> None:
        search(vector, vector.text, scope=scope, top_k=4)
        nearest_excluded(vector, scope=scope)

    return ask


def served_seconds(driver: Any) -> float:
    """Return the processor time of the database process that serves a connection."""
    return processor_seconds(psutil.Process(driver.info.backend_pid))


def _telling(agent: "User") -> float:
    from django.db import connection

    from accounts.acting import NOBODY, acting_for, reading_as

    begun = time.perf_counter()
    for _ in range(1_000):
        for reading in (reading_as(NOBODY), acting_for(agent)):
            with reading:
                connection.tell_reader()  # type: ignore[attr-defined]  # our backend's
    return (time.perf_counter() - begun) / 2_000 * 1000


if __name__ == "__main__":
    main()
