import json
from pathlib import Path
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from accounts.admin_parts import (
    ReadOnlyAdmin,
    StyledForm,
    field_errors,
    form_page,
    images,
    table,
    tell_of_job,
)
from accounts.base_admin import action, badge, column, holders_of
from accounts.ids import row_at
from accounts.roles import caller
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from qa.evaluation.models import EvaluationRun
from qa.evaluation.report.plots import PLOTS, plot_svg
from qa.evaluation.report.tables import tables
from qa.evaluation.runs import KIND, judged_of
from qa.evaluation.suites.options import find_policy
from qa.evaluation.suites.registry import suites
from qa.exceptions import EvaluationDataError


class EvaluationForm(StyledForm):
    suite = forms.ChoiceField()
    data_set = forms.CharField(
        required=False,
        help_text="A file or directory below NESCIO_EVALUATION_DATA; empty for all of it.",
    )
    limit = forms.IntegerField(
        required=False,
        min_value=1,
        help_text="A seeded sample of this many questions; empty for all.",
    )
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.in_use().order_by("name"),
        required=False,
        to_field_name="slug",
        help_text="For suites that ask an existing knowledge base.",
    )
    policy = forms.CharField(
        required=False, help_text="NAME:VERSION; empty for the active one."
    )
    shadow = forms.BooleanField(
        required=False,
        help_text="All gates measure and none refuses: one run serves every ablation.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [(name, name) for name in sorted(suites())]
        self.fields["suite"].choices = names  # type: ignore[attr-defined]  # a ChoiceField

    def clean_data_set(self) -> str:
        """Refuse a path outside the data directory, after resolving links."""
        named: str = self.cleaned_data["data_set"].strip()
        if not settings.EVALUATION_DATA:
            if named:
                raise forms.ValidationError(
                    "NESCIO_EVALUATION_DATA is not set, so no file can be read."
                )
            return ""
        root = Path(settings.EVALUATION_DATA).resolve()
        path = (root / named).resolve()
        if not path.is_relative_to(root) or not path.exists():
            raise forms.ValidationError(f"There is no {named!r} below {root}.")
        return str(path)

    def clean_policy(self) -> str:
        named: str = self.cleaned_data["policy"].strip()
        if named:
            with field_errors():
                find_policy(named)
        return named

    def parameters(self) -> dict[str, object]:
        chosen = dict(self.cleaned_data)
        chosen["data"] = chosen.pop("data_set")
        base = chosen["knowledge_base"]
        given = {**chosen, "knowledge_base": base.slug if base else ""}
        return {name: value for name, value in given.items() if value}


_KEY_FIGURES = ("false_answers", "false_refusals", "wrong_answers")


@admin.register(EvaluationRun)
class EvaluationRunAdmin(ReadOnlyAdmin):
    when_empty = "Runs of evaluation suites are listed here with their figures."
    list_display: ClassVar = [
        "suite", "shown_state", "progress", "key_figures", "knowledge_base", "policy",
        "started_by", "started_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["suite", "state", "knowledge_base"]
    list_select_related: ClassVar = ["knowledge_base", "policy", "started_by"]
    search_fields: ClassVar = ["suite"]
    date_hierarchy = "started_at"
    actions_list: ClassVar = ["start"]
    has_start_permission = holders_of("qa.add_policy", "qa.change_policy")
    has_view_permission = holders_of("qa.view_policy")
    shown_state = badge("state", {"running": "warning", "finished": "success"})
    fieldsets: ClassVar = [
        (None, {"fields": ["suite", "state", "progress", "protocol"]}),
        ("Report", {"fields": ["figures", "notes"]}),
        ("Curves", {"fields": ["try_thresholds", "curves"]}),
        ("Record", {"fields": [
            "knowledge_base", "policy", "asked_with", "embedder",
            "language_model", "retrieval", "started_by", "started_at",
            "finished_at",
        ]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[EvaluationRun]:
        rows: QuerySet[EvaluationRun] = super().get_queryset(request)
        return rows.annotate(results_count=Count("results"))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.curve)
        name = "qa_evaluationrun_curve"
        urls: list[URLPattern] = super().get_urls()
        return [path("<int:pk>/curves/<slug:name>.svg", view, name=name), *urls]

    @action(description="Start a run", permissions=["start"])
    def start(self, request: HttpRequest) -> HttpResponse:
        form = EvaluationForm(request.POST or None)
        if not form.is_valid():
            template, title = "admin/qa/evaluation/start.html", "Start a run"
            form_id = "start-evaluation"
            return form_page(self, request, form, title, template, form_id=form_id)
        parameters = form.parameters()
        job = enqueue(
            KIND,
            parameters,
            owner=caller(request),
            idempotency_key=f"{KIND} {json.dumps(parameters, sort_keys=True)}"[:200],
        )
        said = 'The questions are being asked; <a href="{}">the job</a> shows how far it is.'
        return tell_of_job(self, request, said, job.pk)

    def curve(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = row_at(EvaluationRun.objects.select_related("policy"), pk=pk)
        if name not in PLOTS:
            raise Http404(f"There is no curve {name!r}.")
        rows = judged_of(run)
        policy = run.policy.as_value() if run.policy else None
        try:
            drawn = plot_svg(name, rows, policy)
        except EvaluationDataError as error:
            raise Http404(str(error)) from error
        return HttpResponse(drawn, content_type="image/svg+xml")

    @admin.display(description="progress")
    def progress(self, run: EvaluationRun) -> str:
        return f"{getattr(run, 'results_count', 0):,} of {run.total:,}"

    @admin.display(description="key figures")
    def key_figures(self, run: EvaluationRun) -> str:
        rates: dict[str, Any] = run.report.get("rates", {})
        shown = [
            f"{name.replace('_', ' ')} {rates[name]['rate']:.1%}"
            for name in _KEY_FIGURES
            if rates.get(name, {}).get("rate") is not None
        ]
        return ", ".join(shown)

    @admin.display(description="figures")
    def figures(self, run: EvaluationRun) -> SafeString | str:
        if not run.report:
            return "Available once the run is finished."
        parts = (
            (part.title, table(part.columns, part.rows)) for part in tables(run.report)
        )
        return format_html_join("", "<h3>{}</h3>{}", parts)

    notes = column("notes", lambda run: "\n".join(run.report.get("notes", ())))

    @admin.display(description="thresholds")
    def try_thresholds(self, run: EvaluationRun) -> SafeString | str:
        if run.state != EvaluationRun.State.FINISHED or run.policy_id is None:
            return "Available once a run under a policy is finished."
        page = reverse("admin:qa_policy_calibrate", args=[run.knowledge_base_id])
        return format_html(
            '<a href="{}?run={}">Try thresholds on this run</a>', page, run.pk
        )

    @admin.display(description="curves")
    def curves(self, run: EvaluationRun) -> SafeString | str:
        if run.state != EvaluationRun.State.FINISHED or run.policy_id is None:
            return "Available once a run under a policy is finished."
        address = "admin:qa_evaluationrun_curve"
        return images(
            (reverse(address, args=[run.pk, name]), name.replace("_", " "))
            for name in PLOTS
        )

    @admin.display(description="parameters")
    def asked_with(self, run: EvaluationRun) -> SafeString:
        return table(
            ("parameter", "value"), [(k, str(v)) for k, v in run.parameters.items()]
        )
