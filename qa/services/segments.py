"""The sentences of an answer that was watched while it was written."""

from collections.abc import Sequence
from dataclasses import dataclass

from qa.models import Answer, AnswerEvidence


@dataclass(frozen=True, slots=True)
class ShownSegment:
    """One sentence: what it rests on, and what was looked for because of it."""

    text: str
    is_sourced: bool
    triggers: str
    queries: Sequence[str]


def segments_of(
    answer: Answer, evidence: Sequence[AnswerEvidence]
) -> tuple[ShownSegment, ...]:
    """Return the sentences that may be read; none of an answer that was not watched.

    Nothing of a refused answer, and nothing that may repeat an entry which the viewer
    may not see.

    Args:
        evidence: The answer's rows, `seen_by` who looks.
    """
    if answer.outcome != Answer.Outcome.ANSWERED or any(
        piece.is_withheld for piece in evidence
    ):
        return ()
    return tuple(
        ShownSegment(
            text=each["text"],
            is_sourced=each["is_sourced"],
            triggers=", ".join(each["triggers"]),
            queries=each["queries"],
        )
        for each in answer.boundary.get("segments", [])
    )
