"""What all studies share: the command, its progress bar, and where its tables go."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from typing import Any, ClassVar, Final

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console

from accounts.exceptions import NescioError
from qa.evaluation.report.tables import TextTable, markdown_of, print_tables
from qa.management.base import (
    require_directories,
    require_files,
    share,
    write_figures,
    writing,
)
from qa.management.progress import Bars

OnProgress = Callable[[str, int, int], None]
"""Takes the step's name, how many of its items are done, and how many there are."""

_FILES: Final[Mapping[str, str]] = {
    "json": "Also write the figures there.",
    "markdown": "Also write the tables there, as Markdown.",
    "plots": "Also draw the curves into this directory, as SVG and PNG.",
}


def no_progress(_step: str, _done: int, _total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says helps, beside what it is compared with on the same questions.

    Attributes:
        name: What is compared with what.
        paper: The table or figure of the paper that claims it.
        value: The difference, above 0 where the method is better: in [-1, 1].
        interval: Its 95 % interval; None where it is undefined.
        count: How many questions or answers it was measured on.
        why: What keeps it from gaining, if it does not.
        unit: "points" of a share, or "AUROC".
    """

    name: str
    paper: str
    value: float | None
    interval: tuple[float, float] | None
    count: int
    why: str = ""
    unit: str = "points"

    @property
    def verdict(self) -> str:
        if self.value is None or self.interval is None:
            return "not measured"
        low, high = self.interval
        return "gains" if low > 0 else "harm" if high < 0 else "no gain"

    @property
    def reason(self) -> str:
        """Why it is no gain: how small a difference these questions show, and `why`."""
        if self.verdict == "gains":
            return ""
        if self.value is None or self.interval is None:
            return self.why or f"{self.count:,} questions are too few for an interval."
        if self.verdict == "harm":
            return self.why
        low, high = self.interval
        scale, digits = (100, 1) if self.unit == "points" else (1, 3)
        within = f"{scale * (high - low) / 2:.{digits}f}"
        least = f"Not distinguishable from 0: {self.count:,} show differences from about {within} on."
        return f"{self.why} {least}".strip()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a study measured.

    Attributes:
        heading: Models, data and counts, shown at the top of each file.
        notes: What a reader has to know to read the tables.
        figures: All figures, ready for JSON.
        draw: Writes the plots into a directory.
        claims: What the paper says helps, for `python -m studies headline`.
    """

    title: str
    heading: Mapping[str, object]
    tables: Sequence[TextTable]
    notes: Sequence[str] = ()
    figures: Mapping[str, object] = field(default_factory=dict)
    draw: Callable[[Path], object] | None = None
    claims: Sequence[Claim] = ()

    def markdown(self) -> str:
        return markdown_of(self.title, self.heading, self.tables, self.notes)


class Study(BaseCommand):
    """A study as a command: `measure` makes the figures, the rest is the same for all.

    Paths are checked before anything is asked. Exit code: 0, or 2 if the study can't be
    made.

    Attributes:
        writes: Which of --json, --markdown and --plots it takes.
    """

    writes: ClassVar[Sequence[str]] = ("markdown",)

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the study's own arguments."""
        raise NotImplementedError

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        """Make the figures."""
        raise NotImplementedError

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self.declare(parser)
        parser.add_argument(
            "--seed", type=int, default=0, help="Of all random choices (default 0)."
        )
        for name in self.writes:
            parser.add_argument(
                f"--{name}", type=Path, metavar="PATH", help=_FILES[name]
            )

    def handle(self, *_arguments: object, **options: Any) -> None:
        require_files(options.get("json"), options.get("markdown"))
        require_directories(options.get("plots"))
        try:
            with Bars(Console(file=self.stderr)) as bars:  # type: ignore[arg-type]  # a text stream but by name
                outcome = self.measure(options, bars.at)
        except (NescioError, OSError) as error:
            raise CommandError(str(error), returncode=2) from error
        self.show(outcome)
        self.write(outcome, options)

    def show(self, outcome: Outcome) -> None:
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # the same
        print_tables(outcome.tables, outcome.notes, console)

    def write(self, outcome: Outcome, options: Mapping[str, Any]) -> None:
        date = {"date": f"{timezone.localdate():%Y-%m-%d}"}
        if path := options.get("json"):
            text = dumps({**date, **outcome.figures}, indent=2, ensure_ascii=False)
            write_figures(path, text)
        if path := options.get("markdown"):
            write_figures(path, outcome.markdown())
        if (directory := options.get("plots")) and outcome.draw:
            with writing(directory):
                outcome.draw(directory)


def file_argument(parser: argparse.ArgumentParser, text: str) -> None:
    """Declare --data, which every study on public data sets needs."""
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help=text)


def within_argument(parser: argparse.ArgumentParser) -> None:
    """Declare --within, by which thresholds of deciders are chosen."""
    parser.add_argument(
        "--within", type=share, default=0.01, metavar="SHARE",
        help="How far below its best a threshold may leave accuracy on the questions "
        "that it is chosen by, to retrieve less (default 0.01).",
    )  # fmt: skip
