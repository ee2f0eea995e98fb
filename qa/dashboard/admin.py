"""The dashboard: how much was asked, how it was decided, how fast and how well."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from accounts.admin_parts import StyledForm
from accounts.replica import reads_replica
from accounts.roles import Role, caller, has_role
from kb.documents.models import KnowledgeBase
from kb.tags.models import Tag
from qa.answers.models import Answer
from qa.answers.wording import time_in_words
from qa.dashboard.services import Dashboard, base_shown_to, read_dashboard
from qa.dashboard.traffic import Scope, make_scope
from qa.reviews.sample_plan import Estimate

from . import charts, tables

PERIODS = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year"))
_DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Tile:
    label: str
    value: str
    note: str


def _slug_field(rows: QuerySet[Any]) -> forms.ModelChoiceField:  # type: ignore[type-arg]  # not at run time
    return forms.ModelChoiceField(
        rows, to_field_name="slug", required=False, empty_label="all"
    )


class ScopeForm(StyledForm):
    days = forms.TypedChoiceField(
        label="Last",
        choices=PERIODS,
        coerce=int,
        required=False,
        empty_value=None,
        initial=_DEFAULT_DAYS,
    )
    knowledge_base = _slug_field(KnowledgeBase.objects.order_by("name"))
    tag = _slug_field(Tag.objects.all())

    def __init__(self, data: Any, *, reader: User) -> None:
        super().__init__(data)
        self._reader = reader
        bases: Any = self.fields["knowledge_base"]
        bases.queryset = bases.queryset.of_role(reader, Role.SME)
        if not has_role(reader, Role.SME):
            bases.empty_label = None

    def scope(self) -> Scope:
        """Return the chosen scope, or the default if the form is invalid."""
        chosen = dict(self.cleaned_data) if self.is_valid() else {}
        base = chosen.pop("knowledge_base", None)
        chosen["knowledge_base"] = base_shown_to(self._reader, base)
        return make_scope(chosen.pop("days", None) or _DEFAULT_DAYS, **chosen)


@reads_replica
def dashboard_page(request: HttpRequest) -> HttpResponse:
    if not request.user.has_perm("qa.view_answer"):
        raise PermissionDenied
    reader = caller(request)
    form = ScopeForm(request.GET or {"days": _DEFAULT_DAYS}, reader=reader)
    scope = form.scope()
    shown = read_dashboard(scope, reader=reader)
    context = {
        **admin.site.each_context(request),
        "opts": Answer._meta,
        "title": "Dashboard",
        "form": form,
        "shown": shown,
        "tiles": _tiles(shown),
        "charts": _charts(shown),
        "tables": _tables(shown),
    }
    return TemplateResponse(request, "admin/qa/answer/dashboard.html", context)


def _tiles(shown: Dashboard) -> list[Tile]:
    traffic, quality = shown.traffic, shown.quality
    questions = max(1, traffic.questions)
    latency = traffic.latency.get("")
    voted = traffic.up + traffic.down
    kappa = quality.agreement
    return [
        Tile("Questions", f"{traffic.questions:,}", f"{traffic.failed:,} failed"),
        Tile(
            "Answered",
            charts.percent(traffic.answered / questions),
            f"{traffic.answered:,}",
        ),
        Tile(
            "Refused",
            charts.percent(traffic.refused / questions),
            f"{traffic.refused:,}",
        ),
        _share_tile("False answers", quality.false_answers),
        _share_tile("False refusals", quality.false_refusals),
        Tile(
            "Reviewers agree on answers",
            f"κ {kappa.value:.2f}" if kappa.value is not None else "unknown",
            f"{kappa.low:.2f} to {kappa.high:.2f}, {kappa.pairs} reviewed twice"
            if kappa.low is not None and kappa.high is not None
            else f"{kappa.pairs} reviewed twice",
        ),
        Tile(
            "Time, 95 % within",
            time_in_words(latency.p95) if latency else "none",
            f"half within {time_in_words(latency.p50)}" if latency else "",
        ),
        Tile(
            "Thumbs down",
            charts.percent(traffic.down / voted) if voted else "no votes",
            f"{traffic.down:,} of {voted:,} votes" if voted else "",
        ),
    ]


def _share_tile(label: str, found: Estimate | None) -> Tile:
    if found is None:
        return Tile(label, "not reviewed", "")
    reviews = "1 review" if found.reviewed == 1 else f"{found.reviewed:,} reviews"
    note = f"{charts.interval(found)}, {reviews}"
    if found.covered < found.population:
        note = f"{note}, covers {found.covered:,} of {found.population:,}"
    return Tile(label, charts.percent(found.share), note)


def _charts(shown: Dashboard) -> list[charts.Chart]:
    traffic, quality = shown.traffic, shown.quality
    step = "week" if shown.scope.period.is_weekly else "day"
    found: list[charts.Chart | None] = []
    if traffic.questions:
        found += [
            charts.volume_chart(traffic, step),
            charts.decided_chart(traffic),
            charts.latency_chart(traffic, step),
            charts.votes_chart(traffic, step),
        ]
    found += [
        charts.quality_chart(
            {
                "false answers": quality.false_answers,
                "false refusals": quality.false_refusals,
            }
        ),
        charts.drift_chart(shown.drift or ()),
    ]
    return [chart for chart in found if chart is not None]


def _tables(shown: Dashboard) -> list[tables.Table]:
    found = [tables.shadow_table(shown.shadows), tables.model_table(shown.models)]
    return [table for table in found if table is not None]
