"""Thumbs: one a user and answer, on refusals too."""

from uuid import UUID

from django.contrib.auth.models import User

from accounts.roles import Role, has_role
from qa.exceptions import AnswerNotFoundError, AnswerPendingError, InvalidVoteError
from qa.models import Answer, Vote

COMMENT_LIMIT = 2_000


def vote(
    answer_id: UUID, *, user: User, is_up: bool | None, comment: str = ""
) -> Vote | None:
    """Set, change or (with None) take back `user`'s thumb on an answer.

    Whoever asked may vote, and so may those who review answers.

    Raises:
        AnswerNotFoundError: There is no such answer, or it is not theirs to see.
        AnswerPendingError: It is not decided yet.
        InvalidVoteError: The comment is too long or no text.
    """
    answer = Answer.objects.filter(pk=answer_id).first()
    if answer is None or not (answer.asker_id == user.pk or has_role(user, Role.SME)):
        raise AnswerNotFoundError(f"There is no answer {answer_id}.")
    if answer.outcome in (Answer.Outcome.PENDING, Answer.Outcome.FAILED):
        raise AnswerPendingError(
            f"Question {answer_id} is not decided yet; vote when there is an outcome."
        )
    if is_up is None:
        Vote.objects.filter(answer=answer, user=user).delete()
        return None
    kept, _ = Vote.objects.update_or_create(
        answer=answer,
        user=user,
        defaults={"is_up": is_up, "comment": _checked(comment)},
    )
    return kept


def _checked(comment: str) -> str:
    comment = comment.strip()
    if len(comment) > COMMENT_LIMIT:
        raise InvalidVoteError(
            f"The comment has {len(comment)} characters and may have {COMMENT_LIMIT}; "
            "shorten it."
        )
    if "\x00" in comment or any("\ud800" <= c <= "\udfff" for c in comment):
        raise InvalidVoteError(
            "The comment holds a NUL or half a surrogate pair; take it out."
        )
    return comment
