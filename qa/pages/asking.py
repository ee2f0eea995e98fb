"""Asking: the box, the stages while it works, and the same by a plain form."""

from uuid import UUID

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.exceptions import NescioError
from accounts.throttles import seconds_to_wait
from kb.models import KnowledgeBase
from qa.models import Answer
from qa.services import asking

from .access import agents_only, find_answer, is_live, user_of
from .live import events, follow
from .parts import box_part, recent_part


@require_http_methods(["GET", "HEAD", "POST"])
@agents_only
def ask(request: HttpRequest) -> HttpResponseBase:
    """Show the question box; keep and decide what is sent."""
    if request.method == "POST":
        return _ask(request)
    context = {**box_part(request), **recent_part(user_of(request))}
    return render(request, "qa/ask.html", context)


@require_GET
@agents_only
def stream(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Decide a kept question and send its stages; a decided one is sent whole.

    So a connection that broke and comes back loses nothing.
    """
    answer = find_answer(request, answer_id)
    again = request.GET.get("again") == "1"
    response = StreamingHttpResponse(
        events(request, answer, again=again), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


@require_POST
@agents_only
def retry(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Decide a kept question again whose first try failed or never ended."""
    answer = find_answer(request, answer_id)
    if is_live(request):
        return _working(request, answer, again=True)
    if answer.outcome in (Answer.Outcome.PENDING, Answer.Outcome.FAILED):
        follow(answer)
    return redirect("answer", answer.pk)


def _ask(request: HttpRequest) -> HttpResponseBase:
    user = user_of(request)
    text = request.POST.get("question", "")
    wait = seconds_to_wait("ask", f"user {user.pk}")
    if wait is not None:
        message = f"Too many questions in a short time. Ask again in {wait:.0f} s."
        return _refuse_to_keep(request, text, message, status=429)
    slug = request.POST.get("knowledge_base", "")
    knowledge_base = KnowledgeBase.objects.filter(slug=slug).first() if slug else None
    if slug and knowledge_base is None:
        message = f"There is no knowledge base “{slug}”. Choose one of the list."
        return _refuse_to_keep(request, text, message, status=400)
    try:
        answer = asking.keep_question(
            text,
            asker=user,
            knowledge_base=knowledge_base,
            language=None,
            channel=Answer.Channel.PAGE,
        )
    except NescioError as error:
        return _refuse_to_keep(request, text, str(error), status=error.status)
    if is_live(request):
        return _working(request, answer)
    follow(answer)
    response = redirect("answer", answer.pk)
    response.status_code = 303
    return response


def _refuse_to_keep(
    request: HttpRequest, text: str, message: str, *, status: int
) -> HttpResponse:
    """Return the box with what was typed and what is wrong with it."""
    context = box_part(request, question=text, error=message)
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
