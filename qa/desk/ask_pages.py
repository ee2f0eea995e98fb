"""The ask page: the question box, and the stages of deciding as server-sent HTML."""

import logging
import re
from collections.abc import Iterator
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.exceptions import NescioError
from accounts.roles import caller, is_live
from accounts.services import preferences_of
from accounts.throttles import seconds_to_wait
from kb.documents.models import KnowledgeBase
from qa.answers import asking, wording
from qa.answers.conversations import conversation_before
from qa.answers.event_stream import event_response
from qa.answers.models import Answer
from qa.exceptions import AnswerPendingError, InvalidQuestionError
from qa.pipeline.gates import Decision
from qa.pipeline.language_model import Confidence
from qa.pipeline.values import Boundary, Outcome, Retrieval, StageValue, stage_name

from . import parts

logger = logging.getLogger(__name__)

# The stage after each one, as a stage's value does not name the next.
_NEXT = {
    "question": "retrieve",
    "boundary": "retrieve",
    "retrieve": "verbatim",
    "verbatim": "hard_refusal",
    "hard_refusal": "entry",
    "entry": "generate",
    "generate": "support",
    "support": "soft_refusal",
    "soft_refusal": "abstention",
}
_LINE_END = re.compile(r"\r\n|\r|\n")


def events(request: HttpRequest, answer: Answer, *, again: bool) -> Iterator[str]:
    """Yield `stage` for each stage, then `result` with the whole answer, then `end`.

    No stage contains text written by a model, as a later gate may reject it. If another
    request is deciding the question, nothing is sent; the page asks again.
    """
    undecided = [Answer.Outcome.PENDING, *([Answer.Outcome.FAILED] if again else [])]
    if answer.outcome in undecided:
        try:
            is_searched = False
            for value in asking.decide(answer):
                # A confidence is shown by the decision on it.
                if not isinstance(value, Confidence | Outcome):
                    yield _event("stage", _stage(value, is_searched=is_searched))
                is_searched = is_searched or isinstance(value, Retrieval)
        except AnswerPendingError:
            return
        except NescioError as error:
            logger.warning("Question %s could not be decided: %s", answer.pk, error)
        except Exception:
            # Catch everything: if the connection just broke, the browser would retry
            # forever.
            logger.exception("Question %s could not be decided", answer.pk)
            yield _event("result", render_to_string("qa/_broken.html", request=request))
            yield _event("end", "")
            return
    context = parts.answer_part(request, answer.pk)
    yield _event("result", render_to_string("qa/_result.html", context, request))
    yield _event("end", "")


def follow(answer: Answer) -> None:
    """Decide a stored question without showing its stages; a failure is stored, too."""
    try:
        for _value in asking.decide(answer):
            pass
    except NescioError as error:
        logger.warning("Question %s could not be decided: %s", answer.pk, error)


def _stage(value: StageValue, *, is_searched: bool) -> str:
    stage = stage_name(value)
    refused = isinstance(value, Decision) and value.refused
    ends = isinstance(value, Boundary) and (
        value.is_answered or value.segments or is_searched
    )
    following = "outcome" if refused or ends else _NEXT.get(stage, "outcome")
    return render_to_string(
        "qa/_stage.html",
        {
            "name": wording.STAGES.get(stage, (stage, stage))[1],
            "detail": _detail(value, is_searched=is_searched),
            "refused": refused,
            "next": wording.STAGES[following][0],
        },
    )


def _detail(value: StageValue, *, is_searched: bool) -> str:
    match value:
        case Boundary(is_answered=True):
            return "answered"
        case Boundary() if is_searched:
            return "not known"
        case Boundary(segments=segments):
            return "uncertain" if segments else "searching for evidence"
        case Retrieval(evidence=()):
            return "nothing found"
        case Retrieval(evidence=evidence):
            nearest = min(piece.distance for piece in evidence)
            pieces = "1 entry" if len(evidence) == 1 else f"{len(evidence)} entries"
            return f"{pieces}, the nearest at distance {nearest:.2f}"
        case Decision(reason=reason):
            return "passed" if reason is None else "refused"
        case _:
            return ""


