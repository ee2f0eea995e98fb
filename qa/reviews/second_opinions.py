"""Second opinions on reviews that contradict what the verifier is surest of.

Experts err too, and thresholds are chosen where next to nothing is shown wrongly: of a
hundred reviews with five slips, the five are most of what is counted as wrong, and no
threshold keeps a target of one in twenty (docs/reference/measured.md). A slip seldom
happens twice, so another expert, who does not see the first judgement, says it again.
"""

from typing import Final

from accounts.roles import Role, holders
from qa.answers.models import Answer
from qa.reviews.models import Review

# From here on the verifier says rather that the entry answers than that it doesn't.
_LIKELY: Final = 0.5
_MAX_EXPERTS: Final = 20  # of whom it is looked up whether they may see the answer


def ask_for_second_opinion(review: Review) -> None:
    """Put a doubtful review into the queue of the others, if one of them may judge it."""
    if not is_doubtful(review) or not _has_other_expert(review):
        return
    Review.objects.get_or_create(
        answer=review.answer, round=2, defaults={"tag": review.tag}
    )


def take_back_second_opinion(review: Review) -> None:
    """Take one that nobody has begun out of the queue: the first is judged again."""
    if review.round == 1:
        Review.objects.filter(
            answer=review.answer_id,
            round=2,
            stratum=None,
            state=Review.State.WAITING,
            reviewed_by=None,
        ).delete()


def is_doubtful(review: Review) -> bool:
    """Tell whether a first review calls wrong what the verifier thinks likely to answer.

    A language model's wrong sentence says nothing of the entries.
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
    """Return how likely the entry that would be shown answered, by the verifier; else 0."""
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
