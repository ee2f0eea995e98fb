"""A lock that threads acquire in the order in which they asked for it."""

import threading
from collections import deque


class FairLock:
    """A lock that is re-entrant like `threading.RLock`, and first come, first served.

    A thread that releases one of Python's own locks and acquires it again at once, as
    between two steps of a long job, gets it before any thread that waits; these may
    starve for minutes.
    """

    def __init__(self) -> None:
        self._line: deque[threading.Lock] = deque()  # the first one's thread owns it
        self._changing = threading.Lock()
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner != me:
            self._wait()
            self._owner = me
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._leave(self._line[0])

    @property
    def waiting(self) -> int:
        """The number of threads that wait for the lock."""
        return max(0, len(self._line) - 1)

    def _wait(self) -> None:
        turn = threading.Lock()
        turn.acquire()
        with self._changing:
            self._line.append(turn)
            if self._line[0] is turn:
                return
        try:
            turn.acquire()  # released by the thread before us when it leaves
        except BaseException:  # such as a signal that ends the process
            self._leave(turn)
            raise

    def _leave(self, turn: threading.Lock) -> None:
        with self._changing:
            was_first = self._line[0] is turn
            self._line.remove(turn)
            if was_first and self._line:
                self._line[0].release()
