"""Second opinions on reviews that contradict what the verifier is surest of.

Experts make mistakes too, and thresholds are chosen where almost nothing is shown
wrongly: with five mistakes in a hundred reviews, those five are most of the answers
counted as wrong, and no threshold meets a target of one in twenty
(docs/reference/measured.md). The same mistake is rarely made twice, so another expert
judges the answer without seeing the first judgement.
"""

from typing import Final

from accounts.roles import Role, holders
from qa.answers.models import Answer
from qa.reviews.models import Review

# From here on, the verifier thinks it more likely than not that the entry answers.
_LIKELY: Final = 0.5
_MAX_EXPERTS: Final = 20  # the most experts who are checked for access to the answer


def ask_for_second_opinion(review: Review) -> None:
    """Queue a second review of a doubtful one, if another expert may judge it."""
    if not is_doubtful(review) or not _has_other_expert(review):
        return
    Review.objects.get_or_create(
        answer=review.answer, round=2, defaults={"tag": review.tag}
    )


def take_back_second_opinion(review: Review) -> None:
    """Remove a second review that nobody has begun, as the first is judged again."""
    if review.round == 1:
        Review.objects.filter(
            answer=review.answer_id,
            round=2,
            stratum=None,
            state=Review.State.WAITING,
            reviewed_by=None,
        ).delete()


def is_doubtful(review: Review) -> bool:
    """Return whether a first review rejects what the verifier thinks likely to answer.

    A wrong sentence by a language model says nothing about the entries.
    """
    answer = review.answer
    if review.round != 1 or review.state != Review.State.DONE:
        return False
    if answer.outcome == Answer.Outcome.ANSWERED:
        is_wrong = not review.is_right_to_show and not answer.language_model
    else:
        is_wrong = review.should_be_answered is False
    return is_wrong and entry_chance(answer) >= _LIKELY


def entry_chance(answer: Answer) -> float:
    """Return the verifier's probability that the entry answers; 0 if there is none."""
    values = (s["value"] for s in answer.signals if s["name"] == "entry_answers")
    return float(next(values, None) or 0.0)


def _has_other_expert(review: Review) -> bool:
    experts = holders(
        Role.SME, knowledge_base_id=review.answer.knowledge_base_id
    ).order_by("pk")[:_MAX_EXPERTS]
    return any(
        Review.objects.visible_to(expert).filter(pk=review.pk).exists()
        for expert in experts
        if expert != review.reviewed_by
    )
