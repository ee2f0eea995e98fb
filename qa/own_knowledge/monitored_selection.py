"""The writer of monitored answers, by the directions that are in force."""

import threading
from typing import Final

from probes.cards import ProbeKind
from probes.directions import directions_from
from probes.models import Probe
from qa.exceptions import LanguageModelUnavailableError
from qa.own_knowledge.monitored_writer import SteeredWriter
from qa.own_knowledge.selection import own_form

_lock: Final = threading.Lock()
_writers: Final[dict[str, SteeredWriter]] = {}


def monitored_writer() -> SteeredWriter:
    """Return the writer by the directions in force now (one query).

    Raises:
        LanguageModelUnavailableError: The language model is a server's, or no directions
            are in force for it.
        ModelLoadError: The model is not there or cannot be read.
        ProbeFileError: The directions' files are damaged.
    """
    model = own_form().model
    in_force = Probe.objects.active_for(model.fingerprint)
    row = in_force.filter(kind=ProbeKind.DIRECTIONS).first()
    if row is None:
        msg = (
            f"No directions are in force for the language model {model.name} "
            f"({model.fingerprint[:12]}), by which monitored answers are written. Fit "
            "some with manage.py train_directions FILE --promote, or activate a policy "
            "of another retrieval timing."
        )
        raise LanguageModelUnavailableError(msg)
    with _lock:
        writer = _writers.get(row.fingerprint)
        if writer is None:
            directions = directions_from(row.files, language_model=model.fingerprint)
            writer = SteeredWriter(model, directions, fingerprint=row.fingerprint)
            _writers.clear()
            _writers[row.fingerprint] = writer
        return writer
