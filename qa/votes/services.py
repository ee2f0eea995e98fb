"""Votes: one per user and answer or refusal, and how reviewers deal with them."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from accounts.roles import Role, has_role_in
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from kb.entries.wordings import confirm_question, withdraw_question
from kb.text import cleaning as spreadsheet_cells
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.answers.submitted_text import checked_text
from qa.exceptions import (
    AnswerNotFoundError,
    AnswerPendingError,
    EntryNotShownError,
    InvalidVoteError,
)
from qa.votes.models import Vote, reasons_against

COMMENT_LIMIT = 2_000
EXPECTED_LIMIT = 4_000


@transaction.atomic
def vote(
    answer_id: UUID,
    *,
    user: User,
    is_up: bool | None,
    reasons: Sequence[str] = (),
    comment: str = "",
    expected_answer: str = "",
    answering_entry_id: int | None = None,
) -> Vote | None:
    """Set, change or (with None) take back `user`'s thumb on an answer.

    The asker may vote, and so may reviewers. A vote that is changed is open again.

    Args:
        answering_entry_id: Id of the entry beside a refusal that answers the question.

    Raises:
        AnswerNotFoundError: It does not exist, or the user may not vote on it.
        AnswerPendingError: It is not decided yet.
        InvalidVoteError: A text or a reason is not allowed.
        EntryNotShownError: The entry was not shown beside a refusal.
    """
    rows = Answer.objects.select_related("knowledge_base")
    answer = rows.filter(pk=answer_id).first()
    if answer is None or not (
        answer.asker_id == user.pk
        or has_role_in(user, Role.SME, answer.knowledge_base_id)
    ):
        raise AnswerNotFoundError(f"There is no answer {answer_id}.")
    answer.knowledge_base.check_in_use()
    if answer.outcome in (Answer.Outcome.PENDING, Answer.Outcome.FAILED):
        raise AnswerPendingError(
            f"Question {answer_id} is not decided yet; vote when there is an outcome."
        )
    if is_up is None:
        _confirm(answer, None, by=user)
        Vote.objects.filter(answer=answer, user=user).delete()
        return None
    if answering_entry_id is not None:
        _check_answering(answer, answering_entry_id, user, is_up=is_up)
        reasons = [*reasons, Vote.Reason.ENTRY_EXISTS]
    said = {
        "is_up": is_up,
        "reasons": _reasons(answer, is_up=is_up, given=reasons),
        "answering_entry_id": answering_entry_id,
        "comment": checked_text("comment", comment, COMMENT_LIMIT, InvalidVoteError),
        "expected_answer": checked_text(
            "expected answer", expected_answer, EXPECTED_LIMIT, InvalidVoteError
        ),
    }
    if is_up and said["expected_answer"]:
        raise InvalidVoteError(
            "An expected answer goes with a thumb down; leave it out or vote down."
        )
    before = Vote.objects.select_for_update().filter(answer=answer, user=user).first()
    if before and all(getattr(before, name) == value for name, value in said.items()):
        return before
    _confirm(answer, answering_entry_id, by=user)
    kept, _ = Vote.objects.update_or_create(
        answer=answer,
        user=user,
        defaults={**said, "handled_at": None, "handled_by": None},
    )
    return kept


def _confirm(answer: Answer, entry_id: int | None, *, by: User) -> None:
    """Confirm that the entry an expert names answers the question; withdraw others.

    An agent's choice is only a label: a wording that decides is confirmed by experts.
    """
    if not has_role_in(by, Role.SME, answer.knowledge_base_id):
        return
    named = Vote.objects.filter(answer=answer, user=by).exclude(answering_entry=None)
    before = set(named.values_list("answering_entry_id", flat=True))
    withdraw_question(before - {entry_id}, answer.question, by=by)
    if entry_id is not None and entry_id not in before:
        entry = Entry.objects.defer("search_vector").get(pk=entry_id)
        confirm_question(entry, answer.question, by=by)


@transaction.atomic
def choose_entry(answer_id: UUID, *, user: User, entry_id: int | None) -> Vote | None:
    """Choose the entry beside a refusal that answers it; None takes the choice back.

    The choice is part of the user's vote, whose other reasons and texts are kept. A
    vote that contains nothing else is removed with the choice.
    """
    kept = _thumb_down(answer_id, user)
    reasons = _reasons_beside_entry(kept)
    says_more = bool(reasons or kept.comment or kept.expected_answer)
    return vote(
        answer_id,
        user=user,
        is_up=False if entry_id is not None or says_more else None,
        reasons=reasons,
        comment=kept.comment,
        expected_answer=kept.expected_answer,
        answering_entry_id=entry_id,
    )


@transaction.atomic
def set_thumb(answer_id: UUID, *, user: User, is_up: bool | None) -> Vote | None:
    """Set only the thumb; a thumb down keeps its reasons, texts and chosen entry."""
    kept = _thumb_down(answer_id, user) if is_up is False else Vote()
    return vote(
        answer_id,
        user=user,
        is_up=is_up,
        reasons=_reasons_beside_entry(kept),
        comment=kept.comment,
        expected_answer=kept.expected_answer,
        answering_entry_id=kept.answering_entry_id,
    )


def _thumb_down(answer_id: UUID, user: User) -> Vote:
    """Return the user's thumb down, locked, or an empty vote."""
    rows = Vote.objects.select_for_update().filter(answer=answer_id, user=user)
    return rows.filter(is_up=False).first() or Vote()


