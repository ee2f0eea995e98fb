"""A promoted probe's minimum confidences: at least as strict as the former probe's.

A minimum confidence belongs to the probe that it was chosen for. On the golden answers,
which neither probe was fitted on, the new probe gets the least one at which no more wrong
answers are shown than by the former probe at its own, weighted by the strata of the
reviews. So a better probe shows more right answers at equal false ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nextafter

import numpy as np
from django.contrib.auth.models import User

from probes.cards import CONFIDENCE_BY_KIND
from probes.models import Probe
from qa.pipeline.gates import CONFIDENCES
from qa.policies.models import Policy
from qa.policies.services import activate, new_version

Score = tuple[float, float, bool, float]
"""Of a golden answer: both confidences, whether it is right, how many it stands for."""


@dataclass(frozen=True, slots=True)
class Recalibrated:
    """That a version of a policy replaced another for its new minimum confidence."""

    before: int
    after: int


def equally_strict(scores: Sequence[Score], minimum: float) -> float:
    """Return the second confidence's minimum that shows no more wrong answers.

    Args:
        minimum: Of the first confidence, in [0, 1].

    Returns:
        The least confidence of a golden answer that may be shown; above that of the most
        confident wrong answer where none may be, at most 1.
    """
    first, second, right, weight = (
        np.array([row[column] for row in scores], np.float64) for column in range(4)
    )
    wrong = weight * (1 - right)
    allowed = float(wrong[first >= minimum].sum())
    candidates = np.unique(second)
    shown = (second >= candidates[:, None]) @ wrong
    kept = candidates[shown <= allowed + 1e-9]
    return float(kept[0]) if len(kept) else min(1.0, nextafter(candidates[-1], inf))


def recalibrate(
    champion: Probe, challenger: Probe, scores: Sequence[Score], *, by: User | None
) -> list[Recalibrated]:
    """Activate versions of the active policies with minimums for the challenger.

    To be called in the transaction that activates it. Policies that hold no confidence
    against a minimum, or that are for other probes, stay as they are.
    """
    field = CONFIDENCES[CONFIDENCE_BY_KIND[challenger.kind]]
    found = []
    rows = Policy.objects.filter(is_active=True, **{f"{field}__gt": 0})
    for policy in rows.select_related("knowledge_base").order_by("pk"):
        set_for = policy.calibrated_probes
        if set_for and champion.fingerprint not in set_for:
            continue
        made = new_version(
            policy,
            by=by,
            is_calibrated=policy.is_calibrated,
            calibrated_probes=set_for.replace(
                champion.fingerprint, challenger.fingerprint
            ),
            **{field: equally_strict(scores, getattr(policy, field))},
        )
        activate(made, by=by)
        found.append(Recalibrated(policy.pk, made.pk))
    return found


def restore(recalibrated: Sequence[Recalibrated], *, by: User | None) -> None:
    """Activate the versions from before again, unless others were activated since."""
    for each in recalibrated:
        is_active = Policy.objects.filter(pk=each.after, is_active=True).exists()
        before = Policy.objects.filter(pk=each.before).first()
        if is_active and before is not None:
            activate(before, by=by, rolls_back=True)
