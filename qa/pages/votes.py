"""Thumbs up and down, with what is wrong, on answers and refusals alike."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.exceptions import NescioError
from qa.services import votes

from .access import agents_only, find_answer, is_live, user_of
from .parts import vote_part

_THUMBS = {"up": True, "down": False, "none": None}


@require_POST
@agents_only
def vote(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Set or revoke the user's vote; the thumbs come back as they now stand."""
    answer = find_answer(request, answer_id)
    thumb = request.POST.get("vote", "")
    if thumb not in _THUMBS:
        return HttpResponse(
            f"vote is “{thumb[:20]}”: send up, down or none", status=400
        )
    error = ""
    try:
        votes.vote(
            answer.pk,
            user=user_of(request),
            is_up=_THUMBS[thumb],
            reasons=request.POST.getlist("reasons"),
            comment=request.POST.get("comment", ""),
            expected_answer=request.POST.get("expected_answer", ""),
        )
    except NescioError as refused:
        error = str(refused)
    if not is_live(request):
        return redirect(reverse("answer", args=[answer.pk]) + "#vote")
    context = {**vote_part(request, answer), "error": error, "said": not error}
    status = 422 if error else 200
    return render(request, "qa/_vote.html", context, status=status)
