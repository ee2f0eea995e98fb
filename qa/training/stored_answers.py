"""What a stored answer holds of a draft: what was read, and what was written."""

from django.db.models import Prefetch

from qa.models import Answer, AnswerEvidence
from qa.pipeline.generation import Prompt

from .labelled import piece_of


def evidence_of(path: str) -> "Prefetch[str]":
    """Return what fetches the evidence of the answer at `path`, for `prompt_of`."""
    rows = AnswerEvidence.objects.select_related("revision").order_by("rank")
    return Prefetch(path, queryset=rows)


def prompt_of(answer: Answer) -> Prompt:
    """Return the question and the evidence as the model read them."""
    pieces = tuple(
        piece_of(
            piece.revision.question,
            piece.revision.text,
            entry=piece.entry_id,
            revision=piece.revision_id,
        )
        for piece in answer.evidence.all()
        if piece.revision and piece.entry_id and piece.revision_id
    )
    return Prompt(answer.question, pieces, answer.language)


def text_of(answer: Answer) -> str:
    """Return the words of the draft that answer; "" where none was written."""
    said = answer.generation
    text: str = said.get("short_answer") or said.get("answer") or ""
    return text if text.strip() else ""
