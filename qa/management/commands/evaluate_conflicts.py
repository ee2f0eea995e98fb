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
from qa.inference.configured import load_cross_encoder_judge, load_judge
from qa.inference.cross_encoder_judge import save_head
from qa.inference.verifier import load_verifier
from qa.management import base

_JUDGES = {
    "cross-encoder": load_cross_encoder_judge,
    "language-model": load_judge,
}
_SHIPPED = Path(kb.conflicts.__file__).parent


class Command(base.Command):
    help = (
        "Print precision and recall of duplicates and contradictions on the labelled "
        "pairs, separately for the pairs that the weights were fitted on and for "
        "unseen ones, with Wilson 95 % intervals and the contribution of each group "
        "of signals. Needs no database. Exit code: 0, or 2 on failure."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--pairs", type=Path, default=_SHIPPED / "labelled_pairs.jsonl",
            help="JSON Lines with part, kind, type, first, second.",
        )  # fmt: skip
        add(
            "--fit", type=Path, metavar="PATH",
            help="Fit the signals' weights on the development part and write them there.",
        )  # fmt: skip
        add(
            "--fit-head", type=Path, metavar="PATH",
            help="Fit the head on the verifier's cross-encoder, with further pairs.",
        )  # fmt: skip
        add(
            "--judge", choices=_JUDGES, nargs="?", const="language-model",
            help="Print instead what this judge adds: the cross-encoder, or the "
            "language model.",
        )  # fmt: skip
        add(
            "--markdown", type=Path, metavar="PATH", help="Also write them as Markdown."
        )

    def handle(self, **options: Any) -> None:
        embedder = load_embedder(settings.EMBEDDING_MODEL)
        try:
            pairs = conflicts.read_pairs(options["pairs"], embedder)
        except OSError as error:
            raise CommandError(str(error), returncode=2) from error
        if options["fit"] or options["fit_head"]:
            self._fit(pairs, options["fit"], options["fit_head"])
            return
        judge = _JUDGES[options["judge"]]() if options["judge"] else None
        tables = (
            conflicts.judge_tables_of(pairs, judge)
            if judge
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

    def _fit(
        self,
        pairs: Sequence[conflicts.LabelledPair],
        weights: Path | None,
        head: Path | None,
    ) -> None:
        seen = [pair for pair in pairs if pair.part == "development"]
        if weights:
            model = conflicts.fit_model(seen, version=str(int(MODEL.version) + 1))
            written = asdict(model)
            del written["ignored_signals"]  # used only in ablations
            base.write_figures(weights, dumps(written, indent=2))
        if head:
            seen += [pair for pair in pairs if pair.part == "further"]
            save_head(conflicts.fit_head(seen, load_verifier()), head)
        places = " and ".join(str(path) for path in (weights, head) if path)
        self.stdout.write(f"Fitted on {len(seen)} pairs; written to {places}.")
