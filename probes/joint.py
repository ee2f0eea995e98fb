"""The joint probe: one confidence from all signals of an answer together.

Logistic regression, which its fit calibrates. A signal that was not measured counts as
its mean; if that happened often enough, being missing has a weight of its own.

References:
    Platt, "Probabilistic outputs for support vector machines" (1999). Hastie,
    Tibshirani and Friedman, "The elements of statistical learning" (2009), sections 4.4
    and 9.6.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter
from scipy.special import expit

from probes import cards
from probes.fitting import fit_logistic, require_labels

Signals = Mapping[str, float | None]
Numbers = NDArray[np.float64]

# Minimum numbers of (answers, right ones as well as wrong ones).
_MIN_TO_FIT: Final = (100, 20)
# Share of missing values from which being missing has a weight of its own.
_MIN_MISSING_SHARE: Final = 0.005
# Probabilities are clipped to this distance from 0 and 1.
_MIN_PROBABILITY: Final = 1e-6
# Signals are clipped to this many deviations from their mean.
_MAX_DEVIATIONS: Final = 8.0


@dataclass(frozen=True, slots=True)
class JointSettings:
    """How a joint probe is fitted; the fit is convex, so that no seed is needed.

    Attributes:
        log_odds: Signals that are probabilities and are read as log-odds.
        strength: Penalty on the squared weights, in answers: a weight of 1 per
            deviation costs as much as half of `strength` answers' log-likelihood units.
    """

    signals: tuple[str, ...]
    log_odds: frozenset[str] = frozenset()
    strength: float = 1.0


_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Term:
    """What one signal adds to the log-odds that an answer is right.

    Attributes:
        mean: Mean of the measured values, as log-odds if `is_log_odds`.
        weight: Log-odds per deviation above the mean.
        missing: Log-odds if the signal was not measured.
    """

    is_log_odds: Annotated[bool, Field(strict=True)]
    mean: _Number
    deviation: Annotated[_Number, Field(gt=0)]
    weight: _Number
    missing: _Number

    def log_odds(self, value: float | None) -> float:
        read = _read(value, is_log_odds=self.is_log_odds)
        if math.isnan(read):
            return self.missing
        return self.weight * float(_standardised(read, self.mean, self.deviation))


@dataclass(frozen=True, slots=True)
class JointProbe:
    """Confidence in [0, 1] that an answer is right, from its signals.

    Attributes:
        intercept: Log-odds if every signal is at its mean.
        inputs: Fingerprints of the probes whose confidences are among the signals, by
            kind.
    """

    language_model: str
    intercept: float
    terms: Mapping[str, Term]
    inputs: Mapping[str, str]

    def confidence(self, signals: Signals) -> float:
        total = self.intercept + sum(
            term.log_odds(signals.get(name)) for name, term in self.terms.items()
        )
        return float(expit(total))


def fit_joint(
    rows: Sequence[Signals],
    is_right: Sequence[bool],
    *,
    language_model: str,
    settings: JointSettings,
    inputs: Mapping[str, str] | None = None,
) -> JointProbe:
    """Fit on labelled answers; drop signals that are never measured or never differ."""
    require_labels(is_right, "to fit on", *_MIN_TO_FIT)
    measured = {
        name: np.array(
            [
                _read(row.get(name), is_log_odds=name in settings.log_odds)
                for row in rows
            ]
        )
        for name in settings.signals
    }
    scales = {
        name: scale
        for name, values in measured.items()
        if (scale := _mean_and_deviation(values)) is not None
    }
    columns: dict[tuple[str, bool], Numbers] = {}
    for name, (mean, deviation) in scales.items():
        values = measured[name]
        is_missing = np.isnan(values)
        scaled = _standardised(values, mean, deviation)
        columns[name, False] = np.where(is_missing, 0.0, scaled)
        if _MIN_MISSING_SHARE <= is_missing.mean() <= 1 - _MIN_MISSING_SHARE:
            columns[name, True] = is_missing.astype(np.float64)
    table = np.column_stack([*columns.values()] or [np.zeros((len(rows), 0))])
    labels = np.array(is_right, dtype=np.float64)
    intercept, weights = fit_logistic(table, labels, settings.strength)
    found = dict(zip(columns, weights.tolist(), strict=True))
    terms = {
        name: Term(
            name in settings.log_odds,
            mean,
            deviation,
            found[name, False],
            found.get((name, True), 0.0),
        )
        for name, (mean, deviation) in scales.items()
    }
    return JointProbe(language_model, intercept, terms, dict(inputs or {}))


def _mean_and_deviation(values: Numbers) -> tuple[float, float] | None:
    held = values[~np.isnan(values)]
    if not len(held) or np.ptp(held) < 1e-9:
        return None
    return float(held.mean()), float(held.std())


def _standardised(
    values: Numbers | float, mean: float, deviation: float
) -> Numbers | float:
    scaled: Numbers = np.clip(
        (np.asarray(values) - mean) / deviation, -_MAX_DEVIATIONS, _MAX_DEVIATIONS
    )
    return scaled


def _read(value: float | None, *, is_log_odds: bool) -> float:
    """Return a signal ready to be standardised; NaN if it was not measured."""
    if value is None or math.isnan(value):
        return math.nan
    if not is_log_odds:
        return max(-1e9, min(1e9, value))
    share = min(max(value, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    return math.log(share / (1 - share))


@dataclass(frozen=True, slots=True)
class _Weights:
    intercept: _Number
    terms: Mapping[str, Term]


_WEIGHTS: Final = TypeAdapter(_Weights)


def joint_files(
    probe: JointProbe, settings: JointSettings, card: cards.ProbeCard
) -> cards.ProbeFiles:
    said = asdict(_Weights(probe.intercept, probe.terms))
    weights = cards.json_bytes(said)
    chosen: dict[str, cards.Json] = {
        "signals": [*settings.signals],
        "log_odds": [*sorted(settings.log_odds)],
        "strength": settings.strength,
    }
    filled = replace(
        card,
        kind=cards.ProbeKind.JOINT,
        language_model=probe.language_model,
        layer=None,
        part="",
        temperature=1.0,
        inputs=probe.inputs,
        settings=chosen,
    )
    return cards.ProbeFiles("joint probe", cards.card_bytes(filled, weights), weights)


def joint_from(files: cards.ProbeFiles, *, language_model: str) -> JointProbe:
    card = files.checked(language_model=language_model)
    if card.kind is not cards.ProbeKind.JOINT:
        raise files.damaged(f"a {card.kind.value} probe reads no signals")
    said = files.read_weights(_WEIGHTS)
    return JointProbe(card.language_model, said.intercept, said.terms, card.inputs)
