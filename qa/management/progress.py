"""Progress of a command on standard error: a bar with the rate and the time left.

Without a terminal it prints lines instead, few enough for a log.
"""

from time import monotonic
from types import TracebackType
from typing import Self

from rich import progress
from rich.console import Console
from rich.text import Text

_EVERY_SHARE = 0.1
_EVERY_SECONDS = 30.0


class Bar:
    def __init__(self, what: str, console: Console) -> None:
        self._what = what
        self._lines = None if console.is_terminal else _Lines(what, console)
        self._task: int | None = None
        self._progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            _Rate(""),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            console=console,
        )

    def at(self, done: int, total: int) -> None:
        if self._lines:
            self._lines.at(done, total)
        elif self._task is None:
            self._progress.start()
            # Earlier work counts towards the share but not towards the rate.
            self._task = self._progress.add_task(
                self._what, total=total, completed=done
            )
        else:
            self._progress.update(self._task, completed=done, total=total)  # type: ignore[arg-type]  # rich's own number

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:  # stopping prints an empty line even if never shown
            self._progress.stop()


class Bars:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._what, self._bar = "", Bar("", console)

    def at(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self._bar.__exit__(None, None, None)
            self._what, self._bar = what, Bar(what, self._console)
        self._bar.at(done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._bar.__exit__(None, None, None)


class _Lines:
    """Lines at the start, per tenth of the work or half a minute, and at the end."""

    def __init__(self, what: str, console: Console) -> None:
        self._what = what
        self._console = console
        self._shown: int | None = None
        self._shown_at = 0.0

    def at(self, done: int, total: int) -> None:
        now = monotonic()
        if self._shown is not None:
            news = done - self._shown
            is_late = news > 0 and now - self._shown_at >= _EVERY_SECONDS
            is_last = news > 0 and done >= total
            if not (is_late or is_last or news >= _EVERY_SHARE * total > 0):
                return
        rate = ""
        if self._shown is not None and now > self._shown_at:
            rate = f", {(done - self._shown) / (now - self._shown_at):.1f}/s"
        self._shown, self._shown_at = done, now
        line = f"{self._what}: {done:,} of {total:,}{rate}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


class _Rate(progress.TextColumn):
    def render(self, task: progress.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s")
