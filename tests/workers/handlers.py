"""Kinds of job made for tests, registered as the product's own are."""

import os
import time

from django.db import connection

from jobs.run import JobRun
from workers.registry import HANDLERS


def count(run: JobRun) -> dict[str, object]:
    """Write the numbers 1 to `n` into tests_effect, one a step, with who wrote them."""
    n, pause = run.parameters["n"], run.parameters["pause"]
    for number in range(run.cursor.get("after", 0) + 1, n + 1):
        time.sleep(pause)
        with run.step() as step:
            with connection.cursor() as sql:
                sql.execute(
                    "INSERT INTO tests_effect VALUES (%s, %s, %s)",
                    [run.job_id, number, os.getpid()],
                )
            step.advance(done=number, total=n, cursor={"after": number})
    return {"counted": n}


HANDLERS["tests.count"] = count