def _event(name: str, html: str) -> str:
    """Return one event, with a `data:` line for each line of the HTML."""
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(html))
    return f"event: {name}\n{lines}\n"


@require_http_methods(["GET", "HEAD", "POST"])
@parts.agents_only
def ask(request: HttpRequest) -> HttpResponseBase:
    """Show the question box; store and decide a question that is sent."""
    if request.method == "POST":
        return _ask(request)
    parts.remember_base(request, request.GET.get("knowledge_base", ""))
    box = parts.box_part(request)
    recent = parts.recent_part(request, box["knowledge_bases"])
    return render(request, "qa/ask.html", {**box, **recent})


@require_safe
@parts.agents_only
def help_page(request: HttpRequest) -> HttpResponseBase:
    """Explain the agent's pages."""
    return render(request, "qa/help.html")


@require_POST
@parts.agents_only
def stream(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Decide the user's stored question and send its stages and its answer."""
    answer = parts.find_own_answer(request, answer_id)
    again = request.GET.get("again") == "1"
    return event_response(events(request, answer, again=again))


@require_POST
@parts.agents_only
def retry(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Decide the user's stored question, which failed or was never begun."""
    answer = parts.find_own_answer(request, answer_id)
    if is_live(request):
        return _working(request, answer, again=True)
    if answer.outcome in (Answer.Outcome.PENDING, Answer.Outcome.FAILED):
        follow(answer)
    return redirect("answer", answer.pk)


def _ask(request: HttpRequest) -> HttpResponseBase:
    user = caller(request)
    text = request.POST.get("question", "")
    wait = seconds_to_wait("ask", f"user {user.pk}")
    if wait is not None:
        message = f"Too many questions in a short time. Ask again in {wait:.0f} s."
        return _rejected(request, text, message, status=429)
    slug = request.POST.get("knowledge_base", "")
    follows = request.POST.get("follows", "")
    conversation = None
    if follows:
        try:
            conversation = conversation_before(_answer_id(follows), asker=user)
        except NescioError as error:
            return _rejected(request, text, str(error), status=error.status)
        slug = conversation.knowledge_base
    as_it_stands = request.POST.get("as_it_stands") == "1"
    knowledge_base = KnowledgeBase.objects.filter(slug=slug).first() if slug else None
    if slug and knowledge_base is None:
        message = f"There is no knowledge base “{slug}”. Choose one from the list."
        return _rejected(request, text, message, status=400)
    parts.remember_base(request, slug)
    try:
        answer = asking.keep_question(
            text,
            asker=user,
            knowledge_base=knowledge_base,
            refusal_language=preferences_of(user).language,
            channel=Answer.Channel.PAGE,
            earlier=conversation.questions if conversation and not as_it_stands else (),
            asked_back=conversation.asked_back if conversation else False,
            conversation=conversation.id if conversation else None,
        )
    except NescioError as error:
        return _rejected(
            request, text, str(error), status=error.status, follows=follows
        )
    if is_live(request):
        return _working(request, answer)
    follow(answer)
    response = redirect("answer", answer.pk)
    response.status_code = 303
    return response


def _answer_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidQuestionError(
            f"follows is “{text[:40]}”: send the id of an answer, or ask a new question."
        ) from None


def _rejected(
    request: HttpRequest, text: str, message: str, *, status: int, follows: str = ""
) -> HttpResponse:
    context = parts.box_part(request, question=text, error=message)
    context["follows"] = follows
    if not is_live(request):
        return render(request, "qa/ask.html", context, status=status)
    response = render(request, "qa/_box.html", context, status=status)
    response["HX-Retarget"] = "#ask"
    response["HX-Reswap"] = "outerHTML"
    return response


def _working(
    request: HttpRequest, answer: Answer, *, again: bool = False
) -> HttpResponse:
    response = render(request, "qa/_working.html", {"answer": answer, "again": again})
    response["HX-Push-Url"] = reverse("answer", args=[answer.pk])
    return response
