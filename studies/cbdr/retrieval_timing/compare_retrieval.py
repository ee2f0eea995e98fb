"""Print who decides best when to retrieve, on public data sets."""

import argparse
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console

from accounts.exceptions import NescioError
from qa.evaluation.report.tables import markdown_of, print_tables
from qa.management.base import (
    positive,
    require_directories,
    require_files,
    share,
    write_figures,
    writing,
)
from qa.management.progress import Bars
from studies.cbdr.retrieval_timing.build import DECIDERS
from studies.cbdr.retrieval_timing.questions import SETS, Sizes


class Command(BaseCommand):
    """`manage.py compare_retrieval --data DIR`."""

    help = (
        "Print retrieval rate, accuracy and decision cost of each way of deciding when "
        "to retrieve, on seeded questions of public data sets, half of which the "
        "knowledge base can help with. Every question is asked once and kept; a run that "
        "is broken off goes on from there. Exit code: 0, or 2 if it can't be made."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, required=True, metavar="DIR",
            help="Directory of the data sets, each in a directory of its name.",
        )  # fmt: skip
        parser.add_argument(
            "--sets", nargs="+", choices=SETS, default=SETS, metavar="SET",
            help=f"Of {', '.join(SETS)}; all by default.",
        )  # fmt: skip
        parser.add_argument(
            "--deciders", nargs="+", choices=DECIDERS, default=DECIDERS, metavar="NAME",
            help=f"Beside never and always: {', '.join(DECIDERS)}; all by default.",
        )  # fmt: skip
        parser.add_argument(
            "--questions", type=positive, default=200, metavar="N",
            help="Of each set, half of them to choose thresholds by (default 200).",
        )  # fmt: skip
        parser.add_argument(
            "--first", type=positive, metavar="N",
            help="Ask N of them to choose thresholds by and N to test for now; the same "
            "command with more goes on from there.",
        )  # fmt: skip
        parser.add_argument(
            "--teaching", type=positive, default=500, metavar="N",
            help="Other questions of each open-domain set, which deciders learn from "
            "(default 500).",
        )  # fmt: skip
        parser.add_argument(
            "--helped", type=share, default=0.5, metavar="SHARE",
            help="Of the answerable questions, those with an entry (default 0.5).",
        )  # fmt: skip
        parser.add_argument(
            "--within", type=share, default=0.01, metavar="SHARE",
            help="How far below its best a threshold may leave accuracy on the questions "
            "that it is chosen by, to retrieve less (default 0.01).",
        )  # fmt: skip
        parser.add_argument("--seed", type=int, default=0, help="Of all that is drawn.")
        parser.add_argument(
            "--record", type=Path, metavar="PATH",
            help="Where what was asked is kept (default: under the variable directory).",
        )  # fmt: skip
        parser.add_argument(
            "--json", type=Path, metavar="PATH", help="Also write the figures there."
        )
        parser.add_argument(
            "--markdown", type=Path, metavar="PATH", help="Also write them as Markdown."
        )
        parser.add_argument(
            "--plots", type=Path, metavar="DIR",
            help="Also draw accuracy against retrieval rate there, as SVG and PNG.",
        )  # fmt: skip

    def handle(
        self,
        *,
        data: Path,
        sets: Sequence[str],
        **options: Any,  # noqa: ANN401  # as declared
    ) -> None:
        # torch takes seconds, which `--help` need not pay for.
        from studies.cbdr.retrieval_timing import comparing, tables  # noqa: PLC0415

        console = Console(file=self.stdout)  # type: ignore[arg-type]  # a text stream but by name
        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # the same
        asked = comparing.Options(
            data=data,
            sets=sets,
            sizes=_sizes(options),
            deciders=options["deciders"],
            first=options["first"],
            within=options["within"],
            record=options["record"] or settings.PLACES.var / _RECORD,
        )
        require_files(options["json"], options["markdown"])
        require_directories(options["plots"])
        try:
            with Bars(errors) as bars:
                figures = comparing.compare_retrieval(asked, on_progress=bars.at)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        parts, notes = list(tables.tables(figures)), tables.notes(figures)
        print_tables(parts, notes, console)
        date = {"date": f"{timezone.localdate():%Y-%m-%d}"}
        if path := options["json"]:
            write_figures(
                path, dumps({**date, **figures}, indent=2, ensure_ascii=False)
            )
        if path := options["markdown"]:
            heading = date | {name: figures[name] for name in _HEADING}
            write_figures(path, markdown_of("When to retrieve", heading, parts, notes))
        if directory := options["plots"]:
            # Pulls in matplotlib, which takes a second.
            from studies.cbdr.retrieval_timing.tables import write_plots  # noqa: PLC0415

            with writing(directory):
                write_plots(figures, directory)


_RECORD = Path("evaluation") / "retrieval-timing.jsonl"
_HEADING = ("language_model", "sets", "calibration", "test", "seed")


def _sizes(options: Mapping[str, Any]) -> Sizes:
    return Sizes(
        asked=options["questions"],
        teaching=options["teaching"],
        helped=options["helped"],
        seed=options["seed"],
    )
