"""Print how well duplicates and contradictions are told, on labelled pairs."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

import kb.conflicts
from accounts.exceptions import NescioError
from kb.conflicts.judgement import MODEL
from kb.embedding.embedder import load_embedder
from qa.evaluation.conflicts import (
    LabelledPair,
    fit_model,
    judge_tables_of,
    read_pairs,
    tables_of,
)
from qa.evaluation.report.tables import markdown_of, print_tables
from qa.inference.configured import load_judge

_SHIPPED = Path(kb.conflicts.__file__).parent


class Command(BaseCommand):
    """`manage.py evaluate_conflicts`."""

    help = (
        "Print precision and recall of duplicates and contradictions on the labelled "
        "pairs, for the half that the weights were fitted on and the half that they "
        "never saw, with Wilson 95 % intervals and what each group of signals adds. "
        "Needs no database. Exit code: 0, or 2 if it can't be made."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--pairs", type=Path, default=_SHIPPED / "labelled_pairs.jsonl",
            help="JSON Lines with half, kind, type, first, second.",
        )  # fmt: skip
        parser.add_argument(
            "--fit", type=Path, metavar="PATH",
            help="Fit the weights on the development half and write them there.",
        )  # fmt: skip
        parser.add_argument(
            "--judge", action="store_true",
            help="Print instead what the language model adds as judge of unsure pairs.",
        )  # fmt: skip
        parser.add_argument(
            "--markdown", type=Path, metavar="PATH", help="Also write them as Markdown."
        )

    def handle(
        self,
        *_arguments: object,
        **options: Any,  # noqa: ANN401  # Django's
    ) -> None:
        try:
            pairs = read_pairs(
                options["pairs"], load_embedder(settings.EMBEDDING_MODEL)
            )
            if options["fit"]:
                self._fit(pairs, options["fit"])
                return
            tables = (
                judge_tables_of(pairs, load_judge())
                if options["judge"]
                else tables_of(pairs)
            )
        except (NescioError, OSError) as error:
            raise CommandError(str(error), returncode=2) from error
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # a text stream but by name
        print_tables(tables, (), console)
        if options["markdown"]:
            heading = {
                "pairs": len(pairs),
                "weights": MODEL.version,
                "embedder": settings.EMBEDDING_MODEL,
            }
            text = markdown_of("Duplicates and contradictions", heading, tables, ())
            options["markdown"].write_text(text, encoding="utf-8")

    def _fit(self, pairs: Sequence[LabelledPair], path: Path) -> None:
        seen = [pair for pair in pairs if pair.half == "development"]
        model = fit_model(seen, version=str(int(MODEL.version) + 1))
        written = asdict(model)
        del written["deaf_to"]  # of ablations alone
        path.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
        self.stdout.write(f"Fitted on {len(seen)} pairs; written to {path}.")
