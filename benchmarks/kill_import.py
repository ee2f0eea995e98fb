"""Kill the worker with SIGKILL repeatedly during a file import.

    python -m benchmarks.kill_import [--rows 20000] [--kills 20]

Creates a separate database, uploads a CSV file and lets a real worker import it over
the embedded broker, with short leases. Either the worker, its child process or the
whole process group is killed at a random moment, twenty times. In the end every row
must be exactly one entry with exactly one embedding; otherwise the exit status is 1.
"""

import argparse
import io
import random
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from accounts.acting import as_owner
from benchmarks.kill_worker import (
    KINDS,
    SHORT,
    STUCK_LIMIT_SECONDS,
    System,
    _has_done,
    _is_finished,
    _own_database,
    _set_up,
)

if TYPE_CHECKING:
    from jobs.models import Job
    from kb.models import Import


def main() -> int:
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _set_up("filesystem://")
        with _own_database():
            system = System(directory, "filesystem://", stack)
            is_good = _kill_again_and_again(system, options)
            stack.close()
    return 0 if is_good else 1


def _enqueue(rows: int) -> "tuple[Import, Job]":
    from kb.imports.services import Upload, enqueue_import, start_import
    from kb.models import Audience, KnowledgeBase
    from tests.factories import make_curator

    content = "text\n" + "".join(
        f"Rule {n}: a card of series {n * 7} costs {n} euros.\n" for n in range(rows)
    )
    begun = start_import(
        Upload(
            file=io.BytesIO(content.encode()),
            name="rules.csv",
            knowledge_base=KnowledgeBase.objects.create(slug="kill", name="Kill"),
            audience=Audience.objects.create(slug="all", name="All", everyone=True),
        ),
        by=make_curator(),
    )
    return begun, enqueue_import(begun, apply=True, by=None)


def _kill_again_and_again(system: System, options: argparse.Namespace) -> bool:
    from tests.waiting import wait_until
    from tests.workers.processes import BEAT, WORKER

    chance = random.Random(options.seed)
    began = time.monotonic()
    begun, job = _enqueue(options.rows)
    system.start(BEAT, SHORT)
    worker = system.start(WORKER, SHORT)
    killed = 0
    for number in range(1, options.kills + 1):
        wait_until(partial(_has_done, job, job.done + 1), 4 * STUCK_LIMIT_SECONDS)
        if job.is_finished:
            print(f"finished before kill {number}: increase --rows")
            break
        time.sleep(chance.random())
        kind = chance.choice(KINDS)
        getattr(worker, kind)()
        killed = number
        job.refresh_from_db()
        print(f"kill {number:2}: {kind:11} at {job.done:6}", flush=True)
        if kind != "kill_child":
            worker = system.start(WORKER, SHORT)
    wait_until(partial(_is_finished, job), 1800)
    worker.end()
    begun.file.delete(save=False)
    is_good = _report(job, options.rows, killed) and killed == options.kills
    print(f"{time.monotonic() - began:.0f} s in all")
    return is_good


def _report(job: "Job", rows: int, killed: int) -> bool:
    from kb.models import Entry, EntryEmbedding

    entries = Counter(Entry.objects.values_list("place", flat=True))
    embedded = Counter(
        EntryEmbedding.objects.filter(part=1).values_list("entry_id", flat=True)
    )
    is_good = (
        job.state == "succeeded"
        and entries == Counter(f"line {n + 2}" for n in range(rows))
        and embedded == Counter(Entry.objects.values_list("pk", flat=True))
    )
    print(
        f"{killed} kills, {job.attempts} attempts: job {job.state} {job.error}, "
        f"{entries.total()} entries of {len(entries)} rows, {embedded.total()} "
        f"embeddings: {'good' if is_good else 'WRONG'}"
    )
    return is_good


if __name__ == "__main__":
    with as_owner("benchmarks"):
        raise SystemExit(main())
