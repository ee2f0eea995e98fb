"""Every test runs on the embedded PostgreSQL and, where it needs one, on a real model."""

import os

import pytest


def pytest_sessionstart(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    from django.conf import settings

    from nescio.embedded import postgres

    if settings.DATABASE_IS_EMBEDDED:
        postgres.start(settings.PLACES)
