"""The playground: a question tried under one or two policy versions, never stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.exceptions import NescioError, ThrottledError
from accounts.ids import number_in, row_at
from accounts.people import by_name, find_person
from accounts.roles import Role, caller, has_role_in, has_role_somewhere, is_live
from accounts.throttles import seconds_to_wait
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer
from qa.answers.presentation import thresholds_from
from qa.answers.trials import Candidate, Trial, askers_seen_by, try_question
from qa.answers.waterfall import (
    SignalLine,
    StageTimeLine,
    Step,
    recorded_signals,
    stage_times,
    total_time,
    waterfall,
)
from qa.calibration.versions import policy_rows
from qa.calibration.wording import Row
from qa.evaluation.models import SavedCase
from qa.evaluation.saved_cases import save_case
from qa.pipeline.gates import THRESHOLDED, Gate, Reason
from qa.pipeline.policy import DECLARED
from qa.policies.models import Policy
from qa.policies.services import active_policy, tried_version
from qa.policies.wording import REASONS, ReasonWords

from . import parts

_VERSIONS = 50  # newest ones that can be chosen
_OFFERED = 200  # askers in the list of suggestions
# The main thresholds, in the order of the gates.
THRESHOLDS = ("verbatim_distance", *(row.threshold for row in THRESHOLDED.values()))
_FATES: Mapping[str, str] = {
    "cited": "Cited",
    "read": "Read, not used",
    "near": "Near miss",
    "kept": "Kept",
    "left out": "Left out",
}


def _threshold(name: str) -> forms.FloatField:
    declared = DECLARED[name]
    low, high = declared.limits or (None, None)
    return forms.FloatField(
        label=declared.label, required=False, min_value=low, max_value=high
    )


class PlaygroundForm(forms.Form):
    """The question to try, and how; an empty threshold is the version's own."""

    question = forms.CharField(required=False, strip=False)
    knowledge_base = forms.SlugField()
    policy = forms.ModelChoiceField(Policy.objects.none(), required=False)
    other = forms.ModelChoiceField(Policy.objects.none(), required=False)
    asker = forms.CharField(required=False, max_length=150)
    as_of = forms.DateTimeField(label="as of", required=False)
    gates_only = forms.BooleanField(required=False)

    def __init__(
        self, data: Any, *, reader: User, versions: Sequence[Policy], goes_back: bool
    ) -> None:
        super().__init__(data)
        self._reader, self._active = reader, versions[0]
        self._goes_back = goes_back
        shown = Policy.objects.filter(pk__in=[each.pk for each in versions])
        for name in ("policy", "other"):
            self._field(name).queryset = shown.select_related("knowledge_base")
        self.fields |= {name: _threshold(name) for name in THRESHOLDS}

    def _field(self, name: str) -> Any:
        return self.fields[name]

    def clean_asker(self) -> User:
        name = self.cleaned_data["asker"].strip()
        if name in ("", self._reader.get_username()):
            return self._reader
        found = find_person(name, among=askers_seen_by(self._reader))
        if found is None:
            # The same message for an unknown name and for a user who sees more.
            raise forms.ValidationError(
                f"You can't ask as “{name}”: choose an active user who sees no more "
                "than you do, or leave it empty to ask as yourself."
            )
        return found

    def clean_as_of(self) -> datetime | None:
        at: datetime | None = self.cleaned_data["as_of"]
        if at and not self._goes_back:
            raise forms.ValidationError(
                "Knowledge as of a moment is for curators, as it includes entries "
                "retired since: leave it empty."
            )
        return at

    def sides(self) -> list[Policy]:
        """Return the version with the form's thresholds, and the one to compare."""
        chosen = self.cleaned_data
        given = {name: chosen[name] for name in THRESHOLDS}
        changes = {name: value for name, value in given.items() if value is not None}
        first = tried_version(chosen["policy"] or self._active, **changes)
        other = chosen["other"]
        return [first, tried_version(other)] if other else [first]


