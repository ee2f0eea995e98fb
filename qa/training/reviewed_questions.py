"""Labelled questions of a knowledge base's own reviews, with the evidence experts marked."""

from typing import Final

from django.db.models import Prefetch

from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer, AnswerEvidence
from qa.answers.past_question_models import PastQuestion
from qa.evaluation.metrics.text import normalised
from qa.reviews.models import Review

from .labelled_questions import LabelledQuestion
from .past_questions import references_of

# The newest: what experts judged long ago may be about knowledge that is gone.
_MAX: Final = 5_000


def reviewed_questions(knowledge_base: KnowledgeBase) -> list[LabelledQuestion]:
    """Return the reviewed questions to which something right is known.

    Notes are the pieces of evidence as they were found, best first; marked are those that
    a reviewer named as supporting the right answer. Questions in the same words are one
    group.
    """
    pieces = AnswerEvidence.objects.select_related("revision").order_by("rank")
    rows = (
        PastQuestion.objects.filter(knowledge_base=knowledge_base)
        .exclude(answer__channel=Answer.Channel.EVALUATION)
        .select_related("answer")
        .prefetch_related(
            Prefetch("answer__evidence", pieces),
            Prefetch("answer__reviews", Review.objects.done().select_related("entry")),
        )
        .order_by("-labelled_at", "-pk")[:_MAX]
    )
    return [one for row in rows if (one := _labelled(row))]


def _labelled(row: PastQuestion) -> LabelledQuestion | None:
    references = references_of(row)
    if not references:
        return None
    used = {key for review in row.answer.reviews.all() for key in review.evidence_used}
    notes: dict[str, bool] = {}
    for piece in row.answer.evidence.all():
        if piece.revision is not None:
            text = f"{piece.revision.question} {piece.revision.text}".strip()
            notes[text] = notes.get(text, False) or piece.pk in used
    return LabelledQuestion(
        row.answer.question,
        tuple(references),
        tuple(notes),
        normalised(row.answer.question),
        tuple(text for text, is_marked in notes.items() if is_marked),
    )
