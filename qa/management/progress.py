"""How far a command is, on standard error: a bar with the rate and the time left."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Bar:
    """A bar that appears once it is told where it is."""

    def __init__(self, what: str, console: Console) -> None:
        """Name the work."""
        self._what = what
        self._task: int | None = None
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(""),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )

    def at(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        if self._task is None:
            self._progress.start()
            # What was done before counts for the share and not for the rate.
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
        self._progress.stop()


class _Rate(TextColumn):
    """So many a second, from the last of them."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s")
