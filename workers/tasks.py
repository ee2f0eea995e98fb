"""Celery's tasks: thin, for the Job row is the truth and the broker only notifies.

Child processes learn from one shared byte that the worker is shutting down: a job then
gives its lease back after the present step. It is no lock that a killed process could
leave held, and no signal that could break a step off.
"""

import ctypes
import logging
import mmap
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
    # Workers may be forked from one process, and each ends for itself.
    global _flag
    _flag = mmap.mmap(-1, 1)


logger = logging.getLogger(__name__)


def _enqueuing(kind: str) -> Task[[], None]:
    """Return a task that enqueues a job of this kind, unless one is unfinished."""

    @shared_task(name=f"workers.{kind.partition('.')[2]}")
    def enqueue_job() -> None:
        enqueue(kind, {}, idempotency_key=kind)

    return enqueue_job


calibrate_where_due = _enqueuing("qa.calibrate_where_due")
find_conflicts = _enqueuing("kb.find_conflicts")
find_gaps = _enqueuing("qa.find_gaps")
keep_past_questions = _enqueuing("qa.keep_past_questions")
watch_drift = _enqueuing("qa.watch_drift")
weigh_votes = _enqueuing("qa.weigh_votes")


@shared_task(name=RUN_TASK)
def run_job(job_id: str) -> None:
    """Run a job; its log lines have the id of the request that started it, its span the trace."""
    rows = Job.objects.filter(pk=job_id)
    origin: dict[str, str] = rows.values_list("origin", flat=True).first() or {}
    request = origin.get(REQUEST_ID, NONE)
    with named(job_id if request == NONE else request), job_span(job_id, origin):
        run(UUID(job_id), HANDLERS, is_stopping=is_stopping)
    give_memory_back()


def give_memory_back() -> None:
    """Return to the system what glibc keeps of a job's arrays (40 MiB after an hour's gaps)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other libraries have none
    if trim is not None:
        trim(0)


@shared_task(name="workers.sweep")
def sweep() -> None:
    notified = notify_overdue()
    if notified:
        logger.info("Notified again of %d jobs.", notified)


@shared_task(name="workers.prune")
def prune() -> None:
    """Delete finished jobs, unapplied plans, archives, sent events, kept replies of long ago."""
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
    """Let questions be decided again whose process was killed in mid-answer."""
    with unrestricted("abandoned questions"):
        failed = fail_abandoned()
    if failed:
        logger.warning("Marked %d abandoned questions as failed.", failed)


@shared_task(name="workers.check_sources")
def check_sources() -> None:
    """Let the imports' worker read the followed sources whose time has come."""
    with unrestricted("followed sources"):
        due = followed.check_due()
    if due:
        logger.info("%d followed sources are due.", due)


@shared_task(name="workers.count_uses")
def count_uses() -> None:
    """Add what was answered and voted since to the entries' counts."""
    read = entry_uses.count_uses()
    if read:
        logger.info("Counted %d pieces of evidence and changes of votes.", read)


@shared_task(name="workers.doubt_entries")
def doubt_entries() -> None:
    """Let verified entries be due that were voted down since."""
    with unrestricted("entries that were voted down"):
        doubted = doubts.doubt_entries(notices.notify_doubted)
    if doubted:
        logger.info("%d verified entries are due: they were voted down.", doubted)


@shared_task(name="workers.count_days")
def count_days() -> None:
    """Bring what dashboards read up to date: today's counts, and what changed since."""
    counting.count_days()


@shared_task(name="workers.ask_again")
def ask_again() -> None:
    """Have questions asked again whose answer was verified since."""
    with unrestricted("filled gaps"):
        repeats.start_asking_again()


@shared_task(name="workers.send_notices")
def send_notices() -> None:
    notices.send_late()


@shared_task(name="workers.deliver_events")
def deliver_events() -> None:
    """Post to webhook endpoints what happened since, and what failed and is due."""
    posted = delivery.deliver_due()
    if posted:
        logger.info("Posted %d events to webhook endpoints.", posted)


@shared_task(name="workers.mail_alerts")
def mail_alerts() -> None:
    """Have what failed, drifted or waits mailed to who wants to know, together."""
    alerts.enqueue_mails(alerts.SOON)


@shared_task(name="workers.mail_new_gaps")
def mail_new_gaps() -> None:
    """Have the day's new gaps mailed to who wants to know."""
    alerts.enqueue_mails(alerts.DAILY)


@shared_task(name="workers.note_expired_entries")
def note_expired_entries() -> None:
    """Write the events that time alone brings."""
    events.note_expired()


@shared_task(name="workers.draw_reviews")
def draw_reviews() -> None:
    """Have answers drawn for review, as many as experts have time for."""
    review_sampling.draw_weekly()


@shared_task(name="workers.propose_for_gaps")
def propose_for_gaps() -> None:
    """Have the language model propose entries for gaps, where that is wanted."""
    gaps.propose_due()


@shared_task(name="workers.erase_old_texts")
def erase_old_texts() -> None:
    """Have the words erased that knowledge bases want kept no longer."""
    scrubbing.enqueue_where_wanted()


@shared_task(name="workers.retrain")
def retrain() -> None:
    retrainings.enqueue_due()


@shared_task(name="workers.keep_upkeep")
def keep_upkeep() -> None:
    """Have the dates of reviews checked, and what is overdue for too long doubted."""
    upkeep.enqueue_round()


@shared_task(name="workers.remind_owners")
def remind_owners() -> None:
    """Have owners reminded of what came due, where there is a mail server."""
    if settings.MAIL_URL:
        enqueue(reminders.KIND, {}, idempotency_key=reminders.KIND)


@worker_ready.connect
def _sweep_at_start(**_: object) -> None:
    # What the last worker left behind need not wait for beat.
    sweep.delay()
