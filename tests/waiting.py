"""Waiting for another thread or process."""

import time
from collections.abc import Callable
from typing import Final

# Long enough to tell a hang from a busy machine; no test depends on the time itself.
GIVE_UP_SECONDS: Final = 180


def wait_until(holds: Callable[[], object], seconds: float = GIVE_UP_SECONDS) -> float:
    """Wait until `holds()`; return the seconds taken, or fail after `seconds`."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - began
