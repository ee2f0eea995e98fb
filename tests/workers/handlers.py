"""Kinds of job made for tests, and the product's own held back where a test wants it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

from jobs.run import Handler, JobRun, Step
from workers.registry import HANDLERS


def count(run: JobRun) -> dict[str, object]:
    """Write the numbers 1 to `n` into tests_effect, one a step, with who wrote them.

    With `may_end` it goes on beyond `n` until there is a file of that name.
    """
    n, pause = run.parameters["n"], run.parameters["pause"]
    may_end = run.parameters.get("may_end")
    number = run.cursor.get("after", 0)
    while number < n or (may_end and not Path(may_end).exists()):
        number += 1
        time.sleep(pause)
        with run.step() as step:
            with connection.cursor() as sql:
                sql.execute(
                    "INSERT INTO tests_effect VALUES (%s, %s, %s)",
                    [run.job_id, number, os.getpid()],
                )
            step.advance(done=number, total=max(n, number), cursor={"after": number})
    return {"counted": number}


def held_back(handler: Handler) -> Handler:
    """Let each run take no step once so much is done: `hold` has a number for each.

    So none ends before the test has killed it. Those without a number go on to the end.
    """

    def work(run: JobRun) -> dict[str, object]:
        numbers: list[int] = run.parameters.get("hold", [])[run.lease.attempt - 1 :]
        take_step = run.step

        @contextmanager
        def step() -> Iterator[Step]:
            while numbers and run.done >= numbers[0]:
                run.check()
                time.sleep(0.05)
            with take_step() as taken:
                yield taken

        run.step = step  # type: ignore[method-assign]
        return handler(run)

    return work


HANDLERS["tests.count"] = count
for kind in ("kb.embed", "kb.import"):
    HANDLERS[kind] = held_back(HANDLERS[kind])
