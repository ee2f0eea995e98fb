"""What of an answer's contradicting sources may be shown to who looks."""

from collections.abc import Sequence
from dataclasses import dataclass

from kb.models import Entry
from qa.models import Answer, AnswerEvidence


@dataclass(frozen=True, slots=True)
class Side:
    """One of two entries that contradict each other; without words where withheld."""

    entry: int
    quote: str
    document: str
    verified: bool
    withheld: bool


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two entries that contradict each other on what an answer rests on."""

    conflict: int
    sides: tuple[Side, ...]


def disagreements_of(
    answer: Answer, evidence: Sequence[AnswerEvidence]
) -> tuple[Disagreement, ...]:
    """Return the contradictions among an answer's evidence, as they were quoted then.

    Args:
        evidence: Its rows with entry, document and revision, `seen_by` who looks.
    """
    pieces = {piece.entry_id: piece for piece in evidence}
    found = []
    for row in answer.contradictions:
        sides = []
        for entry_id, quote in zip(row["entries"], row["quotes"], strict=True):
            piece = pieces.get(entry_id)  # erased since, with its mention
            hidden = piece is None or piece.is_withheld
            entry = piece.entry if piece and not hidden else None
            document = entry.document if entry else None
            revision = piece.revision if piece else None
            sides.append(
                Side(
                    entry=entry_id,
                    quote="" if hidden else quote,
                    document=document.title if document else "",
                    verified=revision is not None
                    and revision.state == Entry.State.VERIFIED,
                    withheld=hidden,
                )
            )
        found.append(Disagreement(row["conflict_id"], tuple(sides)))
    return tuple(found)
