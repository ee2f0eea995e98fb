"""The steps of a retraining: begun, compared, approved or declined, taken back.

Nothing learnt from reviews affects answers automatically: a challenger runs in shadow
until an administrator approves it, and the former probe can be activated again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import inf, nextafter
from uuid import UUID

import numpy as np
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from jobs.models import Job
from jobs.services import enqueue
from probes.cards import ANSWER_KINDS, CONFIDENCE_BY_KIND, ProbeKind
from probes.models import Probe
from probes.services import promote
from qa.answers.models import Answer
from qa.exceptions import RetrainingNotFoundError, RetrainingStateError
from qa.pipeline.gates import CONFIDENCES
from qa.policies.models import Policy
from qa.policies.services import activate, make_version
from qa.reviews.models import Review
from qa.training.models import Retraining, RetrainingStep

Recalibrated = tuple[int, int]
"""The ids of a policy's version and of its replacement with a new minimum."""
Score = tuple[float, float, bool, float]
"""For a golden answer: both confidences, whether it is right, and its weight."""


def equally_strict(scores: Sequence[Score], minimum: float) -> float:
    """Return the lowest second minimum that shows no more wrong answers than the first.

    `minimum`, in [0, 1], was chosen for the first confidence. Wrong answers are
    weighted by the strata of the reviews, so a better probe shows more right answers at
    the same number of wrong ones. If even the highest second confidence shows too many,
    the result is just above it, at most 1.
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

    Call it in the transaction that activates the challenger. Policies without a minimum
    for this confidence, or calibrated for other probes, stay as they are.
    """
    field = CONFIDENCES[CONFIDENCE_BY_KIND[challenger.kind]]
    found = []
    rows = Policy.objects.filter(is_active=True, **{f"{field}__gt": 0})
    for policy in rows.select_related("knowledge_base").order_by("pk"):
        set_for = policy.calibrated_probes
        if set_for and champion.fingerprint not in set_for:
            continue
        made = make_version(
            policy,
            by=by,
            is_calibrated=policy.is_calibrated,
            calibrated_probes=set_for.replace(
                champion.fingerprint, challenger.fingerprint
            ),
            **{field: equally_strict(scores, getattr(policy, field))},
        )
        activate(made, by=by)
        found.append((policy.pk, made.pk))
    return found


def restore(recalibrated: Sequence[Recalibrated], *, by: User | None) -> None:
    """Activate the former versions again, unless others were activated since."""
    for old, new in recalibrated:
        is_active = Policy.objects.filter(pk=new, is_active=True).exists()
        before = Policy.objects.filter(pk=old).first()
        if is_active and before is not None:
            activate(before, by=by, rolls_back=True)


