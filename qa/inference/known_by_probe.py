"""Retrieval if a probe says that the question is beyond what the model knows.

The probe reads the middle block's state at the prompt's last token; if the model knows
the answer, it continues writing from that pass. CBDR, sections 3.1 and 3.4; Ni et al.
(2025).
"""

import logging
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from accounts.exceptions import NescioError
from accounts.ids import digest
from accounts.loaded_once import LoadedOnce
from probes.abstention.probe import AbstentionProbe
from probes.cards import ProbeKind
from probes.language_model import Context
from probes.models import Probe
from probes.taps import Activations
from qa.inference.closed_book_form import FORM, ClosedBookForm, write_draft
from qa.inference.probe_loading import load_activation_probe
from qa.pipeline.language_model import Generation
from qa.pipeline.values import Question

logger = logging.getLogger(__name__)

SIGNAL: Final = "boundary_confidence"


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryProbe:
    fingerprint: str
    probe: AbstentionProbe

    def confidence(self, state: Activations) -> float | None:
        """Return the confidence in [0, 1] for a state (width,); None if not finite."""
        value = float(self.probe.confidences([state[np.newaxis]])[0])
        return value if math.isfinite(value) else None


_loaded: Final = LoadedOnce[str, BoundaryProbe | None]()


@dataclass(frozen=True, slots=True, eq=False)
class EstimateByProbe:
    """`KnowledgeEstimate` of a question read once, from which writing can continue."""

    form: ClosedBookForm
    context: Context
    known_probability: float | None
    examples: tuple[str, ...] = ()

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        return ((SIGNAL, self.known_probability),)

    def answer(self) -> Generation:
        return write_draft(self.form, self.context)


class SelfKnowledgeByProbe:
    """`qa.pipeline.self_knowledge.SelfKnowledge` by the active boundary probe."""

    def __init__(
        self, form: ClosedBookForm, probe: BoundaryProbe | None = None
    ) -> None:
        """Keep the form; without a probe, look up the active one."""
        self._form = form
        self._probe = probe or active_boundary_probe(form)

    @property
    def fingerprint(self) -> str:
        """64 hex digits that identify form and probe, for which `min_known` is set."""
        own = self._probe.fingerprint if self._probe else ""
        return digest(self._form.fingerprint, own)

    def consider(self, question: Question) -> EstimateByProbe:
        held = self._probe
        taps = [held.probe.tap] if held else []
        ids = self._form.prompt_ids(question.text)
        with self._form.model.turn():
            look = self._form.model.look(ids, self._form.prefix(), taps=taps)
        if look.context is None:
            # Only a watch stops a reading, and none was given.
            raise RuntimeError("the reading of a question was stopped")
        known_probability = (
            held.confidence(look.states[held.probe.tap]) if held else None
        )
        return EstimateByProbe(self._form, look.context, known_probability)


def active_boundary_probe(form: ClosedBookForm) -> BoundaryProbe | None:
    """Return the active boundary probe for the form's model (one query).

    A probe that can't be used is logged, and None is returned until it is tried again
    after a minute.
    """
    active = Probe.objects.active_for(form.model.fingerprint)
    row = active.filter(kind=ProbeKind.BOUNDARY).light().first()
    if row is None:
        return None

    def unusable(error: NescioError) -> None:
        logger.error(
            "%s cannot be used; every question retrieves evidence.", row, exc_info=error
        )

    def load() -> BoundaryProbe:
        probe = load_activation_probe(row, form.model, form=FORM, fit="boundary_probe")
        return BoundaryProbe(row.fingerprint, probe)

    return _loaded.get(
        form.model.fingerprint, load, version=row.fingerprint, fallback=unusable
    )
