"""Wait for what another thread or process does."""

import time
from collections.abc import Callable
from typing import Final

# Tells what hangs from what is slow on a busy machine: no test is about the time itself.
GIVE_UP_SECONDS: Final = 180


def wait_until(holds: Callable[[], object], seconds: float = GIVE_UP_SECONDS) -> float:
    """Return the seconds until it `holds()`; fail where it seems that it never will."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - began
