"""Drift of live signals from a certificate's labelled ones, and its nightly check."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from django.utils import timezone
from scipy.special import chdtrc, kolmogorov

from jobs.run import JobRun
from kb.documents.models import of_base_in_use
from qa.answers.models import Answer
from qa.calibration.models import Certificate, DriftReading
from qa.calibration.thresholds.values import FloatArray
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.metrics.intervals import holm
from qa.pipeline.gates import EARLY, SCORES, Gate
from qa.pipeline.policy import Policy
from qa.pipeline.replay import Signals, ends_early, flat, replay

STEPS = 200


@dataclass(frozen=True, slots=True)
class Distribution:
    """A signal's quantiles at 0, 1 / STEPS, ..., 1 over the answers with a value."""

    measured: int
    missing: int
    quantiles: FloatArray

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"quantiles": self.quantiles.tolist()}

    def at(self, values: FloatArray, *, side: str) -> FloatArray:
        """Return the share of the distribution at or below each value.

        With `side` "left", the share strictly below.
        """
        q = self.quantiles
        after = np.searchsorted(q, values, side=side)  # type: ignore[call-overload]  # one of two words
        inside = np.clip(after, 1, STEPS)
        width = q[inside] - q[inside - 1]
        part = (values - q[inside - 1]) / np.where(width > 0, width, 1.0)
        level = (inside - 1 + np.clip(part, 0.0, 1.0)) / STEPS
        return np.where(after == 0, 0.0, np.where(after > STEPS, 1.0, level))


def distribution_from(stored: Mapping[str, Any]) -> Distribution:
    return Distribution(
        measured=int(stored["measured"]),
        missing=int(stored["missing"]),
        quantiles=np.array(stored["quantiles"], np.float64),
    )


def distributions_of(
    labelled: Sequence[LabelledAnswer], policy: Policy
) -> dict[str, Distribution]:
    """Return each signal's distribution over the answers that reach its gate.

    Live questions are measured under enforced gates, so a labelled one counts at a gate
    only if the gates of `policy` before it would have let it pass.
    """
    found = {}
    for name in SCORES:
        reached = [
            answer.signals
            for answer in labelled
            if reaches(answer.signals, name) and _lets_reach(answer, policy, name)
        ]
        values = values_of(reached, name)
        if len(values):
            found[name] = distribution_of(values, len(reached) - len(values))
    return found


def distribution_of(values: FloatArray, missing: int) -> Distribution:
    """Return quantiles that are themselves measured values, of at least one value."""
    levels = np.linspace(0, 1, STEPS + 1)
    quantiles = np.quantile(values, levels, method="inverted_cdf")
    return Distribution(len(values), missing, quantiles)


def reaches(signals: Signals, name: str) -> bool:
    match SCORES[name].gate:
        case Gate.HARD_REFUSAL:
            return "distance_over_confidence" in signals or "verified_ratio" in signals
        case Gate.ENTRY:
            return name in signals
        case Gate.ABSTENTION if name != EARLY:
            return name in signals and signals.get("readable") is not None
        case Gate.ABSTENTION:
            return name in signals
        case _:
            return signals.get("readable") is not None


def _lets_reach(answer: LabelledAnswer, policy: Policy, name: str) -> bool:
    gate = SCORES[name].gate
    if gate is Gate.HARD_REFUSAL:
        return True
    stops = {
        Gate.HARD_REFUSAL,
        *([Gate.ENTRY] if gate is not Gate.ENTRY else []),
        *([Gate.SOFT_REFUSAL] if gate is Gate.ABSTENTION else []),
    }
    if replay(answer.signals, policy).gate in stops:
        return False
    return name == EARLY or not ends_early(answer.signals, policy)


def values_of(signals: Sequence[Signals], name: str) -> FloatArray:
    found = [each.get(name) for each in signals]
    return np.array([value for value in found if value is not None], np.float64)


MIN_LIVE = 100
MIN_REFERENCE = 50
# The probability of reporting drift in any signal when there is none.
ALPHA = 0.01
# A smaller shift needs no action, however significant it is: the customary PSI
# threshold for a moderate shift, and the same figure for the Kolmogorov-Smirnov
# distance.
MIN_PSI = 0.1
MIN_DISTANCE = 0.1
_BINS = 10
_EMPTY = 0.5


@dataclass(frozen=True, slots=True)
class Drift:
    """One signal's distribution, live against labelled.

    The Kolmogorov-Smirnov distance, in [0, 1], is None where too few answers have a
    value. The population stability index has a bin for "not measured". Both p-values
    are adjusted for all tests made at once.
    """

    reference: int
    live: int
    distance: float | None
    psi: float
    p_distance: float | None
    p_psi: float
    has_drifted: bool


def compare(
    references: Mapping[str, Distribution], live: Sequence[Signals]
) -> dict[str, Drift]:
    """Compare every signal with enough answers on both sides; {} if there is none."""
    measured = {
        name: found
        for name, reference in references.items()
        if name in SCORES and (found := _measure(name, reference, live)) is not None
    }
    tests = [
        (name, which, p)
        for name, found in measured.items()
        for which, p in (("distance", found.p_distance), ("psi", found.p_psi))
        if p is not None
    ]
    adjusted = dict(
        zip(
            [(name, which) for name, which, _ in tests],
            holm([p for *_, p in tests]),
            strict=True,
        )
    )
    return {
        name: _judged(found, adjusted.get((name, "distance")), adjusted[name, "psi"])
        for name, found in measured.items()
    }


