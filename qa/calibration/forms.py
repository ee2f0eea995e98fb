"""Forms of the calibration pages: thresholds to try, and a promise to certify."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, QueryDict
from django.urls import reverse
from django.utils.html import format_html

from accounts.ids import row_at
from kb.documents.models import KnowledgeBase
from qa.calibration.models import SelfCalibration, SelfCalibrationSettings
from qa.calibration.self_calibration import last_of, set_settings, settings_of
from qa.calibration.self_calibration_jobs import enqueue_calibration
from qa.calibration.threshold_effects import Labelled, has_drifted, runs_of
from qa.calibration.wording import words_of
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.models import EvaluationRun
from qa.evaluation.runs import labelled_of
from qa.pipeline.gates import THRESHOLDED, Gate, switches
from qa.pipeline.policy import DECLARED
from qa.pipeline.policy import Policy as PolicyValue
from qa.policies.models import Policy, self_calibrated
from qa.policies.services import active_policy, has_verifier

# The thresholds that can be tried; below, the switches of their gates.
_SLIDERS = tuple(row.threshold for row in THRESHOLDED.values())
_OF_A_DRAFT = {
    row.threshold
    for row in THRESHOLDED.values()
    if row.gate in {Gate.SOFT_REFUSAL, Gate.ABSTENTION}
}
_SWITCHES = frozenset().union(*(switches(row.gate) for row in THRESHOLDED.values()))
# {form field: the policy switch that it negates}
_SHADOWS = {
    f"{name.split('_')[0]}_shadow": name for name in DECLARED if name in _SWITCHES
}


def _slider(field: str) -> forms.FloatField:
    declared = DECLARED[field]
    low, high = declared.limits or (None, None)
    return forms.FloatField(
        label=declared.label,
        help_text=declared.described,
        min_value=low,
        max_value=high,
        # Certified thresholds have more decimal places than a slider step.
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


def _shadow(switch: str) -> forms.BooleanField:
    return forms.BooleanField(
        label=f"{DECLARED[switch].label.capitalize()} in shadow",
        help_text="The gate measures but refuses nothing.",
        required=False,
    )


class ThresholdsForm(forms.Form):
    def __init__(self, data: Any, *, base: Policy) -> None:
        # If nothing has been tried yet, show the version's own thresholds.
        tried = data.copy() if "alpha" in data else None
        if tried is not None:
            for name in _SLIDERS:  # an old bookmark may lack newer thresholds
                tried.setdefault(name, getattr(base, name))
        super().__init__(tried, initial=_initial(base))
        self.fields |= {name: _slider(name) for name in _SLIDERS}
        self.fields |= {name: _shadow(switch) for name, switch in _SHADOWS.items()}
        # Evidence near enough to answer from must not count as unrelated.
        field = self.fields["alpha"]
        field.widget.attrs["max"] = field.max_value = base.horizon  # type: ignore[attr-defined]
        self.horizon = base.horizon
        for name in self.errors:
            self.fields[name].widget.attrs["aria-invalid"] = "true"

    @property
    def sliders(self) -> list[forms.BoundField]:
        return [self[name] for name in _SLIDERS]

    @property
    def entry_sliders(self) -> list[forms.BoundField]:
        """Sliders of the gates before the language model, which decide the most."""
        return [each for each in self.sliders if each.name not in _OF_A_DRAFT]

    @property
    def model_sliders(self) -> list[forms.BoundField]:
        return [each for each in self.sliders if each.name in _OF_A_DRAFT]

    @property
    def model_errors(self) -> bool:
        return not _OF_A_DRAFT.isdisjoint(self.errors)

    @property
    def switches(self) -> list[forms.BoundField]:
        return [self[name] for name in _SHADOWS]

    def clean_alpha(self) -> float:
        """Limit alpha to the horizon, beyond which everything is unrelated."""
        alpha: float = self.cleaned_data["alpha"]
        if alpha > self.horizon:
            raise forms.ValidationError(
                f"{alpha:g} is above this version's horizon {self.horizon:g}: evidence "
                "near enough to answer from would count as unrelated. Create a version "
                "with a wider horizon first."
            )
        return alpha

    def tried(self) -> dict[str, Any] | None:
        if not self.is_bound:
            values = dict(self.initial)
        elif self.is_valid():
            values = self.cleaned_data
        else:
            return None
        shadows = {name: not values[field] for field, name in _SHADOWS.items()}
        return {name: values[name] for name in _SLIDERS} | shadows


class PromiseForm(forms.Form):
    epsilon = forms.FloatField(
        label="Wrong answers, at most",
        help_text="Largest share of the shown answers that may be wrong: 0.05 is one "
        "in twenty. In the paper: epsilon.",
        min_value=0.001,
        max_value=0.5,
        initial=0.05,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    delta = forms.FloatField(
        label="Failure probability",
        help_text="Probability that the promise does not hold: 0.05 is 95 % certainty. "
        "In the paper: delta.",
        min_value=0.001,
        max_value=0.5,
        initial=0.05,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


def _initial(base: Policy) -> dict[str, Any]:
    numbers = {name: getattr(base, name) for name in _SLIDERS}
    switches = {name: not getattr(base, gate) for name, gate in _SHADOWS.items()}
    return numbers | switches


Row = TypeVar("Row", Policy, EvaluationRun, SelfCalibration)


@dataclass(frozen=True)
class Desk:
    knowledge_base: KnowledgeBase
    runs: tuple[EvaluationRun, ...]
    policies: tuple[Policy, ...]
    run: EvaluationRun | None
    base: Policy
    form: ThresholdsForm

    @cached_property
    def tried(self) -> PolicyValue | None:
        tried = self.form.tried()
        return None if tried is None else replace(self.base.as_value(), **tried)

    @cached_property
    def answers(self) -> tuple[LabelledAnswer, ...]:
        return tuple(labelled_of(self.run)) if self.run else ()

    @cached_property
    def labelled(self) -> Labelled | None:
        return Labelled(self.answers) if self.answers else None

    def changes(self) -> dict[str, Any] | None:
        """Return the changes to the base, with the models that measured the run."""
        changes = self.form.tried()
        if changes is not None and self.run:
            for name in ("embedder", "language_model", "retrieval", "probes"):
                changes[f"calibrated_{name}"] = getattr(self.run, name)
        return changes

    def query(self, **changes: object) -> str:
        chosen = {"run": self.run.pk if self.run else "", "base": self.base.pk}
        return urlencode(chosen | changes)


def read_desk(request: HttpRequest, pk: int) -> Desk:
    knowledge_base = row_at(KnowledgeBase.objects.all(), pk=pk)
    chosen: QueryDict = request.POST if request.method == "POST" else request.GET
    rows = knowledge_base.policies.annotate(
        has_drifted=has_drifted(), from_own_questions=self_calibrated()
    )
    rows = rows.select_related("certificate", "created_by")
    policies: tuple[Policy, ...] = tuple(rows.order_by("-created_at", "-pk"))
    if not policies:
        policies = (active_policy(knowledge_base),)
    runs = tuple(runs_of(knowledge_base))
    finished = (run for run in runs if run.state == EvaluationRun.State.FINISHED)
    newest = next(finished, None) or next(iter(runs), None)
    active = next((policy for policy in policies if policy.is_active), policies[0])
    base = chosen_of(policies, chosen.get("base", "")) or active
    return Desk(
        knowledge_base=knowledge_base,
        runs=runs,
        policies=policies,
        run=chosen_of(runs, chosen.get("run", "")) or newest,
        base=base,
        form=ThresholdsForm(chosen, base=base),
    )


def chosen_of(rows: tuple[Row, ...], asked: str) -> Row | None:
    if not asked:
        return None
    found = next((row for row in rows if str(row.pk) == asked), None)
    if found is None:
        raise Http404(f"There is no {asked[:20]!r} here.")
    return found


def author_of(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None


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
        "may_calibrate_itself": has_verifier(knowledge_base),
        # Without the field `then`, which the submit buttons set.
        "own_fields": [shown[name] for name in SelfCalibrationForm.Meta.fields],
    }


def find_drawn(
    request: HttpRequest, knowledge_base: KnowledgeBase
) -> SelfCalibration | None:
    """Return the requested self-calibration, or the last; None if it has no curve."""
    rows = tuple(SelfCalibration.objects.filter(knowledge_base=knowledge_base))
    found = chosen_of(rows, request.GET.get("of", "")) or next(iter(rows), None)
    return found if found and found.curve else None


def follow(
    knowledge_base: KnowledgeBase, form: SelfCalibrationForm, request: HttpRequest
) -> str:
    """Save a valid form, start a calibration if requested, and return the message."""
    wanted = dict(form.cleaned_data)
    then = wanted.pop("then")
    set_settings(knowledge_base, **wanted)
    if not then:
        return f"Saved for {knowledge_base}."
    job = enqueue_calibration(knowledge_base, by=author_of(request))
    return format_html(
        'The calibration has started; <a href="{}">the job</a> shows how far it is.',
        reverse("admin:jobs_job_change", args=[job.pk]),
    )
