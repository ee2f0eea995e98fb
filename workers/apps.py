from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """Celery: what background work does, one handler for each kind of job."""

    name = "workers"
