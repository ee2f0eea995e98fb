"""Labelled drafts of live answers: what experts said of them in reviews, never votes.

A part of them is the golden set: what a challenger is held against the champion on, and
what nothing is ever fitted on. Which part an answer falls into is a digest of what it is
about, the entry that stood first in its evidence: nobody chooses it, it never changes, and
a question in other words falls on the same side.
"""

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby

from qa.models import Answer, Review
from qa.pipeline.replay import flat

from .labelled import LabelledDraft, finite
from .stored_answers import evidence_of, prompt_of, text_of

GOLDEN_PERCENT = 25
_ROWS_AT_ONCE = 500


class Part(StrEnum):
    """What labels are used for."""

    TRAINING = "training"
    GOLDEN = "golden"


def part_of(group: str) -> Part:
    """Return the part that answers of this group fall into."""
    share = int(hashlib.sha256(group.encode()).hexdigest()[:8], 16) % 100
    return Part.GOLDEN if share < GOLDEN_PERCENT else Part.TRAINING


def drafts_of_reviews(
    part: Part, *, language_model: str | None = None
) -> Iterator[LabelledDraft]:
    """Yield every reviewed draft of one part, oldest first.

    An answer is right if an expert found it wholly correct and true to its evidence. The
    draft of a refusal is wrong if an expert said that it was rightly refused; where it
    should have been answered nobody said whether this draft does, and it is left out. So
    is one on which two experts do not agree.

    Args:
        part: Which part is wanted.
        language_model: Fingerprint that must have written them; None takes any.
    """
    rows = Review.objects.done().exclude(answer__channel=Answer.Channel.EVALUATION)
    if language_model is not None:
        rows = rows.filter(answer__language_model=language_model)
    rows = rows.select_related("answer").order_by("answer_id", "pk")
    rows = rows.prefetch_related(evidence_of("answer__evidence"))
    for _, each in groupby(
        rows.iterator(_ROWS_AT_ONCE), key=lambda review: review.answer_id
    ):
        draft = draft_of_reviews([*each])
        if draft is not None and part_of(draft.group) is part:
            yield draft


def draft_of_reviews(reviews: list[Review]) -> LabelledDraft | None:
    """Return one answer's draft as its reviews label it; None where they do not.

    Args:
        reviews: All that are done of the answer, at least one.
    """
    answer = reviews[0].answer
    text, prompt = text_of(answer), prompt_of(answer)
    said = {_is_right(review) for review in reviews}
    if not text or not prompt.evidence or len(said) != 1:
        return None
    (is_right,) = said
    if is_right is None:
        return None
    return LabelledDraft(
        id=str(answer.pk),
        group=f"entry {prompt.evidence[0].entry_id}",
        signals=finite(flat(answer.signals)),
        is_answerable=None,
        is_correct=is_right,
        prompt=prompt,
        answer=text,
    )


def _is_right(review: Review) -> bool | None:
    if review.answer.outcome == Answer.Outcome.ANSWERED:
        return review.is_right_to_show
    return False if review.should_be_answered is False else None
