"""The abstention study's figures as a JSON object, with bootstrap 95 % intervals."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np

from probes.abstention.fitting import FitSettings
from probes.abstention.probe import Kind
from probes.joint import JointSettings
from probes.taps import Activations, Tap
from qa.inference.white_box import default_tap, middle_tap
from qa.training.cross_fitting import (
    JOINT_SETTINGS,
    Fit,
    Flags,
    Scores,
    SequenceFit,
    cross_fit,
    joint_scores,
    out_of_fold,
)

from . import scores as names
from .measures import areas, auroc, compared, masking, risk_differences, risks
from .scores import LEARNING, OWN_WORDS, VARIANTS, Examined, Insides
from .variants import learning, sizes_of, variant_part, variants_of

_MIN_LSTM_GAIN: Final = 0.08


def goals(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each goal with the value reached, None if undefined."""
    differences = report["differences"]
    lstm = differences.get(f"{names.LSTM} against {names.LOG_PROBABILITY}")
    added = differences.get(f"{names.LSTM} against {names.LINEAR}")
    joint = next(
        part for name, part in differences.items() if name.startswith(names.JOINT)
    )
    gaps = [part["difference"] for part in report["against_distance"]]
    return [
        _goal(
            "AUROC of the LSTM and the linear head together above log-probability",
            lstm["auroc"]["difference"] if lstm else None,
            least=_MIN_LSTM_GAIN,
        ),
        _goal(
            "AUROC of the joint score above the best single one",
            joint["auroc"]["difference"],
            least=0.0,
        ),
        _goal(
            "least risk reduction by all gates over distance alone, coverage 20-80 %",
            -max(gaps) if gaps else None,
            least=0.0,
        ),
        _goal(
            "AUROC that the LSTM adds to its linear head",
            added["auroc"]["difference"] if added else None,
            least=0.0,
        ),
    ]


def _goal(what: str, value: float | None, *, least: float) -> dict[str, Any]:
    # A goal of at least 0 asks for a gain, which 0 is not.
    is_met = None if value is None else value > 0 and value >= least
    return {"what": what, "value": value, "least": least, "is_met": is_met}


# As in the paper, fitted to the answer's tokens and its end token, without the prompt's
# last token.
_ALONE: Final = (names.LINEAR_ALONE, names.LSTM_ALONE_PLAIN, names.LSTM_ALONE)
# Fits that are not inputs of the joint score.
_OTHERS: Final = (*_ALONE, names.LINEAR, names.LSTM_PLAIN)
_LEARNERS: Final = 3


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the study.

    Attributes:
        settings: Fit settings of the LSTM; the other probes take what applies to them.
        joint: Which signals are joined, and how.
        seed: Of folds, fits and draws of answers.
        without: The `PARTS` to leave out.
    """

    settings: FitSettings = field(default_factory=FitSettings)
    joint: JointSettings = field(default_factory=lambda: JOINT_SETTINGS)
    seed: int = 0
    without: Collection[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """The figures and the scores behind them.

    Attributes:
        figures: A JSON object.
        scores: By name, one value per examined answer; higher means more trusted.
    """

    figures: dict[str, Any]
    scores: Mapping[str, Scores]


@dataclass(frozen=True, slots=True, eq=False)
class _Fits:
    """Creates fits to a model's activations."""

    examined: Examined
    insides: Insides
    options: Options
    on_fit: Callable[[], None]

    def of(
        self,
        activations: Sequence[Activations],
        place: Tap,
        name: str = names.LSTM,
        target: Flags | None = None,
    ) -> Fit:
        """Return the fit of that name; each but the early one cuts whole sequences."""
        settings = settings_of(name, self.options)
        if name != names.EARLY:
            activations = [settings.cut_to_read(row) for row in activations]
        return SequenceFit(
            activations=activations,
            target=self.examined.right if target is None else target,
            clusters=self.examined.clusters,
            language_model=self.insides.language_model,
            place=place,
            settings=settings,
            on_fit=self.on_fit,
        )


def settings_of(name: str, options: Options) -> FitSettings:
    """Return the fit settings of the probe of that name."""
    changes: dict[str, Any] = {"seed": options.seed}
    if name in (names.LSTM_PLAIN, names.LSTM_ALONE_PLAIN):
        changes["huber_weight"] = 0.0
    if name in (names.LINEAR, names.LINEAR_ALONE, names.EARLY):
        changes |= {"kind": Kind.LINEAR, "huber_weight": 0.0}
    if name in (*_ALONE, names.EARLY):
        changes |= {"opens_with_prompt": False, "closes_with_end": name in _ALONE}
    return replace(options.settings, **changes)


def places_of(insides: Insides, options: Options) -> list[Tap]:
    """Return the places at which all evidence is read, for reading them in one pass."""
    if VARIANTS in options.without:
        return [middle_tap(insides.blocks), default_tap(insides.blocks)]
    return sorted({variant.place for variant in variants_of(insides.blocks)})


def fits_planned(examined: Examined, insides: Insides, options: Options) -> int:
    """Return how many probes `build_report` fits."""
    folds = len(np.unique(examined.folds))
    both = folds + folds * (folds - 1) // 2
    planned = 2 * both + len(_OTHERS) * folds  # LSTM and early, cross-fitted
    planned += folds * (1 + int(examined.answerable is not None))  # those of `_early`
    if VARIANTS not in options.without:
        planned += folds * (len(variants_of(insides.blocks)) - 1)
    if LEARNING not in options.without:
        planned += folds * _LEARNERS * len(sizes_of(examined))
    return planned


