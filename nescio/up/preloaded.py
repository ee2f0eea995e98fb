"""Imports of the process from which web server, workers and scheduler are forked."""

import os

from nescio.forking import import_before_fork, import_web_server

os.setsid()  # so that a terminal's Ctrl-C or end does not reach it
import_web_server()
import_before_fork(
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "nescio.celery",
    "waitress.server",  # for `nescio.web_server`, which is run rather than imported
    "workers.tasks",
)
