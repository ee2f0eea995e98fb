"""Shared parts of the agent's pages: access, and the contexts of their templates."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.cache import never_cache

from accounts.roles import Role, caller, has_role, has_role_in, is_live
from kb.documents.models import KnowledgeBase
from kb.entries.finding import found_by
from kb.entries.models import Entry, Revision
from kb.text.terms import terms
from kb.upkeep.models import Flag
from kb.upkeep.services import FLAG_NOTE_LIMIT
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.answers.presentation import AnswerPage, present, words_of
from qa.gaps.escalation_models import Escalation
from qa.gaps.escalations import DECIDED, NOTE_LIMIT
from qa.policies.wording import words_in
from qa.votes.models import Vote, reasons_against
from qa.votes.services import COMMENT_LIMIT, EXPECTED_LIMIT

P = ParamSpec("P")
Page = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def agents_only(page: Page[P]) -> Page[P]:
    """Let in agents and above, send signed-out users to the login, forbid caching."""

    @never_cache
    @wraps(page)
    def guarded(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_login(request)
        if not has_role(request.user, Role.AGENT):
            msg = (
                f"The account {request.user.get_username()} has no role yet. "
                "Ask an administrator to give it the role agent."
            )
            raise PermissionDenied(msg)
        return page(request, *args, **kwargs)

    return guarded


def find_answer(request: HttpRequest, answer_id: UUID) -> Answer:
    """Return an answer that the user may see; raise Http404 for any other."""
    visible = Answer.objects.visible_to(request.user)
    rows = visible.select_related("asker", "knowledge_base")
    found = rows.filter(pk=answer_id).first()
    if found is None:
        msg = "This answer does not exist, or somebody else asked the question."
        raise Http404(msg)
    return found


def find_own_answer(request: HttpRequest, answer_id: UUID) -> Answer:
    """Return an answer to the user's own question; raise Http404 for any other."""
    answer = find_answer(request, answer_id)
    if answer.asker_id != request.user.pk:
        raise Http404("Only the person who asked a question can have it decided.")
    return answer


def _to_login(request: HttpRequest) -> HttpResponse:
    if not is_live(request):
        return redirect_to_login(request.get_full_path())
    # HTMX would follow a redirect and insert the sign-in page into this one.
    response = HttpResponse(status=401)
    response["HX-Redirect"] = redirect_to_login("/").url
    return response


RECENT = 8
_EXAMPLES = 4
_MEANINGS = 5
_INDEFINITE = 3  # most words of a question that may be too indefinite
_TURNS = 12  # questions of a conversation that are listed
_NEAREST = 3  # entries shown beside a refusal; the others are collapsed


def box_part(
    request: HttpRequest,
    *,
    question: str = "",
    error: str = "",
    base: KnowledgeBase | None = None,
) -> dict[str, Any]:
    bases = list(KnowledgeBase.objects.in_use())
    chosen = request.POST.get("knowledge_base", "")
    if not chosen and len(bases) > 1:
        base = base or chosen_base(request, bases)
        chosen = base.slug if base else ""
    return {
        "knowledge_bases": bases,
        "chosen": chosen,
        "question": question,
        "error": error,
    }


_CHOSEN = "knowledge_base"


def remember_base(request: HttpRequest, slug: str) -> None:
    """Store the user's chosen knowledge base in the session, for the next page."""
    if slug and request.session.get(_CHOSEN) != slug:
        request.session[_CHOSEN] = slug


def chosen_base(
    request: HttpRequest, bases: Iterable[KnowledgeBase]
) -> KnowledgeBase | None:
    """Return the knowledge base chosen last in this session, else `base_to_begin`."""
    slug, shown = request.session.get(_CHOSEN), list(bases)
    kept = next((base for base in shown if base.slug == slug), None)
    return kept or base_to_begin(caller(request), shown)


def base_to_begin(user: User, bases: Iterable[KnowledgeBase]) -> KnowledgeBase | None:
    """Return the knowledge base of the user's last question, or else the oldest one."""
    asked = Answer.objects.asked_by(user).order_by("-created_at")[:1]
    rows = KnowledgeBase.objects.filter(pk__in=asked.values("knowledge_base"))
    shown, last = list(bases), rows.first()
    return last if last in shown else min(shown, key=lambda b: b.pk, default=None)


def recent_part(
    request: HttpRequest, bases: Iterable[KnowledgeBase]
) -> dict[str, object]:
    """Return the user's last questions, or examples if there are none yet."""
    user = caller(request)
    if recent := list(past_answers(user)[:RECENT]):
        return {"recent": recent}
    # The same one as in `box_part`.
    base = chosen_base(request, bases)
    return {"example_base": base, "examples": _examples(user, base) if base else []}


def _examples(user: User, base: KnowledgeBase) -> list[str]:
    """Return questions that verified entries answer word for word, the most used first."""
    entries = Entry.objects.visible_to(user).filter(
        knowledge_base=base, state=Entry.State.VERIFIED
    )
    asked = entries.current(timezone.now()).exclude(question="")
    most_used = asked.order_by("-upkeep__uses", "pk")
    return list(most_used.values_list("question", flat=True)[:_EXAMPLES])


