"""What is kept of a language model's insides while it answers, and what probes made of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Activations = NDArray[np.float32]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in a language model: a 0-based block, and "block" (its output) or "ffn"."""

    layer: int
    part: str = "block"


Watch = Callable[[Place, Activations], bool]


@dataclass(frozen=True, slots=True)
class Capture:
    """What is to be kept while a language model answers.

    Attributes:
        answer: Places kept for every token of the answer.
        ends: Whether they are kept for its end token too, which takes a pass more.
        prompt: Places kept for the prompt's last token, before any answer token.
        watch: Told in mid-pass what stands at each of the `prompt` places, shape
            (width,), in the order of their depth; False ends the answer there, and
            nothing behind it is computed.
    """

    answer: tuple[Place, ...] = ()
    ends: bool = False
    prompt: tuple[Place, ...] = ()
    watch: Watch | None = None


NO_CAPTURE = Capture()


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What was kept; a model that keeps nothing (a server) gives none.

    Attributes:
        answer: float32 of shape (tokens, width): the answer's tokens.
        end: float32 of shape (1, width): its end token, where that was asked for and
            written.
        prompt: float32 of shape (width,).
        is_stopped: Whether the watch ended the answer before its first token.
    """

    answer: Mapping[Place, Activations] = field(default_factory=dict)
    end: Mapping[Place, Activations] = field(default_factory=dict)
    prompt: Mapping[Place, Activations] = field(default_factory=dict)
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Confidence:
    """What the probes in force made of one answer; every number in [0, 1].

    Attributes:
        answer: That the answer is right, from its own activations; None where no such
            probe is in force or nothing was written.
        early: The same from the prompt alone, before any answer token.
        joint: The same from all signals together.
        along: `answer` as it stood after each of the generation's `tokens`; empty where
            `answer` is None.
        shadows: (signal name, confidence) of probes that run in shadow.
        probes: Fingerprints of the probes in force that gave them, separated by spaces.
        missing: Why a number that the policy enforces could not be had; "" otherwise.
    """

    answer: float | None = None
    early: float | None = None
    joint: float | None = None
    along: tuple[float, ...] = ()
    shadows: tuple[tuple[str, float], ...] = ()
    probes: str = ""
    missing: str = ""
