"""What a white-box model held inside, and says of its answers, read once and kept."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from probes.abstention.fitting import FitSettings
from probes.language_model import WhiteBoxModel
from probes.taps import Activations, Tap
from qa.evaluation.models import EvaluationResult
from qa.evaluation.report.svg_charts import (
    house_style,
    risk_coverage_drawing,
    write_drawing,
)
from qa.exceptions import EvaluationDataError
from qa.inference.configured import load_language_model
from qa.inference.white_box import white_box_of
from qa.training import draft_activations as insides
from qa.training.labels import LabelledDraft, drawn_together
from qa.training.stored_labels import drafts_of_runs
from studies.abstention.self_assessment import SelfAssessment, SelfAssessor

from .build import Built, Options, build_report, fits_planned, places_of
from .scores import P_TRUE, PARTS, TITLES, VERBALISED, Examined, examine
from .tables import tables

OnProgress = Callable[[str, int, int], None]
_FILE: Final = "self-assessments.jsonl"


class ReadInsides:
    """`values.Insides` of labelled drafts.

    Attributes:
        drafts: Those that fit the model's context, in the order of all that is told.
    """

    def __init__(
        self,
        model: WhiteBoxModel,
        drafts: Sequence[LabelledDraft],
        *,
        directory: Path,
        on_progress: OnProgress = lambda _what, _done, _total: None,
    ) -> None:
        """Encode the drafts; nothing is read yet.

        Args:
            model: The model that wrote them.
            drafts: What is to be read.
            directory: Where what was read is kept.
            on_progress: Told what is done, how much of it, of how much.
        """
        self._model, self._directory, self._tell = model, directory, on_progress
        self._whole = insides.DraftActivations(model, drafts, directory=directory)
        self.drafts = self._whole.drafts
        self._together: tuple[Tap, ...] = ()

    @property
    def language_model(self) -> str:
        return self._model.fingerprint

    @property
    def blocks(self) -> int:
        """How many blocks the model has."""
        return self._model.blocks

    def read_together(self, places: Sequence[Tap]) -> None:
        """Read these places in one pass from now on, and all evidence at once."""
        self._together = tuple(places)
        self._read(self._whole, (), None)

    def of_sequences(
        self, place: Tap, *, pieces: int | None = None
    ) -> Sequence[Activations]:
        """Return for each draft float32 (1 + its tokens + 1, width)."""
        found = self._whole
        if pieces is not None:
            found = insides.DraftActivations(
                self._model, self.drafts, directory=self._directory, pieces=pieces
            )
        self._read(found, [place], pieces)
        return found.of_sequences(place)

    def of_prompts(self, place: Tap) -> Sequence[Activations]:
        """Return for each draft float32 (1, width) of its prompt's last token."""
        self._read(self._whole, [place], None)
        return self._whole.of_prompts(place)

    def own_words(self) -> Mapping[str, Sequence[float]]:
        """Return P(true) and verbalised confidence of each draft.

        Every answer is kept as it is given: a broken-off run goes on from there.
        """
        assessor = SelfAssessor(self._model)
        file = self._directory / self._model.fingerprint / _FILE
        kept = dict(_kept(file))
        found = []
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            for number, draft in enumerate(self.drafts, start=1):
                key = assessor.key(draft.prompt, draft.answer)
                if key not in kept:
                    kept[key] = assessor.assess(draft.prompt, draft.answer)
                    said = {
                        "key": key,
                        P_TRUE: kept[key].p_true,
                        VERBALISED: kept[key].verbalised,
                    }
                    # The line break comes first: one that was broken off ends there.
                    stream.write(f"\n{json.dumps(said)}")
                found.append(kept[key])
                self._tell("Asking the model of its answers", number, len(self.drafts))
        return {
            P_TRUE: [one.p_true for one in found],
            VERBALISED: [one.verbalised for one in found],
        }

    def _read(
        self, what: insides.DraftActivations, taps: Sequence[Tap], pieces: int | None
    ) -> None:
        named = "all evidence" if pieces is None else f"{pieces} of the evidence"
        what.read(
            sorted({*taps, *self._together}),
            on_progress=lambda done, total: self._tell(
                f"Reading answers, {named}", done, total
            ),
        )


def _kept(file: Path) -> Iterator[tuple[str, SelfAssessment]]:
    """Yield what is kept; a line that can't be read is asked again."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            said = json.loads(line)
            yield (
                str(said["key"]),
                SelfAssessment(float(said[P_TRUE]), float(said[VERBALISED])),
            )
        except (KeyError, TypeError, ValueError):
            continue


# The report on finished evaluation runs of the running language model.


__all__ = ["PARTS", "AbstentionReport", "abstention_report", "tables"]
_FITTING: Final = "Fitting probes"


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
        EvaluationDataError: No draft is left, or there are fewer articles than folds.
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
