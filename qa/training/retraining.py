"""The steps of a retraining: begun, compared, approved or declined, taken back.

Nothing that reviews teach decides about answers by itself: a challenger is asked in shadow
until an administrator has approved it, and the former probe can be activated again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction

from jobs.models import Job
from jobs.services import enqueue
from probes.cards import ANSWER_KINDS, ProbeKind
from probes.models import Probe
from probes.services import promote
from qa.answers.models import Answer
from qa.exceptions import RetrainingNotFoundError, RetrainingStateError
from qa.reviews.models import Review
from qa.training.models import Retraining, RetrainingStep

from .recalibration import Recalibrated, Score, recalibrate, restore

KIND = "qa.retrain"
# What reviews can't say less of, from the start and where an active probe is gone on with.
MIN_REVIEWED = 400
MIN_TO_GO_ON = 50
State = Retraining.State


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two probes on the same golden answers; the fields are columns of `Retraining`.

    The 95 % interval is of challenger minus champion, or minus a coin, over whole
    groups. `scores` has a row for each answer.
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
    done = Review.objects.done().exclude(answer__channel=Answer.Channel.EVALUATION)
    return done.values("answer_id").distinct().count()


def enqueue_due(*, reviewed: int | None = None) -> list[Job]:
    """Begin the retrainings that there are enough new reviews for.

    A kind needs `min_reviewed` reviews, and `RETRAIN_AFTER` (0: never) more than when
    it was last retrained. They are counted unless `reviewed` is given.
    """
    count = reviewed_answers() if reviewed is None else reviewed
    return [
        enqueue_retraining(kind)
        for kind in ANSWER_KINDS
        if reviews_until_due(kind, count) == 0
    ]


def min_reviewed(kind: ProbeKind) -> int:
    """Return how many reviews teach a kind: fewer where an active probe is gone on with."""
    active = Probe.objects.filter(kind=kind, state=Probe.State.ACTIVE)
    can_go_on = kind is not ProbeKind.JOINT and active.exists()
    return MIN_TO_GO_ON if can_go_on else MIN_REVIEWED


def reviews_until_due(kind: ProbeKind, reviewed: int) -> int | None:
    """Return how many more reviews begin a retraining, 0 if it is due.

    None where none would: it is switched off, or one is at work or waits for approval.
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
        KIND,
        {"kind": kind.value},
        owner=by,
        idempotency_key=f"{KIND} {kind.value}",
    )


@transaction.atomic
def begin(kind: ProbeKind, *, job_id: UUID, by: User | None) -> Retraining:
    """Return a new retraining; one that was broken off goes on as it is."""
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
    """Store the result, and let the challenger run in shadow.

    A better one waits for approval meanwhile. One that is in use already, since the
    same labels gave the same probe before, stays as it is.
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
    """Activate a better challenger, and minimum confidences that are set for it.

    A joint probe that reads the former one's confidence is retrained automatically. One
    that was compared with a probe that is no longer active can't be approved.
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
            f"{retraining} was compared with {retraining.champion or 'no probe'} and "
            f"{active or 'no probe'} is active now; train again."
        )
    promote(challenger.pk, Probe.State.ACTIVE, by=by)
    if retraining.champion is not None and retraining.scores:
        made = recalibrate(retraining.champion, challenger, retraining.scores, by=by)
        retraining.recalibrated = [[each.before, each.after] for each in made]
        retraining.save(update_fields=["recalibrated"])
    _move(retraining, State.PROMOTED, by=by)
    _renew_joint(retraining.kind, by)
    return retraining


@transaction.atomic
def decline(retraining_id: int, *, by: User | None, note: str = "") -> Retraining:
    retraining = _locked(retraining_id)
    _require(retraining, (State.WAITING,), "declined")
    _move(retraining, State.DECLINED, by=by, note=note)
    return retraining


@transaction.atomic
def take_back(retraining_id: int, *, by: User | None, note: str = "") -> Retraining:
    retraining = _locked(retraining_id)
    _require(retraining, (State.PROMOTED,), "taken back")
    challenger = _challenger(retraining)
    if challenger.state != Probe.State.ACTIVE:
        raise RetrainingStateError(
            f"{challenger} of {retraining} is {challenger.state} now; steer it on its "
            "own page."
        )
    if retraining.champion is not None:
        promote(retraining.champion.pk, Probe.State.ACTIVE, by=by)
    promote(challenger.pk, Probe.State.SHADOW, by=by)
    restore([Recalibrated(*pair) for pair in retraining.recalibrated], by=by)
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