def _reasons_beside_entry(of: Vote) -> list[str]:
    return [reason for reason in of.reasons if reason != Vote.Reason.ENTRY_EXISTS]


def handle_votes(votes: QuerySet[Vote], *, by: User) -> int:
    """Mark votes as dealt with; return how many were open."""
    _check_in_use(votes)
    return votes.filter(handled_at__isnull=True).update(
        handled_at=timezone.now(), handled_by=by
    )


def reopen_votes(votes: QuerySet[Vote]) -> int:
    """Reopen votes; return how many had been dealt with."""
    _check_in_use(votes)
    return votes.filter(handled_at__isnull=False).update(
        handled_at=None, handled_by=None
    )


def _check_in_use(votes: QuerySet[Vote]) -> None:
    bases = votes.order_by().values("answer__knowledge_base")
    archived = KnowledgeBase.objects.archived().filter(pk__in=bases).first()
    if archived:
        archived.check_in_use()


def _check_answering(answer: Answer, entry: int, user: User, *, is_up: bool) -> None:
    """Refuse an entry that was not shown to the user beside a refusal."""
    if is_up or answer.outcome != Answer.Outcome.REFUSED:
        raise EntryNotShownError(
            "An entry that answers goes with a thumb down on a refusal; leave it out."
        )
    shown = AnswerEvidence.objects.seen_by(user).filter(answer=answer)
    known = [piece.entry_id for piece in shown if not piece.is_withheld]
    if entry not in known:
        said = ", ".join(map(str, known)) or "none"
        raise EntryNotShownError(
            f"Entry {entry} was not shown beside this refusal; shown: {said}."
        )


def _reasons(answer: Answer, *, is_up: bool, given: Sequence[str]) -> list[str]:
    """Return the valid reasons without duplicates, in their declared order."""
    known = () if is_up else reasons_against(answer)
    unknown = sorted(set(given) - {reason.value for reason in known})
    if unknown:
        named = ", ".join(known) or "none, because reasons go with a thumb down"
        raise InvalidVoteError(
            f"The reason {unknown[0][:40]!r} does not apply; available: {named}."
        )
    return [reason.value for reason in known if reason in given]


# Votes as a table for a spreadsheet.
COLUMNS = (
    "vote", "reasons", "comment", "expected_answer", "answering_entry", "voter",
    "voted_at", "handled_at", "handled_by", "answer", "question", "outcome", "gate",
    "reason", "text", "asked_at",
)  # fmt: skip
_AT_ONCE = 500
Row = TypeVar("Row", bound=Model)
WITHHELD = "withheld from you"


def csv_lines(votes: QuerySet[Vote]) -> Iterator[str]:
    """Yield the header and a line per vote, newest first; no cell can run as a formula.

    Texts that rest on entries that the reader may not see are withheld.

    Args:
        votes: From `Vote.objects.visible_to`, with their answers and users.
    """
    return spreadsheet_cells.csv_lines(chain([COLUMNS], map(_cells, newest(votes))))


def newest(rows: QuerySet[Row]) -> Iterator[Row]:
    """Yield rows in batches, as a cursor would hold a transaction during a download."""
    rows = rows.order_by("-pk")
    batch = list(rows[:_AT_ONCE])
    while batch:
        yield from batch
        batch = list(rows.filter(pk__lt=batch[-1].pk)[:_AT_ONCE])


def _cells(vote: Vote) -> tuple[str, ...]:
    answer = vote.answer
    says, should, was = (
        WITHHELD if vote.is_withheld and text else text
        for text in (vote.comment, vote.expected_answer, answer.text)
    )
    return (
        str(vote),
        " ".join(vote.reasons),
        says,
        should,
        str(vote.shown_answering_entry or ""),
        vote.user.get_username(),
        vote.updated_at.isoformat(),
        vote.handled_at.isoformat() if vote.handled_at else "",
        vote.handled_by.get_username() if vote.handled_by else "",
        str(answer.pk),
        answer.question,
        answer.outcome,
        answer.gate,
        answer.shown_reason,
        was,
        answer.created_at.isoformat(),
    )
