"""What the pipeline asks of whoever keeps the probes: plain values, no torch."""

from collections.abc import Mapping
from typing import Protocol

from .activations import Capture, Confidence
from .types import Generation, Prompt


class Probes(Protocol):
    """The probes in force for one language model; it may have none."""

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
