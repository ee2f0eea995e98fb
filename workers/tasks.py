"""Celery's tasks: thin, as the Job row is authoritative and the broker only notifies.

A shared byte tells child processes that the worker is shutting down: a job then gives
its lease back after the current step. It is neither a lock that a killed process could
leave held, nor a signal that could interrupt a step.
"""

import ctypes
import logging
import mmap
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from uuid import UUID

from celery import Task, shared_task
from celery.signals import worker_init, worker_ready, worker_shutting_down
from django.conf import settings

from accounts.acting import unrestricted
from accounts.idempotency import prune_replies
from accounts.request_ids import NONE, named
from integrations.events import alerts, delivery
from integrations.events import services as events
from integrations.traces.spans import job_span
from jobs.models import Job
from jobs.run import run_job as run
from jobs.services import REQUEST_ID, RUN_TASK, enqueue, prune_finished
from jobs.services import sweep as notify_overdue
from kb.archive.exports import prune_exports
from kb.embedding import vector_index
from kb.embedding.services import active_model
from kb.embedding.switch import enqueue_where_stale
from kb.imports.services import prune_plans
from kb.sources import services as followed
from kb.upkeep import reminders
from kb.upkeep import services as upkeep
from qa.answers.asking import fail_abandoned
from qa.dashboard import counting
from qa.gaps import notices, repeats
from qa.gaps import services as gaps
from qa.privacy import scrubbing
from qa.reviews import sampling as review_sampling
from qa.training import retraining as retrainings
from qa.votes import doubts, entry_uses
from workers.registry import HANDLERS

_flag = mmap.mmap(-1, 1)


def is_stopping() -> bool:
    return _flag[0] != 0


@worker_shutting_down.connect
def _announce(**_: object) -> None:
    _flag[0] = 1


@worker_init.connect
def _begin(**_: object) -> None:
    # Workers may be forked from one process, and each stops separately.
    global _flag
    _flag = mmap.mmap(-1, 1)


logger = logging.getLogger(__name__)


def _calling(
    name: str,
    act: Callable[[], object],
    *,
    said: str = "",
    reading: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Task[[], None]:
    """Return a task that calls a service and logs its count with `said`, unless 0.

    `reading` opens the access to all rows, if the service needs it.
    """

    @shared_task(name=f"workers.{name}")
    def call() -> None:
        with reading():
            done = act()
        if said and done:
            logger.info(said, done)

    return call


def _enqueuing(kind: str) -> Task[[], None]:
    """Return a task that enqueues a job of this kind, unless one is unfinished."""
    return _calling(
        kind.partition(".")[2], partial(enqueue, kind, {}, idempotency_key=kind)
    )


calibrate_where_due = _enqueuing("qa.calibrate_where_due")
find_conflicts = _enqueuing("kb.find_conflicts")
find_gaps = _enqueuing("qa.find_gaps")
keep_past_questions = _enqueuing("qa.keep_past_questions")
watch_drift = _enqueuing("qa.watch_drift")
weigh_votes = _enqueuing("qa.weigh_votes")

ask_again = _calling(
    "ask_again", repeats.start_asking_again, reading=lambda: unrestricted("filled gaps")
)
check_sources = _calling(
    "check_sources", followed.check_due, said="%d followed sources are due.",
    reading=lambda: unrestricted("followed sources"),
)  # fmt: skip
count_days = _calling("count_days", counting.count_days)
count_uses = _calling(
    "count_uses", entry_uses.count_uses,
    said="Counted %d pieces of evidence and changes of votes.",
)  # fmt: skip
deliver_events = _calling(
    "deliver_events", delivery.deliver_due,
    said="Posted %d events to webhook endpoints.",
)  # fmt: skip
doubt_entries = _calling(
    "doubt_entries", partial(doubts.doubt_entries, notices.notify_doubted),
    said="%d verified entries are due: they were voted down.",
    reading=lambda: unrestricted("entries that were voted down"),
)  # fmt: skip
draw_reviews = _calling("draw_reviews", review_sampling.draw_weekly)
erase_old_texts = _calling("erase_old_texts", scrubbing.enqueue_where_wanted)
keep_upkeep = _calling("keep_upkeep", upkeep.enqueue_round)
mail_alerts = _calling("mail_alerts", partial(alerts.enqueue_mails, alerts.SOON))
mail_new_gaps = _calling("mail_new_gaps", partial(alerts.enqueue_mails, alerts.DAILY))
note_expired_entries = _calling("note_expired_entries", events.note_expired)
propose_for_gaps = _calling("propose_for_gaps", gaps.propose_due)
retrain = _calling("retrain", retrainings.enqueue_due)
send_notices = _calling("send_notices", notices.send_late)
sweep = _calling("sweep", notify_overdue, said="Notified again of %d jobs.")


@shared_task(name=RUN_TASK)
def run_job(job_id: str) -> None:
    """Run a job, tagging its logs with its request's id and its span with the trace."""
    rows = Job.objects.filter(pk=job_id)
    origin: dict[str, str] = rows.values_list("origin", flat=True).first() or {}
    request = origin.get(REQUEST_ID, NONE)
    with named(job_id if request == NONE else request), job_span(job_id, origin):
        run(UUID(job_id), HANDLERS, is_stopping=is_stopping)
    give_memory_back()


def give_memory_back() -> None:
    """Return memory that glibc retains after a job to the operating system.

    After an hour of finding gaps, it is 40 MiB.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)


@shared_task(name="workers.prune")
def prune() -> None:
    """Delete old finished jobs, unapplied plans, archives, events and replies."""
    _log_deleted("old jobs", prune_finished(settings.JOB_KEEP))
    with unrestricted("plans that nobody applied"):
        plans = prune_plans(settings.JOB_KEEP)
    _log_deleted("imports that were planned and never applied", plans)
    _log_deleted("old archives", prune_exports(settings.EXPORT_KEEP))
    _log_deleted("old events", events.prune_events(settings.EVENT_KEEP))
    _log_deleted("kept replies", prune_replies())


def _log_deleted(what: str, number: int) -> None:
    if number:
        logger.info("Deleted %d %s.", number, what)


@shared_task(name="workers.keep_vector_index")
def keep_vector_index() -> None:
    vector_index.build_where_it_pays(active_model())
    enqueue_where_stale()


@shared_task(name="workers.fail_abandoned_questions")
def fail_abandoned_questions() -> None:
    """Fail questions whose process was killed in mid-answer, to be decided again."""
    with unrestricted("abandoned questions"):
        failed = fail_abandoned()
    if failed:
        logger.warning("Marked %d abandoned questions as failed.", failed)


@shared_task(name="workers.remind_owners")
def remind_owners() -> None:
    """Enqueue reminding owners of due entries, if there is a mail server."""
    if settings.MAIL_URL:
        enqueue(reminders.KIND, {}, idempotency_key=reminders.KIND)


@worker_ready.connect
def _sweep_at_start(**_: object) -> None:
    # Work left over from the last worker need not wait for beat.
    sweep.delay()