def past_answers(user: User) -> QuerySet[Answer]:
    """Return the user's own questions as lists show them, newest first.

    Automatic repeats are included only if they were answered.
    """
    sent = Escalation.objects.filter(answer=OuterRef("pk"))
    unread, waiting = sent.unread_by(user), sent.waiting()
    chosen = Vote.objects.filter(answer=OuterRef("pk"), user=user)
    return (
        Answer.objects.asked_by(user)
        .exclude(~Q(outcome=Answer.Outcome.ANSWERED), channel=Answer.Channel.REPEAT)
        .annotate(
            has_reply=Exists(unread),
            is_at_expert=Exists(waiting),
            has_choice=Exists(chosen.exclude(answering_entry=None)),
        )
        .only("question", "typed", "outcome", "gate", "text", "created_at")
    )


def answer_part(request: HttpRequest, answer_id: UUID) -> dict[str, object]:
    """Return the context of one answer (five queries, whatever its length)."""
    seen = Answer.objects.seen_by(request.user)
    answer = seen.select_related("policy", "knowledge_base", "asker").get(pk=answer_id)
    answer.pieces = list(_evidence(answer_id, caller(request)))
    page, voted = present(answer, at=timezone.now()), vote_part(request, answer)
    return {
        "page": page,
        "near": _near_part(page, voted["vote"]),
        "meanings": () if page.view.meanings else _meanings(request, answer),
        "turns": _turns(request, answer),
        "may_curate": may_curate(request, answer.knowledge_base_id),
        "decides": has_role_in(caller(request), Role.SME, answer.knowledge_base_id),
        "is_own": answer.asker_id == request.user.pk,
        **flag_part(),
        **voted,
        **escalation_part(request, answer),
    }


def _turns(request: HttpRequest, answer: Answer) -> list[Answer]:
    """Return an own conversation's last questions, oldest first (at most one query)."""
    if answer.conversation is None or answer.asker_id != request.user.pk:
        return []
    own = Answer.objects.asked_by(request.user)
    rows = own.in_conversation(answer.conversation).order_by("-created_at")
    return list(rows.only("question", "outcome", "gate")[:_TURNS])[::-1]


def may_curate(request: HttpRequest, knowledge_base_id: int) -> bool:
    """Return whether the user may open the admin's pages of this knowledge base."""
    user = caller(request)
    return user.is_staff and has_role_in(user, Role.CURATOR, knowledge_base_id)


def _meanings(request: HttpRequest, answer: Answer) -> tuple[Entry, ...]:
    """Return entries that match the user's own refused question if it is too short."""
    is_own = answer.asker_id == request.user.pk
    is_refused = answer.outcome == Answer.Outcome.REFUSED
    words = terms(answer.question).words
    is_definite = len(words) > 1 or len(answer.question.split()) > _INDEFINITE
    if is_definite or not (is_own and is_refused):
        return ()
    base = answer.knowledge_base
    known = Entry.objects.visible_to(request.user).filter(
        knowledge_base=base, state=Entry.State.VERIFIED
    )
    found = found_by(
        answer.question.strip("?!. "),
        known.current(timezone.now()).defer("search_vector"),
        reader=request.user,
        knowledge_base=base,
    )
    # Entries with a question read best as suggestions, so they come first.
    return tuple(sorted(found.by_words, key=lambda e: not e.question)[:_MEANINGS])


def _near_part(page: AnswerPage, vote: Vote | None) -> dict[str, object]:
    """Return a refusal's near misses; those that may be meant or were chosen first."""
    chosen = vote.answering_entry_id if vote else None
    rows = [(card, card.shown.row) for card in page.near_misses]
    meanings = page.view.meanings
    first = [
        card
        for at, (card, row) in enumerate(rows)
        if (card.shown in meanings if meanings else at < _NEAREST)
        or (row.entry_id and row.entry_id == chosen)
    ]
    return {
        "nearest": first,
        "asks_back": bool(meanings),
        "further": [card for card in page.near_misses if card not in first],
        "is_chosen": any(row.entry_id and row.entry_id == chosen for _, row in rows),
        "can_be_chosen": any(
            row.is_verified and not row.is_withheld for _, row in rows
        ),
    }


def escalation_part(request: HttpRequest, answer: Answer) -> dict[str, object]:
    """Return the context of the escalation panel (one query at most)."""
    if answer.outcome not in DECIDED:
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
        "words": words_of(answer),
        "is_own": is_own,
        "escalation": found,
        "may_escalate": found is None and is_own,
        "is_kept_verified": bool(
            found and found.entry and found.entry.state == Entry.State.VERIFIED
        ),
        "note_limit": NOTE_LIMIT,
    }


def flag_part() -> dict[str, Any]:
    """Return the context of the forms that flag an entry."""
    return {
        "words": words_in("en"),
        "flag_reasons": Flag.Reason.choices,
        "flag_note_limit": FLAG_NOTE_LIMIT,
    }


def vote_part(request: HttpRequest, answer: Answer) -> dict[str, Any]:
    """Return the context of the vote panel (one query)."""
    user = caller(request)
    vote = Vote.objects.filter(answer=answer, user=user).first()
    words = words_of(answer)
    said_more = bool(vote and (vote.reasons or vote.comment or vote.expected_answer))
    chosen = vote.reasons if vote else []
    if answer.outcome == Answer.Outcome.REFUSED and not said_more:
        # The thumb-down button of a refusal already says so.
        chosen = [Vote.Reason.SHOULD_BE_KNOWN]
    return {
        "answer": answer,
        "words": words,
        "vote": vote,
        "chosen_reasons": chosen,
        "reasons": [
            (reason.value, words.labels.get(f"reason_{reason.value}", reason.label))
            for reason in (reasons_against(answer) if vote and not vote.is_up else ())
        ],
        "said_more": said_more,
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
