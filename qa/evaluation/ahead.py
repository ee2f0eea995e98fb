"""Preparing what comes next in a thread while the present item is worked on."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from django.db import connection

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")

_DEPTH = 2  # one is being prepared while one waits


def prepared_ahead(
    prepare: Callable[[Item], Prepared], items: Iterable[Item]
) -> Iterator[Prepared]:
    """Yield `prepare(item)` of every item, in order, made in a thread of its own.

    Inside a caller's transaction, whose rows no other thread would see, each is made
    when it is asked for. What `prepare` raises is raised in its item's place.
    """
    if connection.in_atomic_block:
        yield from map(prepare, items)
        return
    waiting: deque[Future[Prepared]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        try:
            for item in items:
                waiting.append(thread.submit(copy_context().run, prepare, item))
                if len(waiting) > _DEPTH:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            # A connection belongs to its thread, which ends here.
            thread.submit(_close_connection)


def _close_connection() -> None:
    connection.close()
