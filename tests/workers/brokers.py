"""Points Celery in the test's own process at another broker."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from celery import Celery, current_app
from kombu import pools


@pytest.fixture
def celery_broker() -> Iterator[Callable[..., Celery]]:
    """Point Celery at another broker for one test: `celery_broker(url, **options)`."""
    app: Any = cast("Any", current_app)._get_current_object()
    before = (app.conf.broker_url, app.conf.broker_transport_options)

    def point(url: str, options: dict[str, object]) -> Celery:
        app.conf.broker_url = app.conf.broker_read_url = app.conf.broker_write_url = url
        app.conf.broker_transport_options = options
        pools.reset()
        app._pool = app.amqp._producer_pool = None
        return cast("Celery", app)

    yield lambda url, **options: point(url, options)
    point(*before)