def build_report(
    examined: Examined,
    insides: Insides,
    options: Options,
    *,
    on_fit: Callable[[], None] = lambda: None,
) -> Built:
    """Fit every probe out of fold and compute the figures of all scores."""
    fits = _Fits(examined, insides, options, on_fit)
    place = default_tap(insides.blocks)
    # A refusal before the answer should be cheap, so fewer blocks are read for it.
    early_place = middle_tap(insides.blocks)
    written, asked = insides.of_sequences(place), insides.of_prompts(early_place)
    lstm = cross_fit(fits.of(written, place), examined.folds)
    early = cross_fit(fits.of(asked, early_place, names.EARLY), examined.folds)
    joint = joint_scores(
        [row.signals for row in examined.answers],
        examined.right,
        examined.folds,
        {"answer_confidence": lstm, "early_confidence": early},
        options.joint,
        language_model=insides.language_model,
    )
    scores = names.measured(examined)
    scores |= {names.LSTM: lstm.own, names.EARLY: early.own, names.JOINT: joint}
    for name in _OTHERS:
        scores[name] = out_of_fold(fits.of(written, place, name), examined.folds)
    if OWN_WORDS not in options.without:
        scores |= {n: np.array(v) for n, v in insides.own_words().items()}
    scores = {name: scores[name] for name in names.ordered(scores)}
    report = _report(examined, scores, options) | {
        "language_model": insides.language_model,
        "blocks": insides.blocks,
        "place": asdict(place),
        "early": _early(fits, asked, early_place, scores[names.EARLY]),
    }
    if VARIANTS not in options.without:
        report["variants"] = _variants(fits, scores[names.LSTM])
    if LEARNING not in options.without:
        learners = {
            names.LSTM: fits.of(written, place, names.LSTM),
            names.LINEAR: fits.of(written, place, names.LINEAR),
            names.EARLY: fits.of(asked, early_place, names.EARLY),
        }
        report["learning"] = learning(
            examined, learners, sizes_of(examined), options.seed
        )
    return Built(report | {"goals": goals(report)}, scores)


def _report(
    examined: Examined, scores: Mapping[str, Scores], options: Options
) -> dict[str, Any]:
    fitted = [name for name in names.PROBABILITIES if name in scores]
    found = areas(examined, scores, probabilities=fitted)
    pairs = _pairs(scores, found["scores"])
    return {
        "answers": len(examined.answers),
        "articles": len(np.unique(examined.clusters)),
        "folds": len(np.unique(examined.folds)),
        "seed": options.seed,
        "settings": asdict(settings_of(names.LSTM, options)),
        "right": float(examined.right.mean()),
        "areas": found,
        "differences": compared(
            examined, {key: (scores[a], scores[b]) for key, (a, b) in pairs.items()}
        ),
        "thresholds": {
            name: masking(examined, scores[name]) for name in (names.LSTM, names.JOINT)
        },
        "coverage": risks(examined, scores),
        "against_distance": risk_differences(
            examined, scores[names.DISTANCE], scores[names.JOINT]
        )
        if names.DISTANCE in scores
        else [],
    }


def _pairs(
    scores: Mapping[str, Scores], found: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[str, str]]:
    """Return the pairs of scores to compare: the baseline first."""
    singles = {
        name: part["auroc"]
        for name, part in found.items()
        if name != names.JOINT and part["auroc"] is not None
    }
    wanted = [
        (names.LOG_PROBABILITY, names.LSTM),
        (names.LOG_PROBABILITY, names.LSTM_ALONE),
        (names.LSTM_ALONE_PLAIN, names.LSTM_ALONE),
        (names.LSTM_PLAIN, names.LSTM),
        (names.LINEAR, names.LSTM),
        (max(singles, key=lambda name: singles[name]), names.JOINT),
    ]
    return {
        f"{second} against {first}": (first, second)
        for first, second in wanted
        if first in scores
    }


def _early(
    fits: _Fits, asked: Sequence[Activations], place: Tap, score: Scores
) -> dict[str, Any]:
    """Return how well the prompt alone predicts right answers and answerability."""
    examined = fits.examined
    deeper = default_tap(fits.insides.blocks)
    fit = fits.of(fits.insides.of_prompts(deeper), deeper, names.EARLY)
    part = {
        "right": auroc(examined, score),
        "right_at_two_thirds": auroc(examined, out_of_fold(fit, examined.folds)),
    }
    if examined.answerable is not None:
        known = replace(examined, right=examined.answerable)
        fit = fits.of(asked, place, names.EARLY, examined.answerable)
        part |= {
            "answerable": auroc(known, out_of_fold(fit, examined.folds)),
            "answerable_by_right": auroc(known, score),
        }
    return part


def _variants(fits: _Fits, own: Scores) -> list[dict[str, Any]]:
    """Return the LSTM's figures in each variant; the other tables show the first."""
    first, *others = variants_of(fits.insides.blocks)
    parts = [variant_part(fits.examined, first, own)]
    for variant in others:
        read = fits.insides.of_sequences(variant.place, pieces=variant.pieces)
        scores = out_of_fold(fits.of(read, variant.place), fits.examined.folds)
        parts.append(variant_part(fits.examined, variant, scores))
    return parts
