"""Nescio's Celery application, which also knows the kinds of job made for tests."""

from nescio.celery import app

__all__ = ["app"]

app.autodiscover_tasks(["tests.workers"], related_name="handlers")
