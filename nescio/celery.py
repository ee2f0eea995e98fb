"""The Celery application: `celery -A nescio worker`, `celery -A nescio beat`."""

import os

from celery import Celery
from celery.signals import worker_init
from django.core.exceptions import ImproperlyConfigured

from workers import broker as file_broker
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
