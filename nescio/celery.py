"""The Celery application: `celery -A nescio worker`, `celery -A nescio beat`."""

import os

from celery import Celery
from celery.apps.worker import Worker
from celery.signals import worker_init, worker_process_init, worker_ready
from django.core.exceptions import ImproperlyConfigured

from nescio.forking import MODEL_LIBRARIES, import_before_fork
from workers import broker as file_broker
from workers.queues import IMPORTS, INTERACTIVE
from workers.schedules import schedules

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
file_broker.install()

app = Celery("nescio")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers"])


@app.on_after_configure.connect
def _schedule(sender: Celery, **_: object) -> None:
    sender.conf.beat_schedule = schedules()


@worker_init.connect
def _refuse_unfit_database(**_: object) -> None:
    # Models need Django set up, which Celery does just before.
    from nescio import fitness  # noqa: PLC0415

    try:
        fitness.require_fit_database()
    except ImproperlyConfigured as error:
        # Celery logs what a receiver raises and goes on; it may not go on.
        raise SystemExit(str(error)) from error


# Work that takes hours lets what somebody waits for go first. A worker starts like any
# other process, though: behind a busy machine's questions its imports took minutes.
_BACKGROUND_NICE = 10


@worker_init.connect
def _prepare(sender: Worker, **_: object) -> None:
    queues = set(sender.app.amqp.queues.consume_from)
    if INTERACTIVE in queues:
        return
    worker_process_init.connect(_go_behind, weak=False)
    worker_ready.connect(_go_behind, weak=False)
    if IMPORTS in queues:  # any file needs the embedder
        import_before_fork(*MODEL_LIBRARIES)


def _go_behind(**_: object) -> None:
    # Not by so much more: a pool's later processes are forked from one that went behind.
    now = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(now, _BACKGROUND_NICE))
