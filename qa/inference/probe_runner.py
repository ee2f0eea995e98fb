"""Probes that are read for an answer, while it is written and afterwards."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accounts.exceptions import NescioError
from probes.abstention.probe import AbstentionProbe
from probes.cards import ANSWER_KINDS, CONFIDENCE_BY_KIND, ProbeKind
from probes.joint import JointProbe
from probes.language_model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.taps import Activations, Tap
from qa.inference.white_box import PassingForm
from qa.pipeline.language_model import Capture, Confidence, Generation, Prompt, Watch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ActivationReader:
    """An activation probe in use; in shadow, answers store it under `signal`."""

    kind: ProbeKind
    fingerprint: str
    signal: str
    is_active: bool
    probe: AbstentionProbe

    def along(self, activations: Activations) -> list[float]:
        (values,) = self.probe.along([activations])
        found: list[float] = values.tolist()
        return found


@dataclass(frozen=True, slots=True, eq=False)
class JointReader:
    kind: ClassVar = ProbeKind.JOINT
    fingerprint: str
    signal: str
    is_active: bool
    probe: JointProbe


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """The activations that probes read; empty where they could not be read."""

    prompt: Mapping[Tap, Activations]
    answer: Mapping[Tap, Activations]
    end: Mapping[Tap, Activations]
    fault: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ActiveProbes:
    """`qa.pipeline.language_model.Probes`; thread-safe.

    Attributes:
        model: The model for a second pass; None if no probe reads activations.
        form: How a second pass is laid out.
        faults: Why an active probe can't be used, by its kind.
    """

    model: WhiteBoxModel | None
    form: PassingForm
    readers: tuple[ActivationReader, ...]
    joints: tuple[JointReader, ...]
    faults: Mapping[str, str]

    @property
    def fingerprints(self) -> str:
        return " ".join(r.fingerprint for r in self._all if r.is_active)

    def capture(self, *, least_early: float | None) -> Capture:
        return Capture(
            answer=self._places(ProbeKind.ABSTENTION),
            ends=any(reader.probe.closes_with_end for reader in self.readers),
            prompt=self._prompt_places(with_answer=True),
            watch=self._watch(least_early),
        )

    def read(
        self,
        prompt: Prompt,
        generation: Generation,
        signals: Mapping[str, float | None],
    ) -> Confidence:
        held = self._held(prompt, generation)
        found: dict[str, float] = {}
        along: tuple[float, ...] = ()
        for reader in self.readers:
            if (activations := _sequence(reader, held)) is None:
                continue
            values = reader.along(activations)
            if not all(map(math.isfinite, values)):
                logger.error("%s did not give a finite number.", reader.signal)
                continue
            found[reader.fingerprint] = values[-1]
            if reader.is_active and reader.kind is ProbeKind.ABSTENTION:
                # Without the positions before the first token and after the last.
                opening = int(reader.probe.opens_with_prompt)
                along = tuple(values[opening : opening + len(generation.tokens)])
        if not generation.is_stopped:
            for joint in self.joints:
                inputs = {
                    CONFIDENCE_BY_KIND[kind]: found.get(fingerprint)
                    for kind, fingerprint in joint.probe.inputs.items()
                }
                # Signals measured without a probe are kept; of the probes, only those
                # that the joint probe was fitted with count.
                given = {**signals, **inputs}
                found[joint.fingerprint] = joint.probe.confidence(given)
        return self._confidence(found, along, generation, held.fault)

    def _confidence(
        self,
        found: Mapping[str, float],
        along: tuple[float, ...],
        generation: Generation,
        fault: str,
    ) -> Confidence:
        active = {r.kind: r.fingerprint for r in self._all if r.is_active}
        values = {kind: found.get(active.get(kind, "")) for kind in ANSWER_KINDS}
        return Confidence(
            answer=values[ProbeKind.ABSTENTION],
            early=values[ProbeKind.EARLY],
            joint=values[ProbeKind.JOINT],
            along=along if len(along) == len(generation.tokens) else (),
            shadows=tuple(
                (reader.signal, found[reader.fingerprint])
                for reader in self._all
                if not reader.is_active and reader.fingerprint in found
            ),
            probes=" ".join(key for key in active.values() if key in found),
            missing=self._missing(values, active, generation, fault),
        )

    @property
    def _all(self) -> Sequence[ActivationReader | JointReader]:
        return [*self.readers, *self.joints]

    def _missing(
        self,
        values: Mapping[ProbeKind, float | None],
        active: Mapping[ProbeKind, str],
        generation: Generation,
        fault: str,
    ) -> str:
        said = []
        for kind, value in values.items():
            # An answer that never began has no later values to miss.
            is_due = kind is ProbeKind.EARLY or _answer_text(generation)
            if value is not None or not is_due:
                continue
            if kind in self.faults:
                said.append(self.faults[kind])
            elif kind not in active:
                said.append(f"No {kind.value} probe is active.")
            elif fault not in said:
                said.append(fault)
        return " ".join(filter(None, said))

    def _places(self, kind: ProbeKind) -> tuple[Tap, ...]:
        return tuple(sorted({r.probe.tap for r in self.readers if r.kind is kind}))

    def _prompt_places(self, *, with_answer: bool) -> tuple[Tap, ...]:
        """Return the taps for the prompt's last token, also those of answer probes."""
        also = {
            reader.probe.tap
            for reader in self.readers
            if with_answer and reader.probe.opens_with_prompt
        }
        return tuple(sorted({*self._places(ProbeKind.EARLY), *also}))

    def _watch(self, least_early: float | None) -> Watch | None:
        active = [r for r in self.readers if r.kind is ProbeKind.EARLY and r.is_active]
        if least_early is None or not active:
            return None
        (reader,) = active

        def goes_on(place: Tap, activations: Activations) -> bool:
            if place != reader.probe.tap:
                return True
            return not reader.along(activations[np.newaxis])[-1] < least_early

        return goes_on

    def _held(self, prompt: Prompt, generation: Generation) -> _Held:
        """Return the activations kept on the way, completed by a second pass."""
        trace = generation.trace
        answer = dict(trace.answer) if trace else {}
        before = trace.prompt if trace else {}
        end = dict(trace.end) if trace else {}
        early = {place: values[np.newaxis] for place, values in before.items()}
        text = _answer_text(generation)
        places = self._places(ProbeKind.ABSTENTION) if text else ()
        after = [place for place in places if place not in answer]
        first = self._prompt_places(with_answer=bool(text))
        asked = [place for place in first if place not in early]
        if generation.is_stopped or self.model is None or not (after or asked):
            return _Held(early, answer, end)
        try:
            again = self._read_again(self.model, prompt, generation, after, asked)
        except NescioError as error:
            logger.warning("An answer's activations could not be read: %s", error)
            return _Held(early, answer, end, str(error))
        return _Held(
            {**early, **again.prompt}, {**answer, **again.answer}, {**end, **again.end}
        )

    def _read_again(
        self,
        model: WhiteBoxModel,
        prompt: Prompt,
        generation: Generation,
        after: Sequence[Tap],
        before: Sequence[Tap],
    ) -> _Held:
        """Read an answer, and the prompt's last token before it, in one pass."""
        if after:
            passing = self.form.sequence_passing(
                model.tokens, prompt, _answer_text(generation), written=generation.raw
            )
        else:
            passing = Passing.of_last(self.form.prompt_ids(model.tokens, prompt))
        taps = [*dict.fromkeys((*after, *before))]
        (held,) = model.read_activations([passing], taps)
        return _Held(
            prompt={place: held[place][:1] for place in before},
            answer={place: held[place][1:-1] for place in after},
            end={place: held[place][-1:] for place in after},
        )


def _sequence(reader: ActivationReader, held: _Held) -> Activations | None:
    """Return what a probe reads, (positions, width); None if any of it is missing."""
    first = held.prompt.get(reader.probe.tap)
    if reader.kind is ProbeKind.EARLY:
        return first
    probe, parts = reader.probe, [held.answer.get(reader.probe.tap)]
    if probe.opens_with_prompt:
        parts.insert(0, first)
    if probe.closes_with_end and reader.probe.tap in held.end:
        parts.append(held.end[reader.probe.tap])
    found = [part for part in parts if part is not None and len(part)]
    return np.concatenate(found) if len(found) == len(parts) else None


def _answer_text(generation: Generation) -> str:
    return (generation.short_answer or generation.answer).strip()
