"""Admin pages to train, upload and download probes, rerankers and directions."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin_parts import (
    ReadOnlyAdmin,
    StyledForm,
    form_page,
    table,
    tell_of_job,
)
from accounts.base_admin import action, holders_of
from accounts.exceptions import NescioError
from accounts.ids import digest
from accounts.roles import caller
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from probes.cards import (
    CARD,
    MAX_CARD_BYTES,
    MAX_WEIGHTS_BYTES,
    Json,
    ProbeFiles,
    ProbeKind,
)
from probes.models import Probe
from probes.services import register
from qa.evaluation.models import EvaluationRun
from qa.exceptions import TrainingDataError
from qa.training.held_out import as_text
from qa.training.jobs import KIND
from qa.training.labelled_questions import question_of

_KINDS = (
    (ProbeKind.ABSTENTION.value, "abstention: from the answer's own tokens"),
    (ProbeKind.EARLY.value, "early: from the prompt, before any answer"),
    (ProbeKind.JOINT.value, "joint: from all signals together"),
)


class TrainingForm(StyledForm):
    kind = forms.ChoiceField(choices=_KINDS)
    runs = forms.ModelMultipleChoiceField(
        EvaluationRun.objects.filter(state=EvaluationRun.State.FINISHED),
        help_text="Finished evaluations whose answers are taken; run them in shadow, so "
        "that every question has a draft.",
    )
    any_model = forms.BooleanField(
        required=False, help_text="Also take runs that another language model answered."
    )
    layer = forms.IntegerField(
        required=False,
        min_value=0,
        help_text="0-based block; empty for the one at two thirds of the depth, or "
        "the middle one for an early probe. A joint probe needs none.",
    )
    part = forms.ChoiceField(
        choices=(
            ("block", "the block's output"),
            ("ffn", "inside its feed-forward part"),
        )
    )
    network = forms.ChoiceField(
        required=False,
        choices=(
            ("", "the default of its kind"),
            ("lstm", "LSTM"),
            ("linear", "linear"),
            ("mlp", "one hidden layer"),
        ),
    )
    folds = forms.IntegerField(initial=5, min_value=2, max_value=20)
    seed = forms.IntegerField(initial=0, min_value=0)
    note = forms.CharField(required=False, max_length=300)
    promote = forms.BooleanField(
        required=False, help_text="Activate the probe at once, whatever its quality."
    )

    def parameters(self) -> dict[str, object]:
        chosen = dict(self.cleaned_data)
        chosen["runs"] = sorted(run.pk for run in chosen["runs"])
        said = {n: v for n, v in chosen.items() if v is not None and v is not False}
        return {name: value for name, value in said.items() if value != ""}


class UploadForm(StyledForm):
    card = forms.FileField(help_text="probe.json, as it was exported.")
    weights = forms.FileField(
        help_text="probe.safetensors, or weights.json of a joint probe."
    )
    note = forms.CharField(required=False, max_length=300)

    def clean_card(self) -> bytes:
        return self._read("card", MAX_CARD_BYTES)

    def clean_weights(self) -> bytes:
        return self._read("weights", MAX_WEIGHTS_BYTES)

    def probe_files(self) -> ProbeFiles:
        chosen: dict[str, Any] = self.cleaned_data
        return ProbeFiles("the upload", chosen["card"], chosen["weights"])

    def _read(self, name: str, most: int) -> bytes:
        file = self.cleaned_data[name]
        if file.size > most:
            raise forms.ValidationError(
                f"It has {file.size:,} bytes; at most {most:,} are allowed."
            )
        content: bytes = file.read()
        return content


_METHOD_KINDS: Final = (
    (ProbeKind.BOUNDARY.value, "boundary: whether the model knows the answer (CBDR)"),
    (ProbeKind.RERANKER.value, "reranker: which evidence helps the model (CBDR)"),
    (ProbeKind.DIRECTIONS.value, "directions: honesty and confidence (CtrlA)"),
)
_MAX_BYTES: Final = 2 << 20


class MethodForm(StyledForm):
    kind = forms.ChoiceField(choices=_METHOD_KINDS)
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.in_use().order_by("name"),
        required=False,
        help_text="Boundary and reranker learn from its reviewed questions, with the "
        "evidence that reviewers marked; directions from its verified entries, as true "
        "statements, and the monitor's threshold from the reviewed questions.",
    )
    questions = forms.FileField(
        required=False,
        help_text='Labelled questions, one JSON object per line: {"question": "...", '
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
                f"It has {file.size:,} bytes; at most {_MAX_BYTES:,} are allowed. Give "
                "fewer questions, or use manage.py train boundary_probe FILE."
            )
        rows = []
        # Not `splitlines`: in JSON, U+2028 and the like may occur within a line.
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


# The permissions needed to train, upload and activate probes.
STEER = ("probes.add_probe", "probes.change_probe")


class ProbePages(ReadOnlyAdmin):
    has_steer_permission = holders_of(*STEER)

    @action(description="Download its files", permissions=["view"])
    def export(self, request: HttpRequest, object_id: str) -> HttpResponse:
        probe: Probe = self.found(request, object_id)
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(CARD, probe.files.card)
            name = ProbeKind(probe.kind).weights_file
            archive.writestr(name, probe.files.weights)
        file = f"{probe.kind}-{probe.fingerprint[:8]}.zip"
        response = HttpResponse(held.getvalue(), content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="{file}"'
        return response

    @action(description="Train a probe", permissions=["steer"])
    def train(self, request: HttpRequest) -> HttpResponse:
        intro = (
            "Answers are read and probes are fitted in the background. An "
            "interrupted training resumes from what was read."
        )
        form = TrainingForm(request.POST or None)
        return self._train(request, form, "Train a probe", intro)

    @action(description="Train for CBDR or CtrlA", permissions=["steer"])
    def train_method(self, request: HttpRequest) -> HttpResponse:
        intro = (
            "This decides when evidence is retrieved, in which order it is read, and "
            "how an answer is steered and monitored. It is trained in the background "
            "and kept as a candidate; nothing changes until you activate it."
        )
        form = MethodForm(request.POST or None, request.FILES or None)
        return self._train(request, form, "Train for CBDR or CtrlA", intro)

    def _train(
        self,
        request: HttpRequest,
        form: TrainingForm | MethodForm,
        title: str,
        intro: str,
    ) -> HttpResponse:
        if not form.is_valid():
            return form_page(self, request, form, title, intro=intro)
        parameters = form.parameters()
        key = f"{KIND} {digest(json.dumps(parameters, sort_keys=True))}"
        job = enqueue(KIND, parameters, owner=caller(request), idempotency_key=key)
        said = (
            'It is being trained; <a href="{}">the job</a> shows the progress and the '
            "result."
        )
        return tell_of_job(self, request, said, job.pk)

    @action(description="Upload a probe", permissions=["steer"])
    def upload(self, request: HttpRequest) -> HttpResponse:
        form = UploadForm(request.POST or None, request.FILES or None)
        if form.is_valid():
            try:
                probe = register(
                    form.probe_files(),
                    by=caller(request),
                    note=form.cleaned_data["note"],
                )
            except NescioError as error:
                form.add_error(None, str(error))
            else:
                message = f"{probe} is kept; it is {probe.state}."
                self.message_user(request, message, messages.SUCCESS)
                return redirect("admin:probes_probe_change", probe.pk)
        intro = (
            "A probe's card and its weights, as they are downloaded here or written by "
            "train probe. It is kept as a candidate."
        )
        return form_page(self, request, form, "Upload a probe", intro=intro)


# The metrics of kinds that do not predict whether an answer is right.
OWN_FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    ProbeKind.RERANKER: ("recall_before", "recall_after", "recall_difference"),
    ProbeKind.DIRECTIONS: ("sounding_auroc", "monitor_auroc", "min_token_confidence"),
}


def active_beside(probe: Probe) -> Probe | None:
    """Return the active probe that this one would replace."""
    rows = Probe.objects.light().active_for(probe.language_model)
    return rows.filter(kind=probe.kind).exclude(pk=probe.pk).first()


def own_figures(probe: Probe, active: Probe | None) -> SafeString:
    """Return a reranker's or directions' metrics beside those of the active ones."""
    probes = [("this one", probe)]
    if active:
        probes.append((f"active: {active}", active))
    names = OWN_FIGURES[probe.kind]
    rows = [
        (who, *(_figure(each.metrics.get(name)) for name in names))
        for who, each in probes
    ]
    heads = ("probe", *(name.replace("_", " ") for name in names))
    how = probe.metrics.get("measured", "")
    return format_html("<p>{}</p>{}", how, table(heads, rows))


def _figure(value: Json) -> str:
    return f"{value:.3f}" if isinstance(value, float) else as_text(value)
