"""The abstention study: a report on finished runs of the active language model."""

import argparse
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from probes.abstention.fitting import FitSettings
from qa.evaluation.models import EvaluationResult
from qa.evaluation.report.svg_charts import (
    house_style,
    risk_coverage_drawing,
    write_drawing,
)
from qa.exceptions import EvaluationDataError
from qa.inference.configured import load_language_model
from qa.inference.white_box import load_white_box
from qa.management.base import add_probe_fitting, probe_fitting
from qa.training.labels import LabelledDraft, drafts_of_runs, drawn_together
from studies.study import OnProgress, Outcome, Study

from .build import Built, Options, build_report, fits_planned, places_of
from .insides import ReadInsides
from .scores import PARTS, TITLES, Examined, examine
from .tables import claims_of, tables

_HEADING: Final = (
    "runs", "language_model", "answers", "articles", "right", "folds", "seed",
)  # fmt: skip


class Command(Study):
    """`python -m studies abstention --runs ID...`."""

    help = (
        "Print how well the language model's activations, and every other score, "
        "separate right answers from wrong ones: out of fold by article, with "
        "bootstrap 95 % intervals. Takes finished evaluation runs in shadow. What is "
        "read from the model is kept, so an interrupted report continues from there. "
        "Exit code: 0, or 2 if the report can't be made."
    )
    writes = ("json", "markdown", "plots")

    def declare(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--runs", nargs="+", type=int, required=True, metavar="ID",
            help="Finished evaluation runs in shadow of the configured language model.",
        )  # fmt: skip
        parser.add_argument(
            "--folds", type=int, default=5, help="Cross-validation folds, at least 3."
        )
        parser.add_argument(
            "--without", nargs="+", choices=PARTS, default=(), metavar="PART",
            help=f"Parts to leave out because they take long: {', '.join(PARTS)}.",
        )  # fmt: skip
        add_probe_fitting(parser)

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        made = Options(
            FitSettings(**probe_fitting(options)),
            seed=options["seed"],
            without=options["without"],
        )
        return abstention_report(
            options["runs"],
            made,
            folds=options["folds"],
            directory=settings.PLACES.activations,
            on_progress=on_progress,
        )


def abstention_report(
    runs: Sequence[int],
    options: Options,
    *,
    folds: int,
    directory: Path,
    on_progress: OnProgress,
) -> Outcome:
    """Read activations, fit probes and report.

    Args:
        runs: Ids of finished evaluation runs.
        folds: Of the cross-validation, at least 3.
        directory: Keeps what is read from the model.

    Raises:
        EvaluationDataError: No draft is left, or there are fewer articles than folds.
    """
    language_model = load_language_model()
    model = load_white_box(language_model)
    if model is None:
        raise EvaluationDataError(
            "The report needs a model whose activations can be read: set "
            "NESCIO_SURROGATE_MODEL to one that can be loaded here."
        )
    drafts = drawn_together(
        [drafts_of_runs(runs, language_model=language_model.fingerprint)]
    )
    seen = frozenset(model.adapter.groups if model.adapter else ())
    unseen = [draft for draft in drafts if draft.group not in seen]
    if not unseen:
        raise EvaluationDataError(
            f"All {len(drafts):,} drafts of runs {', '.join(map(str, runs))} are about "
            "articles that the adapter was fitted on. Ask a suite about others: "
            "manage.py evaluate squad2 --exclude-articles ..."
        )
    read = ReadInsides(model, unseen, directory=directory, on_progress=on_progress)
    rouge = _rouge(runs)
    examined = examine(
        read.drafts, [rouge.get(draft.id) for draft in read.drafts],
        folds=folds, seed=options.seed,
    )  # fmt: skip
    read.read_together(places_of(read, options))
    planned, fitted = fits_planned(examined, read, options), count(1)
    built = build_report(
        examined, read, options,
        on_fit=lambda: on_progress("Fitting probes", next(fitted), planned),
    )  # fmt: skip
    notes = _notes(drafts, unseen, read.drafts, runs)
    figures = {"runs": list(runs), **built.figures, "notes": notes}
    return Outcome(
        "Abstention",
        {name: figures[name] for name in _HEADING},
        list(tables(figures)),
        notes,
        figures,
        lambda directory: _draw(built, examined, directory),
        [*claims_of(figures)],
    )


def _draw(built: Built, examined: Examined, directory: Path) -> None:
    """Draw the risk of every score against its coverage."""
    named = {TITLES[name]: values.tolist() for name, values in built.scores.items()}
    with house_style():
        drawing = risk_coverage_drawing(named, examined.wrong)
        write_drawing(drawing, "abstention-risk-coverage", directory)


def _rouge(runs: Sequence[int]) -> dict[str, float]:
    """Return ROUGE-L by draft id, for the drafts that have a reference."""
    rows = EvaluationResult.objects.filter(run__in=runs, measures__has_key="rouge_l")
    found = rows.values_list("run_id", "case_id", "measures__rouge_l")
    return {f"{run}:{case}": float(value) for run, case, value in found}


def _notes(
    drafts: Sequence[LabelledDraft],
    unseen: Sequence[LabelledDraft],
    read: Sequence[LabelledDraft],
    runs: Sequence[int],
) -> list[str]:
    results = EvaluationResult.objects.filter(run__in=runs)
    undrafted = results.filter(is_correct__isnull=True).count()
    counted = (
        (
            undrafted,
            "questions of the runs have no draft and are not examined; ask in shadow "
            "to get a draft for each.",
        ),
        (
            len(drafts) - len(unseen),
            "drafts about articles that the adapter was fitted on are left out.",
        ),
        (
            len(unseen) - len(read),
            "drafts do not fit the model's context and are left out.",
        ),
    )
    return [
        "Every figure of a fitted score is out of fold: no fit behind it, nor behind "
        "the inputs of the joint score, saw the answer's article.",
        "Right means that showing the draft would show something right: for a question "
        "without an answer every draft is wrong.",
        "The LSTM beside linear contains the linear probe: what the LSTM itself gains "
        "is its difference from the linear probe.",
        *(f"{number:,} {text}" for number, text in counted if number),
    ]