@dataclass(frozen=True, slots=True)
class TriedSide:
    """One version's result as the page shows it; `differing` names waterfall steps."""

    name: str
    answer: Answer
    candidates: tuple[tuple[Candidate, str], ...]
    waterfall: tuple[Step, ...]
    recorded: tuple[SignalLine, ...]
    times: tuple[StageTimeLine, ...]
    total_time: str
    reason: ReasonWords | None
    thresholds_from: str
    reads: tuple[int, ...]

    @property
    def is_cut(self) -> bool:
        return self.answer.outcome == Answer.Outcome.PENDING


@require_http_methods(["GET", "HEAD", "POST"])
@parts.agents_only
def playground(request: HttpRequest) -> HttpResponseBase:
    """Show the form; try a question that is sent, and store nothing."""
    _require_expert(request)
    sent = request.POST if request.method == "POST" else request.GET
    context = _form_part(request, sent)
    if request.method != "POST" or not context["versions"]:
        return render(request, "qa/playground.html", context)
    form: PlaygroundForm = context["form"]
    if not form.is_valid():
        return _response(request, context, 400)
    try:
        context |= _tried(form, caller(request))
    except NescioError as error:
        return _response(request, context | {"error": str(error)}, error.status)
    return _response(request, context, 200)


class CaseForm(forms.Form):
    """A tried question, and its expected outcome."""

    question = forms.CharField(strip=False)
    expect = forms.ChoiceField(choices=SavedCase.Expect.choices)
    entries = forms.TypedMultipleChoiceField(coerce=int, required=False)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        chosen: Any = self.fields["entries"]
        chosen.choices = [
            (entry, entry)
            for entry in data.getlist("entries")
            if number_in(entry) is not None
        ]


@require_POST
@parts.agents_only
def save_tried(request: HttpRequest) -> HttpResponseBase:
    """Save a question as a test case, with its expected outcome."""
    _require_expert(request)
    context = _form_part(request, request.POST)
    if not context["versions"]:
        return render(request, "qa/playground.html", context)
    form, asked = CaseForm(request.POST), context["form"]
    if not (form.is_valid() and asked.is_valid()):
        return _response(request, context | {"case_form": form}, 400, saves=True)
    chosen, user = form.cleaned_data, caller(request)
    expects_answer = chosen["expect"] == SavedCase.Expect.ANSWERED
    try:
        saved = save_case(
            chosen["question"],
            knowledge_base=context["base"],
            expects_answer=expects_answer,
            entries=chosen["entries"] if expects_answer else (),
            asker=asked.cleaned_data["asker"],
            by=user,
        )
    except NescioError as error:
        context["error"] = str(error)
        return _response(request, context, error.status, saves=True)
    return _response(request, context | {"saved": saved}, 200, saves=True)


def _require_expert(request: HttpRequest) -> None:
    if not has_role_somewhere(request.user, Role.SME):
        msg = "The playground is for experts, curators and administrators."
        raise PermissionDenied(msg)


def _response(
    request: HttpRequest, context: dict[str, Any], status: int, *, saves: bool = False
) -> HttpResponse:
    if not is_live(request):
        return render(request, "qa/playground.html", context, status=status)
    part = "qa/_playground_saved.html" if saves else "qa/_playground_result.html"
    # HTMX shows responses with these error statuses only.
    shown = status if status in (200, 400, 429) else 422
    return render(request, part, context, status=shown)


def _form_part(request: HttpRequest, sent: Any) -> dict[str, Any]:
    user = caller(request)
    judged = KnowledgeBase.objects.in_use().of_role(user, Role.SME)
    bases = list(judged.order_by("name"))
    slug = sent.get("knowledge_base", "")
    base = (
        row_at(judged, slug=slug)
        if slug and "\0" not in slug
        else parts.base_to_begin(user, bases)
    )
    if base is None:
        return {"versions": [], "knowledge_bases": bases}
    active = active_policy(base)
    others = base.policies.exclude(pk=active.pk).order_by("-created_at", "-pk")
    versions = [active, *others[: _VERSIONS - 1]]
    goes_back = has_role_in(user, Role.CURATOR, base.pk)
    form = PlaygroundForm(sent, reader=user, versions=versions, goes_back=goes_back)
    chosen = next((v for v in versions if str(v.pk) == sent.get("policy")), active)
    return {
        "form": form,
        "base": base,
        "knowledge_bases": bases,
        "versions": versions,
        "chosen": chosen,
        "thresholds": [
            (form[name], getattr(chosen, name), _scale(name)) for name in THRESHOLDS
        ],
        "is_changed": any(sent.get(name) for name in THRESHOLDS),
        "goes_back": goes_back,
        "askers": by_name(askers_seen_by(user))[:_OFFERED],
    }


