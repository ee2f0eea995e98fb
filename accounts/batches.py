"""Batching of concurrent requests into one computation."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from accounts.fair_lock import FairLock

Item = TypeVar("Item")
Result = TypeVar("Result")


class OverdueError(Exception):
    """The deadline passed before the item's turn; nothing was computed for it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    deadline: float
    result: Future[Result]


class Batches(Generic[Item, Result]):
    """Runs a function on all waiting items, while others gather for the next batch.

    So a single request does not wait for others, and many at once take few passes.
    """

    def __init__(
        self, run: Callable[[Sequence[Item]], Sequence[Result]], *, most: int
    ) -> None:
        """Take `run`, which returns results in order for at most `most` items."""
        self._run, self._most = run, most
        self._turn = FairLock()
        self._line: deque[_Waiting[Item, Result]] = deque()

    @property
    def waiting(self) -> int:
        """The number of items that are not yet part of a batch."""
        return len(self._line)

    def ask(self, item: Item, *, deadline: float) -> Result:
        """Return an item's result; `deadline` is on the monotonic clock.

        Raises:
            OverdueError: Its turn came after the deadline.
            Exception: Whatever `run` raised for its batch.
        """
        mine: _Waiting[Item, Result] = _Waiting(item, deadline, Future())
        self._line.append(mine)
        with self._turn:
            # The previous thread may have computed this item too. If two threads arrive
            # together, the later one may get the lock first.
            while not mine.result.done():
                self._compute()
        return mine.result.result()

    def _compute(self) -> None:
        count = min(len(self._line), self._most)
        taken = [self._line.popleft() for _ in range(count)]
        now = time.monotonic()
        due = [each for each in taken if each.deadline >= now]
        for each in taken:
            if each.deadline < now:
                late = OverdueError("The question waited too long for its turn.")
                each.result.set_exception(late)
        if not due:
            return
        try:
            results = self._run([each.item for each in due])
        except Exception as error:  # noqa: BLE001  # re-raised in every waiting thread
            for each in due:
                each.result.set_exception(error)
        else:
            for each, result in zip(due, results, strict=True):
                each.result.set_result(result)
