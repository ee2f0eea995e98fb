"""The part of the calibration page that says what a knowledge base's own questions chose."""

from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from kb.documents.models import KnowledgeBase
from qa.calibration.models import SelfCalibration, SelfCalibrationSettings

from .forms import author_of, chosen_of
from .self_calibration import last_of, set_settings, settings_of
from .self_calibration_jobs import enqueue_calibration
from .self_words import words_of


class SelfCalibrationForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    then = forms.ChoiceField(
        choices=[("", "save"), ("calibrate", "calibrate")],
        required=False,
        widget=forms.HiddenInput,
    )

    class Meta:
        model = SelfCalibrationSettings
        fields: ClassVar = [
            "wrong_share_target",
            "calibrates_itself",
            "uses_evaluations",
        ]


def own_context(
    knowledge_base: KnowledgeBase, form: SelfCalibrationForm | None = None
) -> dict[str, Any]:
    kept = last_of(knowledge_base)
    shown = form or SelfCalibrationForm(instance=settings_of(knowledge_base))
    return {
        "own": kept,
        "own_words": words_of(kept) if kept else None,
        # The buttons say what is to be done then.
        "own_fields": [shown[name] for name in SelfCalibrationForm.Meta.fields],
    }


def find_drawn(
    request: HttpRequest, knowledge_base: KnowledgeBase
) -> SelfCalibration | None:
    """Return the one whose curve is asked for, or the last; None where none has one."""
    rows = tuple(SelfCalibration.objects.filter(knowledge_base=knowledge_base))
    found = chosen_of(rows, request.GET.get("of", "")) or next(iter(rows), None)
    return found if found and found.curve else None


def follow(
    knowledge_base: KnowledgeBase, form: SelfCalibrationForm, request: HttpRequest
) -> str:
    """Do what a valid form asks for; return it in words."""
    wanted = dict(form.cleaned_data)
    then = wanted.pop("then")
    set_settings(knowledge_base, **wanted)
    if not then:
        return f"Kept for {knowledge_base}."
    job = enqueue_calibration(knowledge_base, by=author_of(request))
    return format_html(
        'It asks its own questions now; <a href="{}">the job</a> shows how far it is.',
        reverse("admin:jobs_job_change", args=[job.pk]),
    )
