"""An import whose worker is killed again and again writes every row exactly once.

`benchmarks/kill_import.py` does the same at full size.
"""

import io
from collections import Counter
from functools import partial

import pytest
from django.core.files.storage import FileSystemStorage

from jobs.models import Job
from kb.imports.services import Upload, enqueue_import, start_import
from kb.models import Entry, EntryEmbedding, Import
from tests.factories import make_audience, make_curator, make_knowledge_base
from tests.waiting import wait_until
from tests.workers.conftest import System
from tests.workers.processes import BEAT, Process

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]

ROWS = 600  # in steps of 256


def has_done(job: Job, beyond: int) -> bool:
    job.refresh_from_db()
    return job.is_finished or job.done > beyond


@pytest.mark.parametrize("system", ["embedded"], indirect=True)
def test_every_row_is_one_entry_though_the_worker_was_killed_in_between(
    system: System, monkeypatch
):
    # Where the workers, whose variable directory it is, look for it.
    storage = FileSystemStorage(location=system.directory / "imports")
    monkeypatch.setattr(Import._meta.get_field("file"), "storage", storage)
    rows = "".join(f"Rule {n} costs {n} euros.\n" for n in range(ROWS))
    begun = start_import(
        Upload(
            file=io.BytesIO(f"text\n{rows}".encode()),
            name="rules.csv",
            knowledge_base=make_knowledge_base(),
            audience=make_audience(),
        ),
        by=make_curator(),
    )
    job = enqueue_import(begun, apply=True, by=None)
    job.parameters |= {"hold": [256, 512]}
    job.save(update_fields=["parameters"])
    # A paused worker would lose its lease of 3 s; a killed one's ends at once.
    start = partial(
        system.start, NESCIO_JOB_LEASE_SECONDS="900", TESTS_IMPORT_MODELS="yes"
    )
    start(BEAT)
    worker = start()

    for kill in (Process.kill_child, Process.kill_group):
        wait_until(partial(has_done, job, job.done))
        kill(worker)
        job.refresh_from_db()
        assert job.done < ROWS, "killed too late to show anything"
        if kill is not Process.kill_child:
            worker = start()
    wait_until(lambda: has_done(job, ROWS))

    assert job.state == "succeeded", job.error
    assert job.attempts >= 3
    assert Counter(Entry.objects.values_list("place", flat=True)) == Counter(
        f"line {n + 2}" for n in range(ROWS)
    )
    embedded = Counter(
        EntryEmbedding.objects.filter(part=1).values_list("entry_id", flat=True)
    )
    assert embedded == Counter(Entry.objects.values_list("pk", flat=True))
