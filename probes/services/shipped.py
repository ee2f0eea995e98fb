"""The probes that come along with the product."""

from pathlib import Path
from typing import Final

import probes
from probes.cards import CARD, ProbeFiles
from probes.models import Probe

from .registry import promote, register

DIRECTORY: Final = Path(probes.__file__).parent / "shipped"
NOTE: Final = "Comes with the product."


def unregistered(directory: Path = DIRECTORY) -> list[ProbeFiles]:
    """Return the probes below `directory` that are not registered (one query).

    Raises:
        ProbeFileError: A file is damaged.
    """
    found = [
        ProbeFiles.read(card.parent) for card in sorted(directory.glob(f"*/{CARD}"))
    ]
    names = [files.fingerprint for files in found]
    rows = Probe.objects.filter(fingerprint__in=names)
    known = set(rows.values_list("fingerprint", flat=True))
    return [files for files in found if files.fingerprint not in known]


def register_shipped(directory: Path = DIRECTORY) -> list[Probe]:
    """Register the probes below `directory` that are not, and return them.

    Each is put in force for its own language model, and serves no other, unless one of
    its kind is in force there. What was done with it afterwards stands: it is looked at
    once.

    Raises:
        ProbeFileError: A file is damaged.
    """
    made = []
    for files in unregistered(directory):
        probe = register(files, note=NOTE)
        in_force = Probe.objects.active_for(probe.language_model)
        if not in_force.filter(kind=probe.kind).exists():
            probe = promote(probe.pk, Probe.State.ACTIVE, by=None)
        made.append(probe)
    return made
