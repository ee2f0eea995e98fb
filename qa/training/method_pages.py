"""Where a boundary probe, a reranker and directions are trained in the admin."""

import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import action

from accounts.admin_parts import StyledForm, form_page, table, tell_of_job
from accounts.ids import digest
from accounts.roles import caller
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from probes.cards import Json, ProbeKind
from probes.models import Probe
from qa.exceptions import TrainingDataError
from qa.training.jobs import KIND

from .held_out import as_text
from .labelled_questions import question_of
from .probe_pages import ProbePages

_KINDS: Final = (
    (ProbeKind.BOUNDARY.value, "boundary: whether the model knows the answer (CBDR)"),
    (ProbeKind.RERANKER.value, "reranker: which evidence helps the model (CBDR)"),
    (ProbeKind.DIRECTIONS.value, "directions: honesty and confidence (CtrlA)"),
)
_MAX_BYTES: Final = 2 << 20


class MethodForm(StyledForm):
    kind = forms.ChoiceField(choices=_KINDS)
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.order_by("name"),
        required=False,
        help_text="Boundary and reranker learn from its reviewed questions, with the "
        "evidence that reviewers marked; directions from its verified entries, as true "
        "statements, and the monitor's threshold from the reviewed questions.",
    )
    questions = forms.FileField(
        required=False,
        help_text='Labelled questions, a JSON object a line: {"question": "...", '
        '"answers": ["..."], "notes": ["..."]}.',
    )
    seed = forms.IntegerField(initial=0, min_value=0)
    note = forms.CharField(required=False, max_length=300)

    def clean_questions(self) -> list[dict[str, Any]]:
        file = self.cleaned_data["questions"]
        if file is None:
            return []
        if file.size > _MAX_BYTES:
            raise forms.ValidationError(
                f"It has {file.size:,} bytes and may have {_MAX_BYTES:,}. Give fewer "
                "questions, or train by manage.py train boundary_probe FILE."
            )
        rows = []
        # Not `splitlines`: JSON leaves U+2028 and its like within a line.
        for number, line in enumerate(file.read().split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                question_of(row)
            except (ValueError, TrainingDataError) as error:
                raise forms.ValidationError(f"Line {number}: {error}") from error
            names = ("question", "answers", "answer", "notes", "group")
            rows.append({name: row[name] for name in names if name in row})
        return rows

    def clean(self) -> dict[str, Any]:
        chosen: dict[str, Any] = super().clean() or {}
        base, rows = chosen.get("knowledge_base"), chosen.get("questions")
        if chosen.get("kind") == ProbeKind.DIRECTIONS and base is None:
            self.add_error(
                "knowledge_base", "Directions need true statements: choose one."
            )
        elif base is None and not rows and "questions" not in self.errors:
            self.add_error(None, "Choose a knowledge base, upload questions, or both.")
        return chosen

    def parameters(self) -> dict[str, object]:
        chosen = self.cleaned_data
        base = chosen["knowledge_base"]
        said = {
            "kind": chosen["kind"],
            "knowledge_base": base.slug if base else "",
            "questions": chosen["questions"],
            "note": chosen["note"],
        }
        return {"seed": chosen["seed"]} | {k: v for k, v in said.items() if v}


class MethodPages(ProbePages):
    @action(description="Train for CBDR or CtrlA", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    def train_method(self, request: HttpRequest) -> HttpResponse:
        title = "Train for CBDR or CtrlA"
        form = MethodForm(request.POST or None, request.FILES or None)
        if not form.is_valid():
            intro = (
                "What decides when evidence is retrieved, in which order it is read, and "
                "how an answer is steered and monitored. It is trained in the background "
                "and kept as a candidate; nothing changes before you activate it."
            )
            return form_page(self, request, form, title, intro=intro)
        parameters = form.parameters()
        key = f"{KIND} {digest(json.dumps(parameters, sort_keys=True))}"
        job = enqueue(KIND, parameters, owner=caller(request), idempotency_key=key)
        said = (
            'It is being trained; <a href="{}">the job</a> shows the progress and the '
            "result."
        )
        return tell_of_job(self, request, said, job.pk)


# What is measured of those that predict no answer.
OWN_FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    ProbeKind.RERANKER: ("recall_before", "recall_after", "recall_difference"),
    ProbeKind.DIRECTIONS: ("sounding_auroc", "monitor_auroc", "min_token_confidence"),
}


def active_beside(probe: Probe) -> Probe | None:
    """Return the active probe that this one would replace."""
    rows = Probe.objects.light().active_for(probe.language_model)
    return rows.filter(kind=probe.kind).exclude(pk=probe.pk).first()


def own_figures(probe: Probe, active: Probe | None) -> SafeString:
    """Return what a reranker or directions are worth, beside the active ones."""
    probes = [("this one", probe)]
    if active:
        probes.append((f"active: {active}", active))
    names = OWN_FIGURES[probe.kind]
    rows = [
        (who, *(_figure(each.metrics.get(name)) for name in names))
        for who, each in probes
    ]
    heads = ("", *(name.replace("_", " ") for name in names))
    how = probe.metrics.get("measured", "")
    return format_html("<p>{}</p>{}", how, table(heads, rows))


def _figure(value: Json) -> str:
    return f"{value:.3f}" if isinstance(value, float) else as_text(value)
