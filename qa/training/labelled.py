"""Labelled drafts: what probes are fitted on, whatever they were gathered from.

A source is a function that returns drafts; finished evaluation runs and files are two,
and what reviewers say of live answers can be one more.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from qa.evaluation.labelled import LabelledAnswer
from qa.pipeline.evidence import Evidence
from qa.pipeline.generation import Prompt


@dataclass(frozen=True, slots=True)
class LabelledDraft(LabelledAnswer):
    """What a language model read and wrote, and whether that is right.

    Attributes:
        prompt: The question and its evidence, as they were read.
        answer: The words that answer: the short answer, or else the whole one.
    """

    prompt: Prompt
    answer: str

    @property
    def is_right(self) -> bool:
        """Whether showing it shows something right."""
        return not self.is_wrong_if_shown

    @property
    def content(self) -> str:
        """64 hex digits: what was read, what was written."""
        pieces = [(piece.question, piece.text) for piece in self.prompt.evidence]
        said = [self.prompt.question, pieces, self.answer]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def drawn_together(sources: Iterable[Iterable[LabelledDraft]]) -> list[LabelledDraft]:
    """Return the drafts of several sources, each content once: the first one stands."""
    found: dict[str, LabelledDraft] = {}
    for drafts in sources:
        for draft in drafts:
            found.setdefault(draft.content, draft)
    return list(found.values())


def digest_of(drafts: Iterable[LabelledDraft]) -> str:
    """Return 64 hex digits over contents, labels and groups, in any order."""
    rows = sorted(f"{d.content} {d.is_right:d} {d.group}" for d in drafts)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def piece_of(
    question: str, text: str, *, entry: int = 0, revision: int = 0
) -> Evidence:
    """Return a piece of evidence of which only its words matter."""
    return Evidence(
        entry_id=entry,
        revision_id=revision,
        text=text,
        question=question,
        confidence=1.0,
        is_verified=True,
        distance=0.0,
        vector_rank=None,
        text_rank=None,
        score=0.0,
        document_title="",
        section="",
        verified_at=None,
        valid_until=None,
    )


def finite(signals: Mapping[str, object]) -> dict[str, float | None]:
    """Return signals as numbers, of which JSON may hold others."""
    return {
        name: float(value) if isinstance(value, int | float) else None
        for name, value in signals.items()
    }
