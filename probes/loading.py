"""From a probe's files to the probe, whatever its kind."""

from typing import TYPE_CHECKING

from probes.cards import ProbeFiles, ProbeKind
from probes.joint import JointProbe, joint_from

if TYPE_CHECKING:
    from probes.abstention import AbstentionProbe
    from probes.directions import DirectionSet


def load_probe(
    files: ProbeFiles, *, language_model: str
) -> "AbstentionProbe | DirectionSet | JointProbe":
    """Return the probe, or the directions, for the model of that fingerprint."""
    kind = files.parsed().kind
    if kind is ProbeKind.JOINT:
        return joint_from(files, language_model=language_model)
    # torch takes seconds and 400 MiB, which a joint probe does without.
    if kind is ProbeKind.DIRECTIONS:
        from probes.directions import directions_from  # noqa: PLC0415

        return directions_from(files, language_model=language_model)
    from probes.abstention import probe_from  # noqa: PLC0415

    return probe_from(files, language_model=language_model)
