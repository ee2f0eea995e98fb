"""The report on finished evaluation runs of the running language model."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from probes.abstention import FitSettings
from qa.evaluation.report.curves import risk_coverage_drawing, write_drawing
from qa.evaluation.report.figure import house_style
from qa.exceptions import EvaluationDataError
from qa.language_models import load_language_model
from qa.models import EvaluationResult
from qa.probing.white_box import white_box_of
from qa.training.labelled import LabelledDraft, drawn_together
from qa.training.labelled_runs import drafts_of_runs

from .build import Built, Options, build_report, fits_planned, places_of
from .parts import PARTS
from .reading import ReadInsides
from .scores import TITLES
from .tables import tables
from .values import Examined, examine

__all__ = ["PARTS", "AbstentionReport", "abstention_report", "tables"]
_FITTING: Final = "Fitting probes"

OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class AbstentionReport:
    """Figures, and what is needed to draw them.

    Attributes:
        figures: As `build_report` returns them, with the runs and what is to be known.
    """

    figures: dict[str, Any]
    built: Built
    examined: Examined

    def write_plots(self, directory: Path) -> list[Path]:
        """Draw risk against coverage of every score, as SVG and PNG."""
        directory.mkdir(parents=True, exist_ok=True)
        named = {TITLES[n]: v.tolist() for n, v in self.built.scores.items()}
        with house_style():
            drawing = risk_coverage_drawing(named, self.examined.wrong)
            return write_drawing(drawing, "abstention-risk-coverage", directory)


def abstention_report(
    runs: Sequence[int],
    *,
    folds: int,
    seed: int,
    without: Collection[str],
    fitting: Mapping[str, Any],
    directory: Path,
    on_progress: OnProgress,
) -> AbstentionReport:
    """Read, fit and report.

    Args:
        runs: Ids of finished evaluation runs.
        folds: Of the cross-validation, at least 3.
        seed: Of folds, fits and draws.
        without: Names of `parts.PARTS` that are left out.
        fitting: How probes are fitted, by the names of `FitSettings`, where it is not
            as by default.
        directory: Where what is read from the model is kept.
        on_progress: Told what is done, how much of it, of how much.

    Raises:
        TrainingDataError: A run is not there, not finished, or of another model.
        EvaluationDataError: No draft is left, or there are fewer articles than folds.
        TooFewLabelsError: There are too few drafts, or nearly all right or wrong.
    """
    language_model = load_language_model()
    model = white_box_of(language_model)
    if model is None:
        raise EvaluationDataError(
            "Figures of activations need a model to look into: set "
            "NESCIO_SURROGATE_MODEL to one that can be loaded here."
        )
    found = drafts_of_runs(runs, language_model=language_model.fingerprint)
    drafts = drawn_together([found])
    seen = frozenset(model.adapter.groups if model.adapter else ())
    unseen = [draft for draft in drafts if draft.group not in seen]
    if not unseen:
        msg = (
            f"Of {len(drafts):,} drafts of runs {', '.join(map(str, runs))} none is about "
            "an article that the adapter was not fitted on. Ask a suite over others: "
            "manage.py evaluate squad2 --exclude-articles ..."
        )
        raise EvaluationDataError(msg)
    read = ReadInsides(model, unseen, directory=directory, on_progress=on_progress)
    rouge = _rouge(runs)
    examined = examine(
        read.drafts, [rouge.get(draft.id) for draft in read.drafts],
        folds=folds, seed=seed,
    )  # fmt: skip
    options = Options(FitSettings(**fitting), seed=seed, without=without)
    read.read_together(places_of(read, options))
    planned, fitted = fits_planned(examined, read, options), iter(range(1, 10**9))
    built = build_report(
        examined, read, options,
        on_fit=lambda: on_progress(_FITTING, next(fitted), planned),
    )  # fmt: skip
    notes = _notes(drafts, unseen, read.drafts, runs)
    figures = {"runs": list(runs), **built.figures, "notes": notes}
    return AbstentionReport(figures, built, examined)


def _rouge(runs: Sequence[int]) -> dict[str, float]:
    """Return ROUGE-L by the drafts' ids, of those that have a reference."""
    rows = EvaluationResult.objects.filter(run__in=runs, measures__has_key="rouge_l")
    found = rows.values_list("run_id", "case_id", "measures__rouge_l")
    return {f"{run}:{case}": float(value) for run, case, value in found}


def _notes(
    drafts: Sequence[LabelledDraft],
    unseen: Sequence[LabelledDraft],
    read: Sequence[LabelledDraft],
    runs: Sequence[int],
) -> list[str]:
    """Say what a reader has to know before believing the figures."""
    results = EvaluationResult.objects.filter(run__in=runs)
    notes = [
        "Every figure of a fitted score is out of fold: no fit behind it saw the "
        "answer's article, and of the joint score's inputs none did either.",
        "Right means that showing the draft shows something right: to a question "
        "without an answer every draft is wrong.",
    ]
    undrafted = results.count() - results.filter(is_correct__isnull=False).count()
    if undrafted:
        notes.append(
            f"{undrafted:,} questions of the runs have no draft and are not examined; "
            "ask in shadow to have one of each."
        )
    if len(drafts) > len(unseen):
        notes.append(
            f"{len(drafts) - len(unseen):,} drafts about articles that the adapter was "
            "fitted on are left out."
        )
    if len(unseen) > len(read):
        notes.append(
            f"{len(unseen) - len(read):,} drafts do not fit the model's context and are "
            "left out."
        )
    return notes
