"""What several pages show: the question box, recent questions, an answer."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone

from accounts.roles import Role, has_role
from kb.models import Entry, KnowledgeBase, Revision
from qa.models import Answer, AnswerEvidence, Escalation, Vote
from qa.models.vote import reasons_against
from qa.services.escalations import NOTE_LIMIT
from qa.services.votes import COMMENT_LIMIT, EXPECTED_LIMIT

from .access import user_of
from .presentation import present

RECENT = 8


def box_part(
    request: HttpRequest, *, question: str = "", error: str = ""
) -> dict[str, object]:
    """Return what the question box shows (one query)."""
    return {
        "knowledge_bases": list(KnowledgeBase.objects.all()),
        "chosen": request.POST.get("knowledge_base", ""),
        "question": question,
        "error": error,
    }


def recent_part(user: User) -> dict[str, object]:
    """Return the user's last questions (one query)."""
    return {"recent": list(past_answers(user)[:RECENT])}


def past_answers(user: User) -> QuerySet[Answer]:
    """Return the user's own questions, newest first, without what lists don't show.

    Of what was asked again by itself, only what was answered.
    """
    unread = Escalation.objects.unread_by(user).filter(answer=OuterRef("pk"))
    return (
        Answer.objects.asked_by(user)
        .exclude(~Q(outcome=Answer.Outcome.ANSWERED), channel=Answer.Channel.REPEAT)
        .annotate(has_reply=Exists(unread))
        .only("question", "outcome", "gate", "text", "created_at")
    )


def answer_part(request: HttpRequest, answer_id: UUID) -> dict[str, object]:
    """Return what the page shows of one answer (five queries, whatever its length)."""
    seen = Answer.objects.seen_by(request.user)
    answer = seen.select_related("policy", "knowledge_base", "asker").get(pk=answer_id)
    evidence = list(_evidence(answer_id, user_of(request)))
    return {
        "page": present(answer, evidence, at=timezone.now()),
        "may_curate": request.user.is_staff and has_role(request.user, Role.CURATOR),
        "is_own": answer.asker_id == request.user.pk,
        **vote_part(request, answer),
        **escalation_part(request, answer),
    }


def escalation_part(request: HttpRequest, answer: Answer) -> dict[str, object]:
    """Return what is shown of sending a refusal to an expert (one query for a refusal)."""
    if answer.outcome != Answer.Outcome.REFUSED:
        return {"escalation": None, "may_escalate": False}
    found = (
        Escalation.objects.visible_to(request.user)
        .filter(answer=answer)
        .select_related("assignee", "replied_by", "entry")
        .first()
    )
    is_own = answer.asker_id == request.user.pk
    return {
        "answer": answer,
        "is_own": is_own,
        "escalation": found,
        "may_escalate": found is None and is_own,
        "is_kept_verified": bool(
            found and found.entry and found.entry.state == Entry.State.VERIFIED
        ),
        "note_limit": NOTE_LIMIT,
    }


def vote_part(request: HttpRequest, answer: Answer) -> dict[str, object]:
    """Return what the thumbs show (one query)."""
    user = user_of(request)
    vote = Vote.objects.filter(answer=answer, user=user).first()
    return {
        "answer": answer,
        "vote": vote,
        "reasons": reasons_against(answer) if vote and not vote.is_up else (),
        "said_more": bool(
            vote and (vote.reasons or vote.comment or vote.expected_answer)
        ),
        "comment_limit": COMMENT_LIMIT,
        "expected_limit": EXPECTED_LIMIT,
    }


def _evidence(answer_id: UUID, viewer: User) -> QuerySet[AnswerEvidence]:
    latest = (
        Revision.objects.filter(entry=OuterRef("entry"))
        .order_by("-number")
        .values("number")[:1]
    )
    return (
        AnswerEvidence.objects.seen_by(viewer)
        .filter(answer_id=answer_id)
        .select_related(
            "entry__document",
            "entry__section",
            "entry__verified_by",
            "entry__upkeep",
            "revision",
        )
        .defer("entry__search_vector", "entry__text", "entry__question")
        .annotate(latest_number=Subquery(latest))
        .order_by("rank")
    )
