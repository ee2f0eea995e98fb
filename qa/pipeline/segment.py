"""One sentence of an answer that was watched while it was written."""

from dataclasses import dataclass

from .evidence import Evidence
from .gates import Reason


@dataclass(frozen=True, slots=True)
class Segment:
    """One sentence, as it was settled.

    Attributes:
        text: As it was written last.
        tokens: Its tokens; joined they give the text.
        confidences: Of each of them, in the unit of the monitor.
        weakest: The least confidence of a new word as it was written first, without
            evidence: what decided whether to look; None where no word was new.
        triggers: The words in doubt that evidence was looked for because of, in order;
            empty too where the first draft was a refusal.
        queries: What was looked for.
        evidence: What the segment was written by at last.
        rounds: How often evidence was looked for.
        is_sourced: Whether it says something new, and all of that stands in evidence.
        doubt: Why it may not be shown; None where it may.
    """

    text: str
    tokens: tuple[str, ...]
    confidences: tuple[float, ...]
    weakest: float | None
    triggers: tuple[str, ...]
    queries: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    rounds: int
    is_sourced: bool
    doubt: Reason | None
