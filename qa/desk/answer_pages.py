"""Pages of past answers with votes and escalations, the user's history, and notices."""

from uuid import UUID

from django import forms
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.roles import Role, caller, has_role, is_live
from qa.answers.models import Answer
from qa.gaps.escalation_models import Notice
from qa.gaps.escalations import escalate as send_to_experts
from qa.gaps.escalations import mark_read
from qa.gaps.notices import DOUBTED_QUERY, mark_answer_read, shown_answer
from qa.gaps.notices import mark_read as mark_notices_read
from qa.votes.services import choose_entry
from qa.votes.services import vote as set_vote

from . import parts

PAGE_SIZE = 25


class HistoryForm(forms.Form):
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
@parts.agents_only
def answer(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Show a past answer as it was given, and how its evidence has changed since."""
    found = parts.find_answer(request, answer_id)
    shown = parts.answer_part(request, found.pk)
    may_be_replied = found.outcome == Answer.Outcome.REFUSED or shown["escalation"]
    if may_be_replied:
        mark_read(found, by=caller(request))
    if may_be_replied or found.channel == Answer.Channel.REPEAT:
        mark_answer_read(found, by=caller(request))  # notices link to it
    question = found.question if found.asker_id == request.user.pk else ""
    context = {
        **parts.box_part(request, question=question, base=found.knowledge_base),
        **shown,
    }
    return render(request, "qa/answer.html", context)


@require_safe
@parts.agents_only
def answers(request: HttpRequest) -> HttpResponseBase:
    rows = parts.past_answers(caller(request))
    form = HistoryForm(request.GET)
    if form.is_valid():
        if words := form.cleaned_data["q"]:
            said = Q(question__icontains=words) | Q(typed__icontains=words)
            rows = rows.filter(said)
        if outcome := form.cleaned_data["outcome"]:
            rows = rows.filter(outcome=outcome)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "qa/answers.html", {"form": form, "page": page})


_THUMBS = {"up": True, "down": False, "none": None}


@require_POST
@parts.agents_only
def vote(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Set or remove the user's vote; return the vote panel."""
    answer = parts.find_answer(request, answer_id)
    thumb = request.POST.get("vote", "")
    if thumb not in _THUMBS:
        return HttpResponse(
            f"vote is “{thumb[:20]}”: send up, down or none", status=400
        )
    entry = request.POST.get("answering_entry", "")
    entry_id = number_in(entry)
    if entry and entry_id is None:
        return HttpResponse(
            f"answering_entry is “{entry[:20]}”: send an id", status=400
        )
    error = ""
    try:
        set_vote(
            answer.pk,
            user=caller(request),
            is_up=_THUMBS[thumb],
            reasons=request.POST.getlist("reasons"),
            comment=request.POST.get("comment", ""),
            expected_answer=request.POST.get("expected_answer", ""),
            answering_entry_id=entry_id,
        )
    except NescioError as refused:
        error = str(refused)
    if not is_live(request):
        return redirect(reverse("answer", args=[answer.pk]) + "#vote")
    context = {**parts.vote_part(request, answer), "error": error, "said": not error}
    status = 422 if error else 200
    return render(request, "qa/_vote.html", context, status=status)


@require_POST
@parts.agents_only
def choose(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Store which entry beside a refusal answers it, or none; return both panels."""
    answer = parts.find_answer(request, answer_id)
    chosen = request.POST.get("entry", "")
    entry_id = number_in(chosen)
    error = ""
    if chosen and entry_id is None:
        return HttpResponse(f"entry is “{chosen[:20]}”: send an id", status=400)
    try:
        choose_entry(answer.pk, user=caller(request), entry_id=entry_id)
    except NescioError as refused:
        error = str(refused)
    if not is_live(request):
        return redirect(reverse("answer", args=[answer.pk]) + "#near")
    context = {**parts.answer_part(request, answer.pk), "error": error}
    status = 422 if error else 200
    return render(request, "qa/_choice.html", context, status=status)


@require_POST
@parts.agents_only
def escalate(request: HttpRequest, answer_id: UUID) -> HttpResponseBase:
    """Send the user's own question to the experts; return the escalation panel."""
    answer = parts.find_answer(request, answer_id)
    note, error = request.POST.get("note", ""), ""
    try:
        send_to_experts(answer.pk, user=caller(request), note=note)
    except NescioError as refused:
        error = str(refused)
    if not is_live(request) and not error:
        return redirect(reverse("answer", args=[answer.pk]) + "#escalation")
    context = {
        **parts.escalation_part(request, answer),
        "error": error,
        "note": note,
        "said": not error,
    }
    status = 422 if error else 200
    return render(request, "qa/_escalation.html", context, status=status)


@require_safe
@parts.agents_only
def notices(request: HttpRequest) -> HttpResponseBase:
    own = Notice.objects.of(request.user)
    rows = own.select_related("answer", "entry", "escalation", "repeat__after")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [(notice, shown_answer(notice)) for notice in page],
        "has_unread": own.unread().exists(),
        "doubted_query": DOUBTED_QUERY,
    }
    return render(request, "qa/notices.html", context)


@require_safe
@never_cache
def unread(request: HttpRequest) -> HttpResponseBase:
    """Return the number of unread notices, polled by every page: no login redirect."""
    if not has_role(request.user, Role.AGENT):
        return HttpResponse(status=403)
    count = Notice.objects.of(request.user).unread().count()
    return render(request, "qa/_unread.html", {"unread": count})


@require_POST
@parts.agents_only
def read_all(request: HttpRequest) -> HttpResponseBase:
    mark_notices_read(by=caller(request))
    return redirect("notices")
