"""Conversations: a follow-up is rewritten as a standalone question, which is decided.

Only the asker's own earlier questions are read, never an answer or its evidence.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final
from uuid import UUID

from accounts.acting import reading_as, user_reader
from accounts.exceptions import UnavailableError
from accounts.people import AnyUser
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer, AnswerQuerySet
from qa.exceptions import ConversationNotFoundError, InvalidQuestionError
from qa.pipeline import follow_up
from qa.policies.services import active_policy

from .sources import (
    KnowledgeRetriever,
    before_the_model,
    configured_rewriter,
    evidence_scope,
    release_connection,
)
from .view import competing

logger = logging.getLogger(__name__)

MAX_EARLIER: Final = 3
"""Earlier questions with which a follow-up is read."""


# How far back chains of follow-ups are resolved if the client sends the turns itself.
_MAX_TURNS: Final = 8


@dataclass(frozen=True, slots=True)
class Conversation:
    """The asker's own latest questions, as they were asked, oldest first.

    `asked_back` is whether the latest was refused by asking which entry is meant.
    """

    id: UUID
    knowledge_base: str  # slug
    questions: tuple[str, ...]
    asked_back: bool


def find_conversation(conversation: UUID, *, asker: AnyUser) -> Conversation:
    """Return the asker's conversation by the id of its first answer (one query).

    Raises:
        ConversationNotFoundError: It does not exist, or is another user's.
    """
    found = _latest(_own(asker).in_conversation(conversation))
    if not found:
        raise ConversationNotFoundError(
            f"You have no conversation {conversation}. Send the `conversation` of an "
            "answer of yours, or leave it out to begin one."
        )
    return _conversation(conversation, found)


def conversation_before(answer_id: UUID, *, asker: AnyUser) -> Conversation:
    """Return the asker's conversation up to and including one of their answers.

    Raises:
        ConversationNotFoundError: The answer does not exist, or is another user's.
    """
    own = _own(asker)
    answer = own.filter(pk=answer_id).first()
    if answer is None:
        raise ConversationNotFoundError(
            f"You have no question {answer_id}; ask a new one."
        )
    rows = own.in_conversation(answer.conversation_id)
    return _conversation(
        answer.conversation_id, _latest(rows.filter(created_at__lte=answer.created_at))
    )


def _own(asker: AnyUser) -> AnswerQuerySet:
    # `asker_id` is NULL for every deleted user; an anonymous asker must not match them.
    rows = Answer.objects.asked_by(asker).filter(erased_at__isnull=True)
    return rows if asker.pk else rows.none()


def _latest(rows: AnswerQuerySet) -> Sequence[Answer]:
    """Return the latest answers with their knowledge base's slug, newest first."""
    read = rows.select_related("knowledge_base").only(
        "question", "shown_reason", "signals", "knowledge_base__slug"
    )
    return list(read.order_by("-created_at")[:MAX_EARLIER])


def _conversation(conversation: UUID, latest: Sequence[Answer]) -> Conversation:
    last = latest[0]
    return Conversation(
        conversation,
        last.knowledge_base.slug,
        tuple(each.question for each in reversed(latest)),
        competing(last.shown_reason, last.signals) > 0,
    )


def check_knowledge_base(conversation: Conversation, slug: str) -> None:
    """Refuse to continue in another knowledge base, as its products differ.

    Raises:
        InvalidQuestionError: `slug` names another one.
    """
    if slug and slug != conversation.knowledge_base:
        raise InvalidQuestionError(
            f"The conversation is in {conversation.knowledge_base!r}, the question in "
            f"{slug[:50]!r}. Leave the knowledge base out, or begin a new conversation."
        )


def standalone_question(
    typed: str,
    earlier: Sequence[str],
    *,
    asker: AnyUser,
    knowledge_base: KnowledgeBase,
    asked_back: bool = False,
) -> str:
    """Return a follow-up as a standalone question, in its asker's own words.

    A language model that follows instructions is asked first; its rewrite is used only
    if it says all that was typed and nothing else. Otherwise rules rewrite it.

    Args:
        earlier: The asker's own standalone questions, oldest first.
        asked_back: Whether the latest was refused by asking which entry is meant, so
            that a few words may be the reply.

    Returns:
        The typed text if it stands on its own, or if there is no safe rewrite.
    """
    if not earlier or not follow_up.may_depend(typed, asked_back=asked_back):
        return typed
    with reading_as(user_reader(asker)):
        if follow_up.depends(typed) and (written := _written(typed, earlier)):
            return written
        scope = evidence_scope(
            asker, knowledge_base, active_policy(knowledge_base).as_value()
        )
        retriever = KnowledgeRetriever(scope)

        def distances(questions: Sequence[str]) -> Sequence[float]:
            looks = (retriever.look(text, top_k=1, deep=False) for text in questions)
            return [
                min((piece.distance for piece in look.evidence), default=inf)
                for look in looks
            ]

        read = partial(follow_up.standalone, typed, earlier[-1], asked_back=asked_back)
        try:
            return read(distances=distances)
        except UnavailableError as error:
            logger.warning("A follow-up's reading is chosen by form alone: %s", error)
            return read()


def resolved(turns: Sequence[str]) -> list[str]:
    """Return the last typed turns as standalone questions, rewritten by rules."""
    questions: list[str] = []
    for turn in turns[-_MAX_TURNS:]:
        before = questions[-1] if questions else ""
        questions.append(follow_up.standalone(turn, before) if before else turn)
    return questions


def _written(typed: str, earlier: Sequence[str]) -> str:
    """Return the configured language model's rewrite; "" without a grounded one."""
    try:
        rewriter = configured_rewriter()
        if rewriter is None:
            return ""
        with before_the_model.take():
            release_connection()  # the model writes next
            text = rewriter.rewrite(typed, earlier)
    except UnavailableError as error:
        logger.warning("A follow-up is rewritten by rules alone: %s", error)
        return ""
    if not follow_up.is_grounded(text, typed, earlier):
        logger.info(
            "A model's rewrite of a follow-up is discarded: not in its asker's words."
        )
        return ""
    return text
