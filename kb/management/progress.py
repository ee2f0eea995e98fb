from collections.abc import Callable


class TenthLines:
    """A line at every tenth of each kind of work, for a terminal and a log alike."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._told = ("", -1)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Tell that `done` of `total` of the work named `what` are done."""
        tenth = 10 if done >= total else 10 * done // total
        if (what, tenth) > self._told or what != self._told[0]:
            self._told = (what, tenth)
            self._write(f"{what}: {done:,} of {total:,}")
