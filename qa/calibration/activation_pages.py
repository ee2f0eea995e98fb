"""The confirmation page before activation: changed settings and test-case results."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html

from accounts.exceptions import NescioError
from accounts.roles import caller, is_live
from qa.evaluation.activation import (
    CaseState,
    CheckedCase,
    activate_checked,
    ask_cases,
    check_of,
    is_blocked,
    must_pass,
)
from qa.evaluation.models import SavedCase
from qa.pipeline.gates import Reason
from qa.policies.lacking import lacking
from qa.policies.models import Policy
from qa.policies.services import active_policy
from qa.policies.wording import REASONS

from .versions import policy_rows

_MAX_REASON = 1000


def activation(
    request: HttpRequest, policy: Policy, site: dict[str, Any]
) -> HttpResponse:
    """Show what activating a version would change; on POST, run the tests or activate.

    `site` is the context of the admin site.
    """
    if request.method in ("GET", "HEAD"):
        return _page(request, policy, site)
    if request.method != "POST":
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    if request.POST.get("then") == "ask":
        return _ask(request, policy)
    reason = request.POST.get("reason", "")
    try:
        activate_checked(policy, by=caller(request), reason=reason)
    except NescioError as error:
        messages.error(request, str(error))
        return _page(request, policy, site, reason=reason)
    text = f"{policy} now decides every question of {policy.knowledge_base}."
    messages.success(request, text)
    return redirect("admin:qa_policy_change", policy.pk)


def _ask(request: HttpRequest, policy: Policy) -> HttpResponse:
    address = reverse("admin:qa_policy_activate_this", args=[policy.pk])
    try:
        job = ask_cases(policy, by=caller(request))
    except NescioError as error:
        messages.error(request, str(error))
        return redirect(address)
    said = (
        'The test cases are being asked; <a href="{}">the job</a> shows how far it is.'
    )
    link = reverse("admin:jobs_job_change", args=[job.pk])
    messages.success(request, format_html(said, link))
    return redirect(address)


def _page(
    request: HttpRequest, policy: Policy, site: dict[str, Any], reason: str = ""
) -> HttpResponse:
    check, active = check_of(policy), active_policy(policy.knowledge_base)
    is_part = is_live(request)
    rows = policy_rows([active, policy]) if active != policy else ()
    visible = set(
        SavedCase.objects.visible_to(request.user)
        .filter(knowledge_base=policy.knowledge_base)
        .values_list("pk", flat=True)
    )
    shown = [each for each in check.cases if each.saved.pk in visible]
    hidden = [each for each in check.cases if each.saved.pk not in visible]
    context = {
        "title": f"Let {policy} decide every question of {policy.knowledge_base}?",
        "policy": policy,
        "active": active,
        "differences": [row for row in rows if row.differs],
        "check": check,
        "must_pass": must_pass(policy),
        "cases": sorted(map(_in_words, shown), key=lambda each: each["order"]),
        "hidden": len(hidden),
        "hidden_failed": sum(each.passes is False for each in hidden),
        "changed": sum(each.has_changed for each in check.cases),
        "is_asking": check.state is CaseState.RUNNING,
        # Only on first opening: test cases that can't be asked are not retried forever.
        "asks_itself": check.state is CaseState.UNASKED
        and not (policy.is_active or is_part),
        "lacking": lacking(policy),
        "is_blocked": is_blocked(policy, check),
        "reason": reason[:_MAX_REASON],
        "back": reverse("admin:qa_policy_change", args=[policy.pk]),
    }
    response = render(request, "admin/qa/policy/activate.html", site | context)
    if is_part and check.state in (CaseState.PASSED, CaseState.FAILED):
        response["HX-Refresh"] = "true"  # the form may now need a reason, or no longer
    return response


def _in_words(checked: CheckedCase) -> dict[str, Any]:
    case, result = checked.case, checked.result
    wanted = "Answered" if case.is_answerable else "Refused"
    if case.evidence:
        wanted += f" by entry {' or '.join(case.evidence)}"
    came = "Not asked"
    if result is not None:
        came = "Answered"
        if not result.is_answered:
            reason = result.reason
            known = reason in REASONS
            came = f"Refused: {REASONS[Reason(reason)].title if known else reason}"
        elif checked.passes is False and result.is_correct is False:
            came = "Answered, by other evidence or in other words"
    verdict = {True: "passes", False: "fails", None: "not asked"}
    return {
        "saved": checked.saved,
        "case": case,
        "wanted": wanted,
        "came": came,
        "answer": result.answer_id if result else None,
        "verdict": verdict[checked.passes],
        "tone": {True: "good", False: "bad", None: "plain"}[checked.passes],
        "before": verdict[checked.before] if checked.before is not None else "",
        "has_changed": checked.has_changed,
        # Failures first, and among those the regressions against the active version.
        "order": (checked.passes is not False, not checked.has_changed, case.question),
    }
