"""From a probe's files to the probe, whatever its kind."""

from typing import TYPE_CHECKING

from probes.cards import ProbeFiles, ProbeKind
from probes.joint import JointProbe, joint_from

if TYPE_CHECKING:
    from probes.abstention import AbstentionProbe


def load_probe(
    files: ProbeFiles, *, language_model: str
) -> "AbstentionProbe | JointProbe":
    """Return the probe for the model of that fingerprint.

    Raises:
        ProbeFileError: A file is damaged, or says what cannot be.
        ProbeMismatchError: It was fitted for another language model.
    """
    if files.parsed().kind is ProbeKind.JOINT:
        return joint_from(files, language_model=language_model)
    # torch takes seconds and 400 MiB, which a joint probe does without.
    from probes.abstention import probe_from  # noqa: PLC0415

    return probe_from(files, language_model=language_model)
