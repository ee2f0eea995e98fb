"""Imported once, by the process that web server, workers and scheduler are forked from."""

import os

from nescio.forking import import_before_fork, import_web_server

os.setsid()  # out of reach of a terminal's Ctrl-C and end
import_web_server()
import_before_fork(
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "nescio.celery",
    "waitress.server",  # of `nescio.web_server`, which is run, not imported
    "workers.tasks",
)
