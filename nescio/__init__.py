import gc

from nescio.celery import app as celery_app

__all__ = ["celery_app"]

# Imports create many thousands of permanent objects: with the default of 700, a process
# spent a seventh of its start-up time on scanning them.
gc.set_threshold(5_000)
