"""The preview page for the wording of refusals, to try a text before saving it."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from accounts.admin_parts import StyledForm
from kb.documents.models import KnowledgeBase
from qa.pipeline.gates import Reason
from qa.policies.models import RefusalWording
from qa.policies.wording import REASONS, refusal_text

_EVERY = ("", "every reason without a wording of its own")


class WordingForm(StyledForm):
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.order_by("pk"), empty_label=None
    )
    language = forms.ChoiceField(choices=KnowledgeBase.Language.choices)
    reason = forms.ChoiceField(
        required=False,
        choices=[
            *((each.value, words.title) for each, words in REASONS.items()),
            _EVERY,
        ],
    )
    text = forms.CharField(
        required=False,
        max_length=1000,
        widget=forms.Textarea({"rows": 3}),
        help_text="If empty, the current wording is shown.",
    )


def preview(request: HttpRequest, site: dict[str, Any]) -> HttpResponse:
    """Show a refusal as its asker reads it; POST saves the tried text.

    `site` is the context of an admin page whose user may view wordings.
    """
    base = KnowledgeBase.objects.order_by("pk").first()
    initial = {
        "knowledge_base": base.pk if base else "",
        "language": base.language if base else "en",
        "reason": Reason.NOTHING_KNOWN.value,
        "text": "",
    }
    sent = request.POST if request.method == "POST" else request.GET
    form = WordingForm({**initial, **sent.dict()})
    may_save = request.user.has_perms(["qa.add_refusalwording", "qa.change_refusalwording"])  # fmt: skip
    if request.method == "POST":
        if not may_save:
            raise PermissionDenied
        if form.is_valid() and form.cleaned_data["text"].strip():
            return _save(request, form.cleaned_data)
        messages.error(request, "Type the wording first; nothing is saved.")
    shown = _shown(form.cleaned_data) if form.is_valid() else {}
    context = {"title": "Preview of refusals", "form": form, "may_save": may_save}
    template = "admin/qa/policy/wording_preview.html"
    return render(request, template, site | context | shown)


def _save(request: HttpRequest, chosen: dict[str, Any]) -> HttpResponse:
    named = {name: chosen[name] for name in ("knowledge_base", "language", "reason")}
    row, _ = RefusalWording.objects.update_or_create(
        **named, defaults={"text": chosen["text"].strip()}
    )
    messages.success(request, "The wording is saved and is used from now on.")
    query = f"knowledge_base={row.knowledge_base_id}&language={row.language}&reason={row.reason}"  # fmt: skip
    return redirect(f"{reverse('admin:qa_refusalwording_preview')}?{query}")


def _shown(chosen: dict[str, Any]) -> dict[str, Any]:
    language, tried = chosen["language"], chosen["text"].strip()
    rows = RefusalWording.objects.filter(
        knowledge_base=chosen["knowledge_base"], language=language
    )
    own = {(row.language, row.reason): row.text for row in rows}
    used = own | ({(language, chosen["reason"]): tried} if tried else {})
    lines = [
        {
            "words": words,
            "text": refusal_text(reason, language, overrides=used),
            "source": _source(reason, language, own, used),
        }
        for reason, words in REASONS.items()
    ]
    first = next(
        (
            line
            for reason, line in zip(REASONS, lines, strict=True)
            if chosen["reason"] in (reason, "")
            and (chosen["reason"] or (language, reason.value) not in own)
        ),
        lines[0],
    )
    values = {**chosen, "knowledge_base": chosen["knowledge_base"].pk}
    return {"lines": lines, "first": first, "is_tried": bool(tried), "tried": values}


def _source(
    reason: Reason,
    language: str,
    own: dict[tuple[str, str], str],
    used: dict[tuple[str, str], str],
) -> str:
    for key, name in (
        ((language, reason.value), "own wording"),
        ((language, ""), "own wording for every reason"),
    ):
        if key in used:
            return name if used[key] == own.get(key) else "tried"
    return "built in"
