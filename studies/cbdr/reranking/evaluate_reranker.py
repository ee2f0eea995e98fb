"""Print what CBDR's reranker and its gate gain, each apart."""

import argparse
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.evaluation.report.tables import markdown_of, print_tables
from qa.management.base import positive, require_files, share, write_figures
from qa.management.fitting_arguments import add_reranker_fitting, reranker_fitting
from qa.management.progress import Bars


class Command(BaseCommand):
    """`manage.py evaluate_reranker --data DIR --others FILE ...`."""

    help = (
        "Fit a boundary probe and a reranker on some of SQuAD's articles and measure on "
        "others: the reranker before and after, and its gain and the gate's gain apart, "
        "with paired 95 % intervals. Nothing is kept in force. Exit code: 0, or 2 if it "
        "can't be made."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, required=True, metavar="PATH",
            help="SQuAD 2.0's file, or a directory of data sets.",
        )  # fmt: skip
        parser.add_argument(
            "--others", type=Path, nargs="+", default=[], metavar="FILE",
            help="JSON Lines of questions that SQuAD's texts hardly ever answer.",
        )  # fmt: skip
        parser.add_argument(
            "--questions", type=positive, default=1000,
            help="Of SQuAD, in all parts together (default 1000).",
        )  # fmt: skip
        parser.add_argument(
            "--notes", type=positive, default=8, help="Found by each (default 8)."
        )
        parser.add_argument("--seed", type=int, default=0, help="Of all that is drawn.")
        parser.add_argument(
            "--margin", type=share, default=0.005, metavar="SHARE",
            help="How far a note has to move the confidence (default 0.005).",
        )  # fmt: skip
        add_reranker_fitting(parser)
        parser.add_argument(
            "--json", type=Path, metavar="PATH", help="Also write the figures there."
        )
        parser.add_argument(
            "--markdown", type=Path, metavar="PATH", help="Also write them as Markdown."
        )

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # torch takes seconds, which `--help` need not pay for.
        from qa.inference.policy_models import load_closed_book_form  # noqa: PLC0415
        from studies.cbdr.reranking import study, tables  # noqa: PLC0415
        from studies.cbdr.reranking.questions import Sizes  # noqa: PLC0415

        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # a text stream but by name
        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # the same
        require_files(options["json"], options["markdown"])
        try:
            form = load_closed_book_form()
            asked = study.StudySettings(
                data=options["data"],
                others=options["others"],
                base=options["base"],
                sizes=Sizes(options["questions"], options["notes"], options["seed"]),
                margin=options["margin"],
                device=settings.MODEL_DEVICE,
            )
            asked = replace(
                asked, reranker=replace(asked.reranker, **reranker_fitting(options))
            )
            with Bars(errors) as bars:
                found = study.run_study(form, asked, on_progress=bars.at)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        made = list(tables.tables_of(found))
        thresholds = ", ".join(
            f"{order}: {'none' if value is None else f'{value:.3f}'}"
            for order, value in found.min_known.items()
        )
        notes = (
            *tables.NOTES,
            f"Chosen min_known by order of the notes: {thresholds}.",
        )
        print_tables(made, notes, console)
        heading = {
            "language model": form.model.name,
            "fingerprint": form.fingerprint[:12],
            "seed": options["seed"],
        }
        if path := options["json"]:
            text = dumps({**heading, **tables.as_json(found)}, indent=2)
            write_figures(path, text)
        if path := options["markdown"]:
            write_figures(path, markdown_of("CBDR", heading, made, notes))
