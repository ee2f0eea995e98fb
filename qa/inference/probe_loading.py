"""Probes loaded from the registry, each tried once."""

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
from qa.pipeline.language_model import LanguageModel, NoProbes, Probes

from .probe_runner import ActivationReader, ActiveProbes, JointReader
from .white_box import form_of, load_white_box

logger = logging.getLogger(__name__)

_TRIED_ON: Final = Passing((0,), 0, 1)


def load_probes(language_model: LanguageModel, states: Mapping[str, str]) -> Probes:
    """Load the probes fitted for this model; `states` are by fingerprint."""
    rows = list(Probe.objects.filter(fingerprint__in=states).order_by("pk"))
    placed = [row for row in rows if row.kind != ProbeKind.JOINT]
    # A server's answers are read by a surrogate model, which is loaded only if needed.
    model = load_white_box(language_model) if placed else None
    form = form_of(language_model)
    faults: dict[str, str] = {}
    readers: list[ActivationReader] = []
    joints: list[JointReader] = []
    for row in sorted(rows, key=lambda row: row.kind == ProbeKind.JOINT):
        is_active = states[row.fingerprint] == Probe.State.ACTIVE
        try:
            if row.kind == ProbeKind.JOINT:
                if row.language_model == language_model.fingerprint:
                    joints.append(_joint_reader(row, readers, is_active=is_active))
            elif model is not None and row.language_model == model.fingerprint:
                probe = load_activation_probe(row, model, form=form.FORM, fit="probe")
                kind = ProbeKind(row.kind)
                readers.append(
                    ActivationReader(
                        kind, row.fingerprint, row.signal, is_active, probe
                    )
                )
        except NescioError as error:
            logger.error("%s is left out: %s", row, error)  # noqa: TRY400  # one line
            if is_active:
                faults[row.kind] = str(error)
    if not readers and not joints and not faults:
        return NoProbes("No probe in use was fitted for this language model.")
    return ActiveProbes(model, form, tuple(readers), tuple(joints), faults)


def load_activation_probe(
    row: Probe, model: WhiteBoxModel, *, form: str, fit: str
) -> AbstentionProbe:
    """Load an activation probe, and check that it fits the model and the form.

    `fit` is what `manage.py train` calls such a probe.
    """
    if row.form != form:
        raise ProbeMismatchError(
            f"{row} was fitted on the form {row.form!r}, but the form here is "
            f"{form!r}. Fit one on this form: manage.py train {fit}."
        )
    probe = load_probe(row.files, language_model=model.fingerprint)
    if not isinstance(probe, AbstentionProbe):
        raise ProbeFileError(f"{row} is not an activation probe; register it again.")
    (held,) = model.read_activations([_TRIED_ON], [probe.tap])
    width = held[probe.tap].shape[1]
    if width != probe.width:
        raise ProbeMismatchError(
            f"{row} reads {probe.width} numbers per token and the model has {width}; "
            "fit it again."
        )
    return probe


def _joint_reader(
    row: Probe, readers: list[ActivationReader], *, is_active: bool
) -> JointReader:
    probe = load_probe(row.files, language_model=row.language_model)
    if not isinstance(probe, JointProbe):
        raise ProbeFileError(
            f"{row} is not a joint probe according to its files; register it again."
        )
    usable = {r.fingerprint for r in readers if r.is_active or not is_active}
    for kind, fingerprint in probe.inputs.items():
        if fingerprint not in usable:
            raise ProbeMismatchError(
                f"{row} was fitted on the confidences of the {kind} probe "
                f"{fingerprint[:8]}, which is not in use. Promote that one, or fit the "
                "joint probe again."
            )
    return JointReader(row.fingerprint, row.signal, is_active, probe)