def _scale(name: str) -> float:
    limits = DECLARED[name].limits
    return limits[1] if limits else 1.0


def _tried(form: PlaygroundForm, user: User) -> dict[str, Any]:
    chosen = form.cleaned_data
    asker: User = chosen["asker"]
    trials = []
    for policy in form.sides():
        wait = seconds_to_wait("ask", f"user {user.pk}")
        if wait is not None:
            msg = f"Too many questions in a short time. Try again in {wait:.0f} s."
            raise ThrottledError(msg, wait)
        trials.append(
            try_question(
                chosen["question"],
                asker=asker,
                policy=policy,
                asks_model=not chosen["gates_only"],
                at=chosen["as_of"],
            )
        )
    sides = [_side(trial) for trial in trials]
    rows = _differences(sides) if len(sides) > 1 else ()
    return {
        "sides": sides,
        "asker": asker if asker != user else None,
        "as_of": chosen["as_of"],
        "differences": rows,
        "differing": {row.name for row in rows},
    }


def _side(trial: Trial) -> TriedSide:
    answer = trial.answer
    return TriedSide(
        name=str(answer.policy),
        answer=answer,
        candidates=tuple((each, _FATES[each.fate]) for each in trial.candidates),
        waterfall=waterfall(answer),
        recorded=recorded_signals(answer),
        times=stage_times(answer.milliseconds),
        total_time=total_time(answer.milliseconds),
        reason=REASONS[Reason(answer.shown_reason)] if answer.shown_reason else None,
        thresholds_from=thresholds_from(answer),
        reads=trial.reads,
    )


def _differences(sides: Sequence[TriedSide]) -> tuple[Row, ...]:
    """Return the rows in which two results, their gates or their versions differ."""
    rows = [
        Row("Result", tuple(_result(side) for side in sides)),
        Row("Text", tuple(side.answer.text for side in sides)),
        Row("Entries", tuple(_entries(side) for side in sides)),
    ]
    first, second = ({step.name: step for step in side.waterfall} for side in sides)
    rows += [
        Row(name, _compared(first.get(name), second.get(name)))
        for name in dict.fromkeys((*first, *second))
    ]
    rows += policy_rows([side.answer.policy for side in sides if side.answer.policy])
    return tuple(row for row in rows if len(set(row.cells)) > 1)


def _result(side: TriedSide) -> str:
    if side.is_cut:
        return "Reaches the language model"
    if side.reason:
        return f"Not answered: {side.reason.title}"
    by = {Gate.VERBATIM: ", word for word", Gate.ENTRY: ", by a verified entry"}
    return f"Answered{by.get(side.answer.gate, '')}"  # type: ignore[call-overload]  # a text equals its Gate


def _entries(side: TriedSide) -> str:
    used: dict[str, list[str]] = {}
    for each, fate in side.candidates:
        if each.fate not in ("left out", "kept"):
            used.setdefault(fate.lower(), []).append(str(each.evidence.entry_id))
    return "; ".join(f"{fate} {', '.join(of)}" for fate, of in used.items()) or "none"


def _compared(first: Step | None, second: Step | None) -> tuple[str, str]:
    """Describe how a step differs on the two sides; equal texts if it does not."""
    both = [_signals(step) for step in (first, second)]
    found = [
        [words for name, words in own.items() if other.get(name) != words]
        for own, other in (both, both[::-1])
    ]
    verdicts = [step.verdict if step else "Not reached" for step in (first, second)]
    one, two = (
        ". ".join(filter(None, (verdict, *signals)))
        for verdict, signals in zip(verdicts, found, strict=True)
    )
    return one, two


def _signals(step: Step | None) -> dict[str, str]:
    signals = step.signals if step else ()
    return {
        each.label: f"{each.label}: {each.value}{each.rule and f', {each.rule}'}"
        for each in signals
    }
