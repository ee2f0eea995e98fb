"""From rows of the registry to probes that can be asked, each tried once."""

import logging
from collections.abc import Mapping
from typing import Final

from accounts.exceptions import NescioError
from probes.abstention.probe import AbstentionProbe
from probes.cards import ProbeKind
from probes.exceptions import ProbeFileError, ProbeMismatchError
from probes.joint import JointProbe
from probes.language_model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.models import Probe
from probes.services import load_probe
from qa.inference.grounded_form import FORM
from qa.pipeline.language_model import LanguageModel, NoProbes, Probes

from .probe_runner import ActivationReader, ActiveProbes, JointReader
from .white_box import load_white_box

logger = logging.getLogger(__name__)

_TRIED_ON: Final = Passing((0,), 0, 1)


def load_probes(language_model: LanguageModel, states: Mapping[str, str]) -> Probes:
    """Load what was fitted for this model.

    Args:
        language_model: Whose answers are read.
        states: By fingerprint, whether a probe is active or in shadow.
    """
    rows = list(Probe.objects.filter(fingerprint__in=states).order_by("pk"))
    placed = [row for row in rows if row.kind != ProbeKind.JOINT]
    # A server's answers are read by another model, which is loaded if it has to be.
    model = load_white_box(language_model) if placed else None
    faults: dict[str, str] = {}
    readers: list[ActivationReader] = []
    for row in placed:
        if model is None or row.language_model != model.fingerprint:
            continue
        try:
            readers.append(_activation_reader(row, model, states[row.fingerprint]))
        except NescioError as error:
            _leave_out(row, error, states, faults)
    joints: list[JointReader] = []
    for row in rows:
        is_joint = row.kind == ProbeKind.JOINT
        if not is_joint or row.language_model != language_model.fingerprint:
            continue
        try:
            joints.append(_joint_reader(row, readers, states[row.fingerprint]))
        except NescioError as error:
            _leave_out(row, error, states, faults)
    if not readers and not joints and not faults:
        return NoProbes("No probe in use was fitted for this language model.")
    return ActiveProbes(model, tuple(readers), tuple(joints), faults)


def _activation_reader(
    row: Probe, model: WhiteBoxModel, state: str
) -> ActivationReader:
    if row.form != FORM:
        raise ProbeMismatchError(
            f"{row} was fitted on the form {row.form!r} and answers are read in "
            f"{FORM!r}. Fit one on this form: manage.py train probe."
        )
    probe = load_probe(row.files, language_model=model.fingerprint)
    if not isinstance(probe, AbstentionProbe):
        raise ProbeFileError(f"{row} is a joint probe by its files; register it again.")
    (held,) = model.read_activations([_TRIED_ON], [probe.tap])
    width = held[probe.tap].shape[1]
    if width != probe.width:
        raise ProbeMismatchError(
            f"{row} reads {probe.width} numbers a token and the model has {width}; fit "
            "it again."
        )
    return ActivationReader(
        kind=ProbeKind(row.kind),
        fingerprint=row.fingerprint,
        signal=row.signal,
        is_active=state == Probe.State.ACTIVE,
        probe=probe,
        place=probe.tap,
    )


def _joint_reader(
    row: Probe, readers: list[ActivationReader], state: str
) -> JointReader:
    probe = load_probe(row.files, language_model=row.language_model)
    if not isinstance(probe, JointProbe):
        raise ProbeFileError(
            f"{row} is no joint probe by its files; register it again."
        )
    is_active = state == Probe.State.ACTIVE
    usable = {r.fingerprint for r in readers if r.is_active or not is_active}
    for kind, fingerprint in probe.inputs.items():
        if fingerprint not in usable:
            raise ProbeMismatchError(
                f"{row} was fitted on the confidences of the {kind} probe "
                f"{fingerprint[:8]}, which is not in use. Promote that one, or fit the "
                "joint probe again."
            )
    return JointReader(
        fingerprint=row.fingerprint,
        signal=row.signal,
        is_active=is_active,
        probe=probe,
    )


def _leave_out(
    row: Probe,
    error: NescioError,
    states: Mapping[str, str],
    faults: dict[str, str],
) -> None:
    """Go on without a probe; what an active one could have said is reported to be missing."""
    logger.error("%s is left out: %s", row, error)
    if states[row.fingerprint] == Probe.State.ACTIVE:
        faults[row.kind] = str(error)
