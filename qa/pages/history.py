"""Past answers: one by its link, and the list of one's own."""

from uuid import UUID

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from qa.models import Answer
from qa.services.escalations import mark_read
from qa.services.notices import mark_read_of

from .access import agents_only, find_answer, user_of
from .parts import answer_part, box_part, past_answers

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
