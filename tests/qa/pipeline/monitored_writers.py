"""Writers of segments whose words and confidences are given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kb.types import Evidence
from qa.pipeline.monitored import Draft

WRITER = "w" * 64


def draft(text: str, *doubted: str, is_last: bool = True) -> Draft:
    """Return a segment of confident words, but for those that hold one of `doubted`."""
    pieces = text.split(" ")
    tokens = (pieces[0], *(f" {piece}" for piece in pieces[1:])) if text else ()
    return Draft(
        text,
        tokens,
        tuple(-1.0 if any(d in t for d in doubted) else 1.0 for t in tokens),
        is_last,
    )


@dataclass
class GivenWriter:
    """Writes what it is told to for the notes and the segments before."""

    writes: Callable[[Sequence[Evidence], Sequence[str]], Draft]
    validates: Callable[[str], str] = field(default=lambda _segment: "")
    rewrites: str = ""
    strengths: list[float] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        return WRITER

    def write(
        self,
        question: str,
        notes: Sequence[Evidence],
        kept: Sequence[str],
        *,
        steering: float,
    ) -> Draft:
        self.strengths.append(steering)
        return self.writes(notes, kept)

    def validation_query(self, question: str, segment: str) -> str:
        return self.validates(segment)

    def rewritten_query(self, question: str, query: str) -> str:
        self.rewritten.append(query)
        return self.rewrites
