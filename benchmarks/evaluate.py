"""Measure the overhead of an evaluation, and check that it survives SIGKILL.

    python -m benchmarks.evaluate --data DIRECTORY [--suites squad2,selfaware] [--limit N]
    python -m benchmarks.evaluate --data DIRECTORY --kill [--kills 5] [--limit N]

The first command asks the suites in shadow, as one run, in this process, and prints the
wall time per question and the language model's own time; the exit status is 1 if the
rest (embedding, SQL, gates, storing, judging) takes more than a tenth of the model's
time. The second starts `manage.py evaluate` as a child, kills it repeatedly at random
moments, lets it finish, and checks that every question was judged exactly once and
every answer belongs to a result. Both write to the configured database and leave their
results there.
"""

import argparse
import ctypes
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from accounts.acting import as_owner

if TYPE_CHECKING:
    from qa.models import EvaluationRun

OVERHEAD_LIMIT = 0.1
_PR_SET_PDEATHSIG = 1  # from linux/prctl.h
ROOT = Path(__file__).resolve().parents[1]
STAGES = (
    "question", "retrieve", "retrieve.embed", "retrieve.sql", "verbatim",
    "hard_refusal", "generate", "support", "soft_refusal", "abstention",
)  # fmt: skip


def main() -> int:
    """Run the chosen mode; return the exit status."""
    options = _options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    os.environ.setdefault("NESCIO_LOG_LEVEL", "ERROR")
    import django

    django.setup()
    from django.conf import settings

    from nescio.embedded import postgres

    is_ours = settings.DATABASE_IS_EMBEDDED and postgres.start(settings.PLACES)
    try:
        return _kill(options) if options.kill else _measure(options)
    finally:
        if is_ours:
            postgres.stop(settings.PLACES)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--suites", default="squad2,selfaware")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--kills", type=int, default=5)
    return parser.parse_args()


def _measure(options: argparse.Namespace) -> int:
    from qa.evaluation.runs import begin, go_on
    from qa.evaluation.suites.registry import open_suite

    suite = open_suite(
        options.suites.replace(",", "+"),
        data=options.data,
        limit=options.limit,
        seed=options.seed,
        shadow=True,
    )
    run = begin(suite, anew=True)
    asked = go_on(run, suite)
    next(asked)  # loads the models
    began = time.perf_counter()
    judged = list(asked)
    wall = (time.perf_counter() - began) * 1000
    model = sum(row.model_milliseconds for row in judged)
    count = len(judged)
    print(f"questions                     {count:10,}")
    print(f"wall time of a question       {wall / count:10.1f} ms")
    print(f"language model's own time     {model / count:10.1f} ms")
    overhead = (wall - model) / model if model else float("inf")
    print(
        f"overhead                      {overhead:10.1%}  (limit {OVERHEAD_LIMIT:.0%})"
    )
    written = [row.answer_id for row in judged if row.answer_id]
    _print_stages(written)
    return 0 if overhead <= OVERHEAD_LIMIT else 1


def _print_stages(answer_ids: Sequence[UUID]) -> None:
    from qa.models import Answer

    rows = Answer.objects.filter(pk__in=answer_ids)
    times = list(rows.values_list("milliseconds", flat=True))
    print("\nstage, mean and median per question; retrieval runs alongside the model")
    for stage in STAGES:
        found = [row[stage] for row in times if stage in row]
        if found:
            mean, median = statistics.fmean(found), statistics.median(found)
            print(f"{stage:<29} {mean:10.2f} ms {median:10.2f} ms")


def _kill(options: argparse.Namespace) -> int:
    from django.db import connection

    chance = random.Random(options.seed)
    before = _runs()
    last = _Watched(before)
    _await_first(options, last)
    for number in range(1, options.kills + 1):
        child = _start(options)
        share = number / (options.kills + 1)
        while child.poll() is None and last.done() < share * last.total():
            connection.close()
            time.sleep(0.2)
        time.sleep(chance.random())
        os.killpg(child.pid, signal.SIGKILL) if child.poll() is None else None
        child.wait()
        print(f"kill {number}: {last.done():,} of {last.total():,} judged", flush=True)
    child = _start(options)
    status = child.wait()
    return 0 if status == 0 and _is_whole(last.run()) else 1


def _await_first(options: argparse.Namespace, last: "_Watched") -> None:
    """Let a child load the knowledge and judge a first question, then kill it."""
    child = _start(options, "--anew")
    while child.poll() is None and last.done() == 0:
        time.sleep(0.2)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _start(options: argparse.Namespace, *more: str) -> "subprocess.Popen[bytes]":
    command = [
        sys.executable, "manage.py", "evaluate", options.suites.replace(",", "+"),
        "--data", str(options.data.resolve()), "--shadow", "--seed", str(options.seed),
        *(["--limit", str(options.limit)] if options.limit else []), *more,
    ]  # fmt: skip
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_die_with(os.getpid()),
    )


def _die_with(parent: int) -> Callable[[], None] | None:
    """Return a `preexec_fn` that kills the child with this process; None off Linux."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def at_start() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # the parent died before prctl took effect
            os._exit(1)

    return at_start


class _Watched:
    """The newest run that is not among those in `before`."""

    def __init__(self, before: set[int]) -> None:
        self._before = before

    def run(self) -> "EvaluationRun | None":
        from qa.models import EvaluationRun

        rows = EvaluationRun.objects.exclude(pk__in=self._before)
        return rows.order_by("-pk").first()

    def done(self) -> int:
        run = self.run()
        return run.results.count() if run else 0

    def total(self) -> int:
        run = self.run()
        return run.total if run else 1


def _runs() -> set[int]:
    from qa.models import EvaluationRun

    return set(EvaluationRun.objects.values_list("pk", flat=True))


def _is_whole(run: "EvaluationRun | None") -> bool:
    """Return whether every question has one result and every answer belongs to one."""
    from django.db.models import Q

    from qa.models import Answer

    if run is None:
        print("No run was started.")
        return False
    ids = list(run.results.values_list("case_id", flat=True))
    since = Q(channel="evaluation", created_at__gte=run.started_at)
    strays = Answer.objects.filter(since).exclude(evaluations__run=run).count()
    print(f"state                         {run.state}")
    print(f"questions                     {run.total:10,}")
    print(f"judged                        {len(ids):10,}")
    print(f"judged twice                  {len(ids) - len(set(ids)):10,}")
    print(f"answers without a result      {strays:10,}")
    is_once = len(ids) == len(set(ids)) == run.total
    return run.state == "finished" and is_once and strays == 0


if __name__ == "__main__":
    with as_owner("benchmarks"):
        sys.exit(main())
