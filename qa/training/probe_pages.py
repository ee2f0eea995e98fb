"""Where a probe is trained, uploaded and downloaded in the admin."""

import io
import json
import zipfile
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.decorators import action

from accounts.admin_parts import ReadOnlyAdmin, StyledForm, form_page, tell_of_job
from accounts.base_admin import holders_of
from accounts.exceptions import NescioError
from accounts.roles import caller
from jobs.services import enqueue
from probes.cards import CARD, MAX_CARD_BYTES, MAX_WEIGHTS_BYTES, ProbeFiles, ProbeKind
from probes.models import Probe
from probes.services import register
from qa.evaluation.models import EvaluationRun
from qa.training.jobs import KIND

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
        required=False,
        help_text="Take runs that another language model answered, too.",
    )
    layer = forms.IntegerField(
        required=False,
        min_value=0,
        help_text="0-based block; empty for the middle one. A joint probe needs none.",
    )
    part = forms.ChoiceField(
        choices=(
            ("block", "the block's output"),
            ("ffn", "inside its feed-forward part"),
        ),
    )
    network = forms.ChoiceField(
        required=False,
        choices=(
            ("", "as its kind is by default"),
            ("lstm", "LSTM"),
            ("linear", "linear"),
            ("mlp", "one hidden layer"),
        ),
    )
    folds = forms.IntegerField(initial=5, min_value=2, max_value=20)
    seed = forms.IntegerField(initial=0, min_value=0)
    note = forms.CharField(required=False, max_length=300)
    promote = forms.BooleanField(
        required=False,
        help_text="Activate the probe at once, whatever its quality.",
    )

    def parameters(self) -> dict[str, object]:
        chosen = dict(self.cleaned_data)
        chosen["runs"] = sorted(run.pk for run in chosen["runs"])
        said = {n: v for n, v in chosen.items() if v is not None and v is not False}
        return {name: value for name, value in said.items() if value != ""}


class UploadForm(StyledForm):
    card = forms.FileField(help_text="probe.json, as it was exported.")
    weights = forms.FileField(
        help_text="probe.safetensors, or weights.json of a joint probe.",
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
                f"It has {file.size:,} bytes and may have {most:,}."
            )
        content: bytes = file.read()
        return content


# What who steers probes may do.
STEER = ("probes.add_probe", "probes.change_probe")


class ProbePages(ReadOnlyAdmin):
    has_steer_permission = holders_of(*STEER)

    @action(description="Download its files", permissions=["view"])  # type: ignore[untyped-decorator]  # unfold ships no types
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

    @action(description="Train a probe", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    def train(self, request: HttpRequest) -> HttpResponse:
        form = TrainingForm(request.POST or None)
        if not form.is_valid():
            intro = (
                "Answers are read and probes are fitted in the background. A training "
                "that is broken off goes on from what was read."
            )
            return form_page(self, request, form, "Train a probe", intro=intro)
        parameters = form.parameters()
        key = f"{KIND} {json.dumps(parameters, sort_keys=True)}"[:200]
        job = enqueue(KIND, parameters, owner=caller(request), idempotency_key=key)
        said = (
            'The probe is being trained; <a href="{}">the job</a> shows the progress '
            "and the result."
        )
        return tell_of_job(self, request, said, job.pk)

    @action(description="Upload a probe", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
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
