"""Requests that come at the same time, computed as one batch."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from accounts.fair_lock import FairLock

Item = TypeVar("Item")
Result = TypeVar("Result")


class OverdueError(Exception):
    """Who asked waits no longer; nothing was computed for them."""


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    deadline: float
    result: Result | None = None
    error: Exception | None = None
    is_done: bool = False


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
        mine = _Waiting[Item, Result](item, deadline)
        self._line.append(mine)
        with self._turn:
            # Whoever had the turn before may have taken this one with theirs. Two that come at
            # the same moment may stand in the line the other way round.
            while not mine.is_done:
                self._compute()
        if mine.error is not None:
            raise mine.error
        return mine.result  # type: ignore[return-value]  # it is done

    def _compute(self) -> None:
        count = min(len(self._line), self._most)
        taken = [self._line.popleft() for _ in range(count)]
        now = time.monotonic()
        for each in taken:
            each.is_done = True
            if each.deadline < now:
                each.error = OverdueError("The question waited too long for its turn.")
        due = [each for each in taken if each.error is None]
        if not due:
            return
        try:
            results = self._run([each.item for each in due])
        except Exception as error:  # noqa: BLE001  # of any kind: raised where it was asked
            for each in due:
                each.error = error
        else:
            for each, result in zip(due, results, strict=True):
                each.result = result
