"""Sending a refusal to an expert, and reading what came back."""

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.exceptions import NescioError
from qa.services import escalations

from .access import agents_only, find_answer, is_live, user_of
from .parts import escalation_part


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
