"""Signals that mean "stop" as one exception in the main thread, raised once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop(BaseException):
    """Leave now, stopping everything in good order."""


class StopGate:
    """Lets one signal through; once closed, signals are only told of."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._is_open = True

    def close(self) -> None:
        """Let nothing interrupt from here on."""
        self._is_open = False

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Raise Stop at the first signal; what stops already is not stopped again."""
        if self._is_open:
            self._is_open = False
            raise Stop
        self._say("Already stopping; this takes half a minute at most.")


@contextmanager
def stop_gate(say: Callable[[str], None]) -> Iterator[StopGate]:
    """Turn SIGINT, SIGTERM and SIGHUP into `Stop` for the length of the block."""
    gate = StopGate(say)
    before = {number: signal.signal(number, gate.receive) for number in _SIGNALS}
    try:
        yield gate
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
