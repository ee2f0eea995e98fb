"""Requests that come at the same time, computed as one batch."""

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
    """Runs a function on whatever waits: while one batch is computed the next one gathers.

    So a lone request waits for nobody, and many at once cost few passes.
    """

    def __init__(
        self, run: Callable[[Sequence[Item]], Sequence[Result]], *, most: int
    ) -> None:
        """Take what computes a batch, in order, and how many items are one at most."""
        self._run, self._most = run, most
        self._turn = FairLock()
        self._line: deque[_Waiting[Item, Result]] = deque()

    @property
    def waiting(self) -> int:
        """How many items are not yet part of a batch."""
        return len(self._line)

    def ask(self, item: Item, *, deadline: float) -> Result:
        """Return an item's result; `deadline` is on the monotonic clock.

        Raises:
            OverdueError: Its turn came after the deadline.
            Exception: What computing its batch raised.
        """
        mine: _Waiting[Item, Result] = _Waiting(item, deadline, Future())
        self._line.append(mine)
        with self._turn:
            # The thread that had the turn before may have computed this item too. Of two that
            # arrive together the later one may have the turn first.
            while not mine.result.done():
                self._compute()
        return mine.result.result()

    def _compute(self) -> None:
        count = min(len(self._line), self._most)
        taken = [self._line.popleft() for _ in range(count)]
        now = time.monotonic()
        due = [each for each in taken if each.deadline >= now]
        for each in taken:
            if each not in due:
                late = OverdueError("The question waited too long for its turn.")
                each.result.set_exception(late)
        if not due:
            return
        try:
            results = self._run([each.item for each in due])
        except Exception as error:  # noqa: BLE001  # of any kind: raised where it was asked
            for each in due:
                each.result.set_exception(error)
        else:
            for each, result in zip(due, results, strict=True):
                each.result.set_result(result)
