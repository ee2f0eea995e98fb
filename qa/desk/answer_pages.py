"""Past answers: one by its link, and the list of one's own."""

from uuid import UUID

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import NescioError
from qa.answers.models import Answer
from qa.gaps import escalations
from qa.gaps.escalations import mark_read
from qa.gaps.notices import mark_read_of
from qa.votes import services as votes

from .parts import (
    agents_only,
    answer_part,
    box_part,
    escalation_part,
    find_answer,
    is_live,
    past_answers,
    user_of,
    vote_part,
)

PAGE_SIZE = 25


class HistoryForm(forms.Form):
    """Narrows the list of past questions."""

    q = forms.CharField(required=False, max_length=200)
    outcome = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All"),
            (Answer.Outcome.ANSWERED, "Answered"),
            (Answer.Outcome.REFUSED, "Not answered"),
            (Answer.Outcome.FAILED, "Not decided"),
        ],
    )


@require_safe
@agents_only
def answer(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Show a past answer as it was given, with what became of its evidence since."""
    found = find_answer(request, answer_id)
    if found.outcome == Answer.Outcome.REFUSED:
        mark_read(found, by=user_of(request))
    if (
        found.outcome == Answer.Outcome.REFUSED
        or found.channel == Answer.Channel.REPEAT
    ):
        mark_read_of(found, by=user_of(request))  # what notices lead to
    question = found.question if found.asker_id == request.user.pk else ""
    context = {**box_part(request, question=question), **answer_part(request, found.pk)}
    return render(request, "qa/answer.html", context)


@require_safe
@agents_only
def answers(request: HttpRequest) -> HttpResponseBase:
    """List the user's own questions, newest first."""
    rows = past_answers(user_of(request))
    form = HistoryForm(request.GET)
    if form.is_valid():
        if words := form.cleaned_data["q"]:
            rows = rows.filter(question__icontains=words)
        if outcome := form.cleaned_data["outcome"]:
            rows = rows.filter(outcome=outcome)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "qa/answers.html", {"form": form, "page": page})


# Thumbs up and down, with what is wrong, on answers and refusals alike.


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


# Sending a refusal to an expert, and reading what came back.


@require_POST
@agents_only
def escalate(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Send one's own refused question to the experts; its panel comes back."""
    answer = find_answer(request, answer_id)
    note, error = request.POST.get("note", ""), ""
    try:
        escalations.escalate(answer.pk, user=user_of(request), note=note)
    except NescioError as refused:
        error = str(refused)
    if not is_live(request) and not error:
        return redirect(reverse("answer", args=[answer.pk]) + "#escalation")
    context = {
        **escalation_part(request, answer),
        "error": error,
        "note": note,
        "said": not error,
    }
    status = 422 if error else 200
    return render(request, "qa/_escalation.html", context, status=status)
