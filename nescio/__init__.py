import gc

from nescio.celery import app as celery_app

__all__ = ["celery_app"]

# What is imported and asked for is made of thousands of objects that stay: with 700, the
# default, a seventh of the time in which a process starts went into looking at them.
gc.set_threshold(5_000)
