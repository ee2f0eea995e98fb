from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from accounts.admin_parts import act_on_row, confirmed, images, table
from accounts.base_admin import action, badge, column
from accounts.ids import row_at
from accounts.roles import caller
from probes.cards import ProbeKind
from probes.exceptions import ProbeFileError
from probes.joint import joint_from
from probes.models import Probe
from probes.services import promote, retire, roll_back
from qa.evaluation.report import svg_charts as charts
from qa.training.held_out import FIGURES, as_text, rows_of

from .probe_pages import OWN_FIGURES, ProbePages, active_beside, own_figures

_COLOURS = {
    Probe.State.ACTIVE: "success",
    Probe.State.SHADOW: "warning",
    Probe.State.CANDIDATE: "info",
}


@admin.register(Probe)
class ProbeAdmin(ProbePages):
    shown_state = badge("state", _COLOURS)
    when_empty = "Probes that are trained or uploaded are listed here."
    list_display: ClassVar = [
        "__str__", "shown_state", "kind", "reads", "auroc", "ece", "answers",
        "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["kind", "state", "language_model_name"]
    list_select_related: ClassVar = ["created_by"]
    search_fields: ClassVar = ["fingerprint", "language_model", "note"]
    actions_list: ClassVar = ["train", "train_method", "upload"]
    actions_detail: ClassVar = [
        "activate_this", "roll_this_back", "shadow_this", "retire_this", "export",
    ]  # fmt: skip
    fieldsets: ClassVar = [
        (None, {"fields": ["kind", "state", "reads", "note"]}),
        ("Quality", {"fields": ["figures", "curves"]}),
        ("History", {"fields": ["history"]}),
        ("Record", {"fields": [
            "fingerprint", "language_model", "language_model_name", "form",
            "temperature", "fitted_on", "data_sha256", "settings",
            "weighed", "created_by", "created_at",
        ]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Probe]:
        rows: QuerySet[Probe] = super().get_queryset(request)
        return rows.defer("weights")

    def useless_actions(self, key: int) -> Collection[str]:
        is_active = Probe.objects.filter(pk=key, state=Probe.State.ACTIVE).exists()
        return ["activate_this" if is_active else "roll_this_back"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.curve)
        name = "probes_probe_curve"
        urls: list[URLPattern] = super().get_urls()
        return [path("<int:pk>/curves/<slug:name>.svg", view, name=name), *urls]

    def curve(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        probe = row_at(Probe.objects.light(), pk=pk)
        drawn = curve_svg(name, probe.metrics)
        if drawn is None:
            raise Http404(f"There is no curve {name!r}.")
        return HttpResponse(drawn, content_type="image/svg+xml")

    @action(description="Activate", permissions=["steer"])
    @confirmed(
        "Activate this probe for its language model? It replaces the active probe of its "
        "kind; thresholds that were calibrated with that one no longer apply."
    )
    def activate_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._move(request, object_id, Probe.State.ACTIVE)

    @action(description="Roll back", permissions=["steer"])
    @confirmed(
        "Activate the probe again that this one replaced, or none if there was none? This "
        "one is kept."
    )
    def roll_this_back(self, request: HttpRequest, object_id: str) -> HttpResponse:
        key, by = self.found(request, object_id).pk, caller(request)

        def go_back() -> str:
            return _said_of(roll_back(key, by=by), by)

        return act_on_row(self, request, key, go_back)

    @action(description="Run in shadow", permissions=["steer"])
    @confirmed("Run this probe on every answer without letting it refuse any?")
    def shadow_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._move(request, object_id, Probe.State.SHADOW)

    @action(description="Retire", permissions=["steer"])
    @confirmed("Stop using this probe? It is kept, and can be activated again.")
    def retire_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._move(request, object_id, Probe.State.RETIRED)

    @admin.display(description="reads")
    def reads(self, probe: Probe) -> str:
        place = "" if probe.layer is None else f", {probe.part} {probe.layer}"
        return f"{probe.language_model_name or probe.language_model[:12]}{place}"

    auroc = column("AUROC", lambda probe: as_text(probe.metrics.get("auroc")))
    ece = column("ECE", lambda probe: as_text(probe.metrics.get("ece")))

    @admin.display(description="answers")
    def answers(self, probe: Probe) -> str:
        count = probe.sizes.get("answers")
        return f"{count:,}" if isinstance(count, int) else ""

    @admin.display(description="figures")
    def figures(self, probe: Probe) -> SafeString | str:
        active = active_beside(probe)
        if probe.kind in OWN_FIGURES:
            return own_figures(probe, active)
        rows = rows_of("this probe", probe.metrics)
        if not any(rows[0][1:]):
            return "Nothing was measured."
        if active:
            rows += rows_of(f"active: {active}", active.metrics)[:1]
        heads = (
            "probe",
            *(name.upper() if name != "brier" else "Brier" for name in FIGURES),
        )
        how = probe.metrics.get("measured", "")
        return format_html(
            "<p>{}; in brackets bootstrap 95 % intervals</p>{}", how, table(heads, rows)
        )

    @admin.display(description="curves")
    def curves(self, probe: Probe) -> SafeString | str:
        address = "admin:probes_probe_curve"
        return images(
            (reverse(address, args=[probe.pk, name]), name.replace("_", " "))
            for name in curve_names(probe.metrics)
        )

    @admin.display(description="history")
    def history(self, probe: Probe) -> SafeString:
        changes = probe.changes.select_related("by", "replaced")
        rows = [
            (
                f"{change.at:%Y-%m-%d %H:%M}",
                f"{change.before or 'new'} → {change.after}",
                str(change.by or ""),
                f"in place of {change.replaced}" if change.replaced else "",
            )
            for change in changes.defer("replaced__weights", "replaced__card")
        ]
        return table(("when", "what", "who", "note"), rows)

    @admin.display(description="fitted on")
    def fitted_on(self, probe: Probe) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in probe.sizes.items())

    @admin.display(description="settings")
    def settings(self, probe: Probe) -> SafeString | str:
        try:
            said = probe.parsed_card.settings
        except ProbeFileError as error:
            return str(error)
        return table(
            ("setting", "value"), [(name, str(value)) for name, value in said.items()]
        )

    @admin.display(description="weights of the signals")
    def weighed(self, probe: Probe) -> SafeString | str:
        if probe.kind != ProbeKind.JOINT:
            return ""
        try:
            found = joint_from(probe.files, language_model=probe.language_model)
        except ProbeFileError as error:
            return str(error)
        rows = [
            (name.replace("_", " "), f"{term.weight:+.2f}", f"{term.missing:+.2f}")
            for name, term in sorted(
                found.terms.items(), key=lambda item: -abs(item[1].weight)
            )
        ]
        return table(("signal", "log-odds a deviation", "where missing"), rows)

    def _move(self, request: HttpRequest, object_id: str, state: str) -> HttpResponse:
        key, by = self.found(request, object_id).pk, caller(request)

        def move() -> str:
            is_end = state == Probe.State.RETIRED
            probe = retire(key, by=by) if is_end else promote(key, state, by=by)
            return _said_of(probe, by)

        return act_on_row(self, request, key, move)


def _said_of(probe: Probe, by: User) -> str:
    """Return what a probe does now; activated directions also set their threshold."""
    said = f"{probe} is {probe.get_state_display()} from the next answer on."
    if probe.kind != ProbeKind.DIRECTIONS or probe.state != Probe.State.ACTIVE:
        return said
    # Imports torch, which a process that serves pages must not load.
    from .directions import apply_threshold  # noqa: PLC0415

    made = ", ".join(map(str, apply_threshold(probe, by=by)))
    return f"{said} Active with its threshold: {made}." if made else said


# Curves are drawn from a card's numbers; they are validated, as cards may be uploaded.

Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Points = list[tuple[Share, Share]]


class _Bin(BaseModel):
    probability: Share
    accuracy: Share


_CURVES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "reliability": TypeAdapter(list[_Bin]),
    "risk_coverage": TypeAdapter(Points),
}


def curve_names(metrics: Mapping[str, Any]) -> list[str]:
    return [name for name in _CURVES if _points(name, metrics)]


def curve_svg(name: str, metrics: Mapping[str, Any]) -> bytes | None:
    points = _points(name, metrics)
    if not points:
        return None
    across, up = zip(*points, strict=True)
    with charts.house_style():
        figure, (axes,) = charts.panels()
        style = next(charts.styles())
        if name == "reliability":
            axes.plot(across, up, label="this probe", **style)
            axes.plot((0, 1), (0, 1), color=charts.INK, linestyle=":", label="exact")
            axes.set_xlabel("confidence")
            axes.set_ylabel("share that is right")
            title = "Reliability"
            text = "; ".join(
                f"at {x:.2f} confidence {y:.0%} are right" for x, y in points
            )
        else:
            charts.draw_steps(
                axes, across, up, label="this probe", place=0, style=style
            )
            axes.set_xlabel("coverage: share of the answers that is shown")
            axes.set_ylabel("risk: share of the shown that is wrong")
            title = "Risk against coverage"
            text = f"Showing all, {up[-1]:.0%} are wrong."
        charts.share_axes(axes, top=max(0.05, *up))
        charts.draw_legend(axes, "")
        return charts.saved(figure, charts.SVG, charts.Description(title, text))


def _points(name: str, metrics: Mapping[str, Any]) -> Points:
    if name not in _CURVES:
        return []
    try:
        found = _CURVES[name].validate_python(metrics.get(name))
    except ValidationError:
        return []
    is_bins = name == "reliability"
    return [(one.probability, one.accuracy) for one in found] if is_bins else found
