"""What all studies share: the command, its progress bar and its output files."""

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
"""Called with the step's name, the number of its items done, and their total."""

_FILES: Final[Mapping[str, str]] = {
    "json": "Also write the figures to this JSON file.",
    "markdown": "Also write the tables to this Markdown file.",
    "plots": "Also draw the curves as SVG and PNG into this directory.",
}


def no_progress(_step: str, _done: int, _total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A paper's claim, measured: the method against its baseline on the same questions.

    Attributes:
        name: What is compared with what.
        paper: The table, figure or equation of the paper that makes the claim.
        value: The difference in [-1, 1], above 0 if the method is better.
        interval: Its 95 % interval; None if it is undefined.
        count: The number of questions or answers measured.
        why: The reason for no gain, if there is none.
        unit: "points" (a difference of shares) or "AUROC".
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
        """Why there is no gain: `why`, and the smallest difference detectable."""
        if self.verdict == "gains":
            return ""
        if self.value is None or self.interval is None:
            return self.why or f"{self.count:,} questions are too few for an interval."
        if self.verdict == "harm":
            return self.why
        low, high = self.interval
        scale, digits = (100, 1) if self.unit == "points" else (1, 3)
        within = f"{scale * (high - low) / 2:.{digits}f}"
        least = f"Not distinguishable from 0: {self.count:,} show differences of about {within} or more."
        return f"{self.why} {least}".strip()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a study.

    Attributes:
        heading: Models, data and counts, shown at the top of each file.
        notes: What a reader needs to know to read the tables.
        figures: All figures, ready for JSON.
        draw: Writes the plots into a directory.
        claims: The paper's claims, for `python -m studies headline`.
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
    """Base of a study's command; subclasses implement `declare` and `measure`.

    Output paths are checked before anything is asked. Exit code: 0, or 2 if the study
    can't be carried out.

    Attributes:
        writes: Which of --json, --markdown and --plots the command takes.
    """

    writes: ClassVar[Sequence[str]] = ("markdown",)

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the study's own arguments."""
        raise NotImplementedError

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        """Carry out the study."""
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
    """Declare --data, required by every study on public data sets."""
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help=text)


def within_argument(parser: argparse.ArgumentParser) -> None:
    """Declare --within, the accuracy that a decider's threshold may give up."""
    parser.add_argument(
        "--within", type=share, default=0.01, metavar="SHARE",
        help="How far below the best accuracy, on the questions used to choose it, a "
        "threshold may fall in order to retrieve less (default 0.01).",
    )  # fmt: skip