def ks_distance(reference: Distribution, values: FloatArray) -> float:
    """Return the largest gap between the distributions, at least 0.

    The resolution of the quantiles, 1 / STEPS, is subtracted.
    """
    live = np.sort(values)
    points = np.union1d(live, reference.quantiles)
    gaps = [
        np.abs(
            np.searchsorted(live, points, side=side) / len(live)
            - reference.at(points, side=side)
        ).max()
        for side in ("left", "right")
    ]
    return max(float(max(gaps)) - 1 / STEPS, 0.0)


def psi(reference: Distribution, values: FloatArray, missing: int) -> tuple[float, int]:
    """Return the population stability index and its number of bins.

    The bins are the deciles of the reference and one for missing values; an empty bin
    counts as half an answer.
    """
    edges = np.unique(reference.quantiles[STEPS // _BINS : -1 : STEPS // _BINS])
    below = np.concatenate(([0.0], reference.at(edges, side="right"), [1.0]))
    expected = np.append(np.diff(below) * reference.measured, reference.missing)
    bins = np.searchsorted(edges, values, side="left")
    actual = np.append(np.bincount(bins, minlength=len(edges) + 1), missing)
    is_used = (expected > 0) | (actual > 0)
    shares = [
        np.maximum(counts[is_used], _EMPTY) / np.maximum(counts[is_used], _EMPTY).sum()
        for counts in (expected, actual)
    ]
    index = ((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum()
    return float(index), int(is_used.sum())


def _measure(
    name: str, reference: Distribution, live: Sequence[Signals]
) -> Drift | None:
    reached = [signals for signals in live if reaches(signals, name)]
    labelled = reference.measured + reference.missing
    if len(reached) < MIN_LIVE or labelled < MIN_REFERENCE:
        return None
    values = values_of(reached, name)
    index, bins = psi(reference, values, len(reached) - len(values))
    scale = 1 / len(reached) + 1 / labelled
    distance = p_distance = None
    if min(len(values), reference.measured) >= MIN_REFERENCE:
        distance = ks_distance(reference, values)
        size = 1 / (1 / len(values) + 1 / reference.measured)
        p_distance = float(kolmogorov(distance * size**0.5))
    return Drift(
        reference=labelled,
        live=len(reached),
        distance=distance,
        psi=index,
        p_distance=p_distance,
        p_psi=float(chdtrc(max(bins - 1, 1), index / scale)),
        has_drifted=False,
    )


def _judged(found: Drift, p_distance: float | None, p_psi: float) -> Drift:
    is_far = (
        found.distance is not None
        and p_distance is not None
        and p_distance <= ALPHA
        and found.distance >= MIN_DISTANCE
    )
    is_shifted = p_psi <= ALPHA and found.psi >= MIN_PSI
    has_drifted = is_far or is_shifted
    return replace(found, p_distance=p_distance, p_psi=p_psi, has_drifted=has_drifted)


logger = logging.getLogger(__name__)

LATEST = 2_000
WITHIN = timedelta(days=30)


def watch_drift(run: JobRun) -> dict[str, object]:
    """Check the certificate of every active policy that has one, one per job step."""
    used = of_base_in_use("policy__knowledge_base")
    active = Certificate.objects.filter(used, policy__is_active=True)
    certificates = list(active.order_by("pk").select_related("policy"))
    readings: dict[str, bool] = run.cursor.get("readings", {})
    for certificate in certificates:
        if str(certificate.pk) in readings:
            continue
        with run.step() as step:
            reading = check_drift(certificate)
            readings = {**readings, str(certificate.pk): reading.has_drifted}
            step.advance(
                done=len(readings),
                total=len(certificates),
                cursor={"readings": readings},
            )
    return {"checked": len(readings), "drifted": sum(readings.values())}


def check_drift(certificate: Certificate, *, latest: int = LATEST) -> DriftReading:
    """Compare the newest live answers with the labelled ones and store the result.

    Only answers decided by the certified version are compared, since which questions
    reach a gate depends on the thresholds before it.
    """
    answers = Answer.objects.decided_live_by(certificate.policy)
    recent = answers.filter(created_at__gte=timezone.now() - WITHIN)
    newest = recent.order_by("-created_at")[:latest]
    rows = list(newest.values_list("created_at", "signals"))
    references = {
        name: distribution_from(stored)
        for name, stored in certificate.signal_quantiles.items()
    }
    found = compare(references, [flat(signals) for _, signals in rows])
    drifted = sorted(name for name, each in found.items() if each.has_drifted)
    if drifted:
        logger.warning(
            "Live signals of %s have drifted from the labelled ones that it was "
            "certified on: %s. Label recent questions and calibrate again.",
            certificate.policy,
            ", ".join(drifted),
        )
    return DriftReading.objects.create(
        certificate=certificate,
        answers=len(rows),
        first_at=rows[-1][0] if rows else None,
        last_at=rows[0][0] if rows else None,
        signals={name: asdict(each) for name, each in found.items()},
        has_drifted=bool(drifted),
    )
