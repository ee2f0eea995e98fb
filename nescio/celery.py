"""The Celery application: `celery -A nescio worker`, `celery -A nescio beat`."""

import os
from datetime import timedelta

from celery import Celery
from celery.apps.worker import Worker
from celery.schedules import crontab
from celery.signals import (
    after_task_publish,
    beat_init,
    worker_init,
    worker_process_init,
    worker_ready,
)
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from nescio.forking import import_before_fork, model_libraries
from workers import broker as file_broker
from workers.queues import IMPORTS, INTERACTIVE


def schedules() -> dict[str, dict[str, object]]:
    """Return beat's schedule; every task must tolerate two concurrent runs."""
    sweep_every: timedelta = settings.JOB_SWEEP_INTERVAL
    # By task: when it is sent, and after how many seconds it expires.
    times: dict[str, tuple[timedelta | crontab, float]] = {
        "sweep": (sweep_every, max(sweep_every.total_seconds(), 10)),
        "prune": (timedelta(hours=1), 3600),
        "keep_vector_index": (timedelta(minutes=10), 600),
        "fail_abandoned_questions": (timedelta(minutes=5), 300),
        "find_conflicts": (crontab(hour=2, minute=40), 6 * 3600),
        "count_uses": (timedelta(minutes=3), 180),
        "doubt_entries": (timedelta(minutes=3), 180),
        "weigh_votes": (crontab(minute=25), 1800),
        "count_days": (timedelta(minutes=1), 60),
        "check_sources": (timedelta(minutes=5), 300),
        "find_gaps": (timedelta(minutes=10), 600),
        "ask_again": (timedelta(minutes=1), 60),
        "deliver_events": (timedelta(seconds=5), 5),
        "mail_alerts": (timedelta(minutes=5), 300),
        "mail_new_gaps": (crontab(hour=6, minute=40), 6 * 3600),
        "note_expired_entries": (timedelta(minutes=5), 300),
        "send_notices": (timedelta(hours=1), 3600),
        "keep_past_questions": (crontab(minute=40), 1800),
        "retrain": (crontab(hour="*/3", minute=50), 3600),
        "erase_old_texts": (crontab(hour=0, minute=50), 6 * 3600),
        "keep_upkeep": (crontab(hour=2, minute=10), 6 * 3600),
        "propose_for_gaps": (crontab(hour=1, minute=30), 6 * 3600),
        "remind_owners": (crontab(hour=6, minute=30), 6 * 3600),
        "draw_reviews": (crontab(hour=4, minute=20, day_of_week="mon"), 6 * 3600),
        "calibrate_where_due": (crontab(hour="*/2", minute=5), 3600),
        "watch_drift": (crontab(hour=3, minute=20), 6 * 3600),
    }
    return {
        name: {
            "task": f"workers.{name}",
            "schedule": schedule,
            "options": {"expires": expires},
        }
        for name, (schedule, expires) in times.items()
    }


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
file_broker.install()

app = Celery("nescio")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers"])


@app.on_after_configure.connect
def _schedule(sender: Celery, **_: object) -> None:
    sender.conf.beat_schedule = schedules()


@beat_init.connect
def _show_what_is_sent(**_: object) -> None:
    after_task_publish.connect(_note_the_time, weak=False)


def _note_the_time(**_: object) -> None:
    # For the health check of beat's container: the broker accepted a task at this time.
    settings.PLACES.scheduled.touch()


@worker_init.connect
def _refuse_unfit_database(**_: object) -> None:
    # Models need Django to be set up, which Celery does just before this.
    from nescio import fitness  # noqa: PLC0415

    try:
        fitness.require_fit_database()
    except ImproperlyConfigured as error:
        # Celery logs other exceptions of a receiver and continues, which it must not.
        raise SystemExit(str(error)) from error


# Long jobs have a lower priority than work that somebody waits for. A worker starts
# with normal priority, though: on a busy machine its imports took minutes otherwise.
_BACKGROUND_NICE = 10


@worker_init.connect
def _prepare(sender: Worker, **_: object) -> None:
    queues = set(sender.app.amqp.queues.consume_from)
    if INTERACTIVE in queues:
        return
    worker_process_init.connect(_go_behind, weak=False)
    worker_ready.connect(_go_behind, weak=False)
    if IMPORTS in queues:  # every import needs the embedder
        import_before_fork(*model_libraries())


def _go_behind(**_: object) -> None:
    # Not relative to the current value: later processes of a pool are forked from one
    # whose priority was already lowered.
    now = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(now, _BACKGROUND_NICE))
