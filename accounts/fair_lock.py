"""A lock that threads get in the order in which they came for it."""

import threading
from collections import deque


class FairLock:
    """Re-entrant as `threading.RLock`, and first come, first served.

    Python's own locks go to a thread that gives one up and takes it again at once, as
    one does between two steps of a long work, before any that waits: it may wait for
    minutes while others pass.
    """

    def __init__(self) -> None:
        self._line: deque[threading.Lock] = deque()  # the first one's thread has it
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
        """How many threads wait for it."""
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
        except BaseException:  # a signal that ends the process, say
            self._leave(turn)
            raise

    def _leave(self, turn: threading.Lock) -> None:
        with self._changing:
            was_first = self._line[0] is turn
            self._line.remove(turn)
            if was_first and self._line:
                self._line[0].release()
