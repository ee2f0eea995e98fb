"""Print how well duplicates and contradictions are found, on labelled pairs."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

import kb.conflicts
from kb.conflicts.judgement import MODEL
from kb.embedding.embedder import load_embedder
from qa.evaluation import conflicts
from qa.evaluation.report.tables import markdown_of, print_tables
from qa.inference.configured import load_judge
from qa.management import base

_SHIPPED = Path(kb.conflicts.__file__).parent


class Command(base.Command):
    help = (
        "Print precision and recall of duplicates and contradictions on the labelled "
        "pairs, for the half that the weights were fitted on and the half that they "
        "never saw, with Wilson 95 % intervals and what each group of signals adds. "
        "Needs no database. Exit code: 0, or 2 if it can't be made."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--pairs", type=Path, default=_SHIPPED / "labelled_pairs.jsonl",
            help="JSON Lines with half, kind, type, first, second.",
        )  # fmt: skip
        add(
            "--fit", type=Path, metavar="PATH",
            help="Fit the weights on the development half and write them there.",
        )  # fmt: skip
        add(
            "--judge", action="store_true",
            help="Print instead what the language model adds as judge of unsure pairs.",
        )  # fmt: skip
        add(
            "--markdown", type=Path, metavar="PATH", help="Also write them as Markdown."
        )

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        embedder = load_embedder(settings.EMBEDDING_MODEL)
        try:
            pairs = conflicts.read_pairs(options["pairs"], embedder)
        except OSError as error:
            raise CommandError(str(error), returncode=2) from error
        if options["fit"]:
            self._fit(pairs, options["fit"])
            return
        tables = (
            conflicts.judge_tables_of(pairs, load_judge())
            if options["judge"]
            else conflicts.tables_of(pairs)
        )
        print_tables(tables, (), self.console())
        if options["markdown"]:
            heading = {
                "pairs": len(pairs),
                "weights": MODEL.version,
                "embedder": settings.EMBEDDING_MODEL,
            }
            text = markdown_of("Duplicates and contradictions", heading, tables, ())
            base.write_figures(options["markdown"], text)

    def _fit(self, pairs: Sequence[conflicts.LabelledPair], path: Path) -> None:
        seen = [pair for pair in pairs if pair.half == "development"]
        model = conflicts.fit_model(seen, version=str(int(MODEL.version) + 1))
        written = asdict(model)
        del written["ignored_signals"]  # of ablations alone
        base.write_figures(path, dumps(written, indent=2))
        self.stdout.write(f"Fitted on {len(seen)} pairs; written to {path}.")
