"""The Celery application: `celery -A nescio worker`, `celery -A nescio beat`."""

import os

from celery import Celery

from workers import file_broker
from workers.schedules import schedules

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
file_broker.install()

app = Celery("nescio")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers"])


@app.on_after_configure.connect
def _schedule(sender: Celery, **_: object) -> None:
    sender.conf.beat_schedule = schedules()
