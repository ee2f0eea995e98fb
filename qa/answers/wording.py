"""The words that pages use for gates, stages and numbers."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qa.pipeline.gates import Gate
from qa.pipeline.policy import Policy
from qa.pipeline.rules import Kind

_WORDS: Final[Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class GateWords:
    """The words that pages use for a gate; see `wording.toml`."""

    name: str
    question: str
    stages: tuple[str, ...]
    answers: bool = False
    is_optional: bool = False


GATES: Final[Mapping[Gate, GateWords]] = {
    Gate(gate): GateWords(**{**words, "stages": tuple(words["stages"])})
    for gate, words in _WORDS["gates"].items()
}
# stage -> what is being done while it runs, and its name once done
STAGES: Final[Mapping[str, tuple[str, str]]] = {
    stage: (doing, done) for stage, (doing, done) in _WORDS["stages"].items()
}

_CLOSE = 0.75  # of the limit, so that what is nearly refused is not called close


def distance_in_words(distance: float, policy: Policy) -> str:
    """Describe a distance in [0, 2] on the scale of the policy's own limits."""
    if distance <= policy.verbatim_distance:
        return "very close"
    if distance < _CLOSE * policy.alpha:
        return "close"
    if distance < policy.alpha:
        return "fairly close"
    if distance <= policy.horizon:
        return "far"
    return "unrelated"


def confidence_in_words(confidence: float) -> str:
    words = {1.0: "certain", 0.9: "high", 0.75: "fair"}
    return next((word for low, word in words.items() if confidence >= low), "low")


def time_in_words(milliseconds: float) -> str:
    if milliseconds < 1:
        return "under 1 ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1_000:.1f} s"


def number_in_words(value: float | None, kind: Kind = Kind.NUMBER) -> str:
    if value is None:
        return "none"
    match kind:
        case Kind.YES_NO:
            return "yes" if value else "no"
        case Kind.COUNT:
            return f"{value:,.0f}"
        case Kind.NUMBER:
            return f"{value:.2f}"


_MAX_PLACES = 6


def numbers_apart(value: float, limit: float) -> tuple[str, str]:
    """Return a number and its limit, with enough decimals to show which is larger.

    "0.85, below the minimum of 0.85" reads as an error. Equal ones have two decimals.
    """
    pairs = (
        (f"{value:.{places}f}", f"{limit:.{places}f}")
        for places in range(2, _MAX_PLACES + 1)
    )
    return next(
        (p for p in pairs if value == limit or p[0] != p[1]),
        (f"{value:.2f}", f"{limit:.2f}"),
    )
