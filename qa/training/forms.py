from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from probes.cards import (
    MAX_CARD_BYTES,
    MAX_WEIGHTS_BYTES,
    ProbeFiles,
    ProbeKind,
)
from qa.evaluation.models import EvaluationRun

_KINDS = (
    (ProbeKind.ABSTENTION.value, "abstention: from the answer's own tokens"),
    (ProbeKind.EARLY.value, "early: from the prompt, before any answer"),
    (ProbeKind.JOINT.value, "joint: from all signals together"),
)


class TrainingForm(forms.Form):
    """What is trained, on which runs."""

    kind = forms.ChoiceField(choices=_KINDS, widget=UnfoldAdminSelectWidget)
    runs = forms.ModelMultipleChoiceField(
        EvaluationRun.objects.filter(state=EvaluationRun.State.FINISHED),
        widget=UnfoldAdminSelectMultipleWidget,
        help_text="Finished evaluations whose answers are taken; run them in shadow, so "
        "that every question has a draft.",
    )
    any_model = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Take runs that another language model answered, too.",
    )
    layer = forms.IntegerField(
        required=False,
        min_value=0,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="0-based block; empty for the middle one. A joint probe needs none.",
    )
    part = forms.ChoiceField(
        choices=(
            ("block", "the block's output"),
            ("ffn", "inside its feed-forward part"),
        ),
        widget=UnfoldAdminSelectWidget,
    )
    network = forms.ChoiceField(
        required=False,
        choices=(
            ("", "as its kind is by default"),
            ("lstm", "LSTM"),
            ("linear", "linear"),
            ("mlp", "one hidden layer"),
        ),
        widget=UnfoldAdminSelectWidget,
    )
    folds = forms.IntegerField(
        initial=5, min_value=2, max_value=20, widget=UnfoldAdminIntegerFieldWidget
    )
    seed = forms.IntegerField(
        initial=0, min_value=0, widget=UnfoldAdminIntegerFieldWidget
    )
    note = forms.CharField(
        required=False, max_length=300, widget=UnfoldAdminTextInputWidget
    )
    promote = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Put the probe in force at once, whatever it is worth.",
    )

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the job, without those that say nothing."""
        chosen = dict(self.cleaned_data)
        chosen["runs"] = sorted(run.pk for run in chosen["runs"])
        said = {n: v for n, v in chosen.items() if v is not None and v is not False}
        return {name: value for name, value in said.items() if value != ""}


class UploadForm(forms.Form):
    """The two files of a probe."""

    card = forms.FileField(
        widget=UnfoldAdminFileFieldWidget, help_text="probe.json, as it was exported."
    )
    weights = forms.FileField(
        widget=UnfoldAdminFileFieldWidget,
        help_text="probe.safetensors, or weights.json of a joint probe.",
    )
    note = forms.CharField(
        required=False, max_length=300, widget=UnfoldAdminTextInputWidget
    )

    def clean_card(self) -> bytes:
        """Read no more than a card may have."""
        return self._read("card", MAX_CARD_BYTES)

    def clean_weights(self) -> bytes:
        """Read no more than weights may have."""
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
