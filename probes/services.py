"""The registry of probes: register, try in shadow, activate, retire."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import IntegrityError, transaction

import probes
from accounts.prepared import lock_until_commit
from probes.cards import ANSWER_KINDS, CARD, ProbeFiles, ProbeKind
from probes.exceptions import ProbeNotFoundError, ProbeStateError
from probes.joint import JointProbe, joint_from
from probes.models import Probe, ProbeChange

if TYPE_CHECKING:
    from probes.abstention.probe import AbstentionProbe
    from probes.directions.sets import DirectionSet
    from probes.reranker.blend import Blend

State = Probe.State
# Columns that come from a probe's card.
_OF_CARD: Final = (
    "kind", "language_model", "language_model_name", "form", "layer", "part",
    "data_sha256", "sizes", "metrics", "temperature",
)  # fmt: skip


def load_probe(
    files: ProbeFiles, *, language_model: str
) -> "AbstentionProbe | Blend | DirectionSet | JointProbe":
    kind = files.parsed().kind
    if kind is ProbeKind.JOINT:
        return joint_from(files, language_model=language_model)
    if kind is ProbeKind.RERANKER:
        from probes.reranker.blend import blend_from  # noqa: PLC0415

        return blend_from(files, language_model=language_model)
    # torch takes seconds and 400 MiB, which a joint probe does not need.
    if kind is ProbeKind.DIRECTIONS:
        from probes.directions.sets import directions_from  # noqa: PLC0415

        return directions_from(files, language_model=language_model)
    from probes.abstention.files import probe_from  # noqa: PLC0415

    return probe_from(files, language_model=language_model)


def register(
    files: ProbeFiles, *, by: AbstractBaseUser | None = None, note: str = ""
) -> Probe:
    """Store a probe as a candidate; return it unchanged if it is stored already.

    It is loaded once, so that an unusable probe is refused here and not by a question.
    """
    card = files.checked()
    load_probe(files, language_model=card.language_model)
    found = Probe.objects.light().filter(fingerprint=files.fingerprint).first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            probe = Probe.objects.create(
                **{name: getattr(card, name) for name in _OF_CARD},
                fingerprint=files.fingerprint,
                card=files.card.decode(),
                weights=files.weights,
                note=note[:300],
                created_by=_user(by),
            )
            _note(probe, before="", by=by)
    except IntegrityError:
        # Another process was faster.
        return Probe.objects.light().get(fingerprint=files.fingerprint)
    return probe


def promote(probe_id: int, state: str, *, by: AbstractBaseUser | None) -> Probe:
    """Put a probe into shadow, or activate it in place of the active one.

    To undo an activation, activate the former probe again.
    """
    if state not in (State.SHADOW, State.ACTIVE):
        raise ProbeStateError(f"A probe is promoted to shadow or active, not {state}.")
    with transaction.atomic():
        probe = _locked(probe_id)
        if probe.state == state:
            raise ProbeStateError(f"{probe} is {probe.state} already.")
        if state == State.SHADOW and probe.kind not in ANSWER_KINDS:
            raise ProbeStateError(
                f"{probe} is not asked of answers, so it can't run in shadow: "
                "activate it, or leave it."
            )
        load_probe(probe.files, language_model=probe.language_model)
        if state == State.ACTIVE:
            _require_recall(probe)
        replaced = None
        if state == State.ACTIVE:
            active = Probe.objects.active_for(probe.language_model)
            replaced = active.light().filter(kind=probe.kind).first()
        if replaced is not None:
            _move(replaced, State.RETIRED, by=by)
        _move(probe, State(state), by=by, replaced=replaced)
    return probe


def retire(probe_id: int, *, by: AbstractBaseUser | None) -> Probe:
    """Stop using a probe; it is kept and can be promoted again."""
    with transaction.atomic():
        probe = _locked(probe_id)
        if probe.state == State.RETIRED:
            raise ProbeStateError(f"{probe} is retired already.")
        _move(probe, State.RETIRED, by=by)
    return probe


def roll_back(probe_id: int, *, by: AbstractBaseUser | None) -> Probe:
    """Activate again the probe that this one replaced; without one, retire it."""
    with transaction.atomic():
        probe = _locked(probe_id)
        if probe.state != State.ACTIVE:
            raise ProbeStateError(
                f"{probe} is {probe.state}: only an active one can be rolled back."
            )
        last = probe.changes.filter(after=State.ACTIVE).first()
        if last is None or last.replaced_id is None:
            return retire(probe_id, by=by)
        return promote(last.replaced_id, State.ACTIVE, by=by)


def _require_recall(probe: Probe) -> None:
    """Refuse a reranker that lowers the recall among the first notes."""
    if probe.kind != ProbeKind.RERANKER:
        return
    before, after = (
        probe.metrics.get(f"recall_{name}") for name in ("before", "after")
    )
    if isinstance(before, float) and isinstance(after, float) and after >= before:
        return
    raise ProbeStateError(
        f"{probe} can't be activated: recall among the first notes is {after} with it "
        f"and {before} without. Train one on more preferences, or do without one."
    )


def _locked(probe_id: int) -> Probe:
    """Return the probe, with the registry locked until the transaction ends."""
    lock_until_commit("probes")
    probe = Probe.objects.filter(pk=probe_id).first()
    if probe is None:
        raise ProbeNotFoundError(f"There is no probe {probe_id}.")
    return probe


def _move(
    probe: Probe,
    state: Probe.State,
    *,
    by: AbstractBaseUser | None,
    replaced: Probe | None = None,
) -> None:
    before, probe.state = probe.state, state
    probe.save(update_fields=["state"])
    _note(probe, before=before, by=by, replaced=replaced)


def _note(
    probe: Probe,
    *,
    before: str,
    by: AbstractBaseUser | None,
    replaced: Probe | None = None,
) -> None:
    ProbeChange.objects.create(
        probe=probe, before=before, after=probe.state, replaced=replaced, by=_user(by)
    )


def _user(by: AbstractBaseUser | None) -> User | None:
    return by if isinstance(by, User) else None


DIRECTORY: Final = Path(probes.__file__).parent / "shipped"
NOTE: Final = "Comes with the product."


def unregistered(directory: Path = DIRECTORY) -> list[ProbeFiles]:
    found = [
        ProbeFiles.read(card.parent) for card in sorted(directory.glob(f"*/{CARD}"))
    ]
    names = [files.fingerprint for files in found]
    rows = Probe.objects.filter(fingerprint__in=names)
    known = set(rows.values_list("fingerprint", flat=True))
    return [files for files in found if files.fingerprint not in known]


def register_shipped(directory: Path = DIRECTORY) -> list[Probe]:
    """Register the probes below `directory` that are missing, and return them.

    Each is activated for its own language model, unless one of its kind is active
    there. Later changes to it stay.
    """
    made = []
    for files in unregistered(directory):
        probe = register(files, note=NOTE)
        active = Probe.objects.active_for(probe.language_model)
        if not active.filter(kind=probe.kind).exists():
            probe = promote(probe.pk, Probe.State.ACTIVE, by=None)
        made.append(probe)
    return made