KIND = "qa.retrain"
# Fewest reviews that teach anything, from scratch and when an active probe is fitted
# further.
MIN_REVIEWED = 400
MIN_TO_GO_ON = 50
State = Retraining.State


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two probes on the same golden answers; the fields are columns of `Retraining`.

    The 95 % interval is of challenger minus champion, or minus random guessing,
    resampled over whole groups. `scores` has a row for each answer.
    """

    golden: int
    golden_right: int
    champion_auroc: float
    challenger_auroc: float
    low: float | None
    high: float | None
    scores: Sequence[Score] = ()

    @property
    def is_better(self) -> bool:
        return self.low is not None and self.low > 0


def reviewed_answers() -> int:
    """Count reviewed answers, except answers from evaluations requested by hand."""
    evaluated = Answer.objects.filter(
        pk=OuterRef("answer_id"), channel=Answer.Channel.EVALUATION
    )
    is_asked = Q(stratum__isnull=False) | ~Exists(evaluated)
    return Review.objects.done().filter(is_asked).values("answer_id").distinct().count()


def enqueue_due(*, reviewed: int | None = None) -> list[Job]:
    """Enqueue the retrainings for which there are enough new reviews.

    A kind needs `min_reviewed` reviews, and `RETRAIN_AFTER` (0: never) more than at its
    last retraining. They are counted unless `reviewed` is given.
    """
    count = reviewed_answers() if reviewed is None else reviewed
    return [
        enqueue_retraining(kind)
        for kind in ANSWER_KINDS
        if reviews_until_due(kind, count) == 0
    ]


def min_reviewed(kind: ProbeKind) -> int:
    """Return how many reviews a kind needs; fewer to fit an active probe further."""
    active = Probe.objects.filter(kind=kind, state=Probe.State.ACTIVE)
    can_go_on = kind is not ProbeKind.JOINT and active.exists()
    return MIN_TO_GO_ON if can_go_on else MIN_REVIEWED


def reviews_until_due(kind: ProbeKind, reviewed: int) -> int | None:
    """Return how many more reviews trigger a retraining; 0 if it is due.

    None if none would: it is switched off, or one is running or awaiting approval.
    """
    wanted: int = settings.RETRAIN_AFTER
    rows = Retraining.objects.filter(kind=kind.value)
    if not wanted or rows.undecided().exists():
        return None
    last = rows.first()
    least = min_reviewed(kind)
    if last is not None and abs(reviewed - last.reviewed) < wanted:
        least = max(least, last.reviewed + wanted)
    return max(0, least - reviewed)


def enqueue_retraining(kind: ProbeKind, *, by: AbstractBaseUser | None = None) -> Job:
    """Enqueue a training of this kind on reviews, unless one is waiting."""
    return enqueue(
        KIND, {"kind": kind.value}, owner=by, idempotency_key=f"{KIND} {kind.value}"
    )


@transaction.atomic
def begin(kind: ProbeKind, *, job_id: UUID, by: User | None) -> Retraining:
    """Return a new retraining, or the interrupted one, which is resumed."""
    found = Retraining.objects.select_for_update().filter(
        kind=kind.value, state=State.TRAINING
    )
    retraining, reviewed = found.first(), reviewed_answers()
    if retraining is None:
        retraining = Retraining.objects.create(kind=kind.value, reviewed=reviewed)
        _note(retraining, before="", by=by)
    retraining.job_id, retraining.reviewed = job_id, reviewed
    retraining.save(update_fields=["job", "reviewed"])
    return retraining


@transaction.atomic
def fail(retraining: Retraining, reason: str) -> None:
    retraining.reason = reason
    retraining.save(update_fields=["reason"])
    _move(retraining, State.FAILED, by=None, note=reason)


@transaction.atomic
def conclude(
    retraining: Retraining,
    comparison: Comparison,
    *,
    champion: Probe | None,
    challenger: Probe,
    labels: int,
    labels_right: int,
) -> None:
    """Store the result, and run the challenger in shadow.

    A better challenger waits for approval. One that is active already, because the same
    labels gave the same probe before, stays active.
    """
    retraining.champion, retraining.challenger = champion, challenger
    retraining.labels, retraining.labels_right = labels, labels_right
    for name, value in asdict(comparison).items():
        setattr(retraining, name, value)
    retraining.save()
    challenger.refresh_from_db(fields=["state"])
    if challenger.state not in (Probe.State.SHADOW, Probe.State.ACTIVE):
        promote(challenger.pk, Probe.State.SHADOW, by=None)
    better = comparison.is_better and challenger.state != Probe.State.ACTIVE
    _move(retraining, State.WAITING if better else State.SHADOW, by=None)


@transaction.atomic
def approve(retraining_id: int, *, by: User | None) -> Retraining:
    """Activate a better challenger, with minimum confidences recalibrated for it.

    An active joint probe, which may read the former probe's confidence, is retrained
    automatically.

    Raises:
        RetrainingStateError: It is not waiting for approval, or was compared with a
            probe that is no longer active.
    """
    retraining = _locked(retraining_id)
    _require(retraining, (State.WAITING,), "approved")
    challenger = _challenger(retraining)
    active = (
        Probe.objects.active_for(challenger.language_model)
        .light()
        .filter(kind=retraining.kind)
        .first()
    )
    if active != retraining.champion:
        raise RetrainingStateError(
            f"{retraining} was compared with {retraining.champion or 'no probe'}, but "
            f"{active or 'no probe'} is active now; train again."
        )
    promote(challenger.pk, Probe.State.ACTIVE, by=by)
    if retraining.champion is not None and retraining.scores:
        made = recalibrate(retraining.champion, challenger, retraining.scores, by=by)
        retraining.recalibrated = [[*pair] for pair in made]
        retraining.save(update_fields=["recalibrated"])
    _move(retraining, State.PROMOTED, by=by)
    _renew_joint(retraining.kind, by)
    return retraining


@transaction.atomic
def decline(retraining_id: int, *, by: User | None) -> Retraining:
    retraining = _locked(retraining_id)
    _require(retraining, (State.WAITING,), "declined")
    _move(retraining, State.DECLINED, by=by)
    return retraining


@transaction.atomic
def take_back(retraining_id: int, *, by: User | None, note: str = "") -> Retraining:
    retraining = _locked(retraining_id)
    _require(retraining, (State.PROMOTED,), "taken back")
    challenger = _challenger(retraining)
    if challenger.state != Probe.State.ACTIVE:
        raise RetrainingStateError(
            f"{challenger} of {retraining} is {challenger.state} now; change it on its "
            "own page."
        )
    if retraining.champion is not None:
        promote(retraining.champion.pk, Probe.State.ACTIVE, by=by)
    promote(challenger.pk, Probe.State.SHADOW, by=by)
    restore(retraining.recalibrated, by=by)
    _move(retraining, State.REVERTED, by=by, note=note)
    _renew_joint(retraining.kind, by)
    return retraining


def _renew_joint(kind: str, by: User | None) -> None:
    if kind == ProbeKind.JOINT:
        return
    if Probe.objects.filter(kind=ProbeKind.JOINT, state=Probe.State.ACTIVE).exists():
        enqueue_retraining(ProbeKind.JOINT, by=by)


def _locked(retraining_id: int) -> Retraining:
    rows = Retraining.objects.select_for_update(of=("self",))
    found = rows.filter(pk=retraining_id).first()
    if found is None:
        raise RetrainingNotFoundError(f"There is no retraining {retraining_id}.")
    return found


def _require(retraining: Retraining, states: Iterable[str], done: str) -> None:
    if retraining.state not in states:
        raise RetrainingStateError(
            f"{retraining} is {retraining.get_state_display()!r} and can't be {done}."
        )


def _challenger(retraining: Retraining) -> Probe:
    if retraining.challenger is None:
        raise RetrainingStateError(f"The probe of {retraining} was deleted.")
    return retraining.challenger


def _move(
    retraining: Retraining, state: Retraining.State, *, by: User | None, note: str = ""
) -> None:
    before, retraining.state = retraining.state, state
    retraining.save(update_fields=["state"])
    _note(retraining, before=before, by=by, note=note)


def _note(
    retraining: Retraining, *, before: str, by: User | None, note: str = ""
) -> None:
    RetrainingStep.objects.create(
        retraining=retraining,
        before=before,
        after=retraining.state,
        by=by,
        note=note[:300],
    )
