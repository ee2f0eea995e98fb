"""What the pipeline asks of whoever keeps the probes: plain values, no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from .activations import NO_CAPTURE, Capture, Confidence
from .generation import Generation, Prompt


class Probes(Protocol):
    """The probes in force for one language model; it may have none."""

    @property
    def fingerprints(self) -> str:
        """Of all that are in force, separated by spaces; "" for none."""
        ...

    def capture(self, *, least_early: float | None) -> Capture:
        """Return what the language model is to keep.

        Args:
            least_early: Early confidence below which the answer ends before it begins;
                None measures it and ends nothing.
        """
        ...

    def read(
        self,
        prompt: Prompt,
        generation: Generation,
        signals: Mapping[str, float | None],
    ) -> Confidence:
        """Return how sure the probes are of an answer.

        Activations that the generation carries none of are read in a second pass.

        Args:
            signals: By name, what the gates before measured.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoProbes:
    """What a language model has that no probe was fitted for.

    Attributes:
        why: Why there is none, as `Confidence.missing` says it.
    """

    why: str = "No probe is in force for this language model."

    @property
    def fingerprints(self) -> str:
        """None are in force."""
        return ""

    def capture(self, *, least_early: float | None) -> Capture:
        """Keep nothing: there is nobody to read it."""
        return NO_CAPTURE

    def read(
        self,
        prompt: Prompt,
        generation: Generation,
        signals: Mapping[str, float | None],
    ) -> Confidence:
        """Say that nothing is known."""
        return Confidence(missing=self.why)
