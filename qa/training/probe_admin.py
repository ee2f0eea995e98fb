from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import action, display

from accounts.admin_parts import confirmed, table
from accounts.exceptions import NescioError
from probes.cards import ProbeKind
from probes.exceptions import ProbeFileError
from probes.joint import joint_from
from probes.models import Probe
from probes.services import promote, retire
from qa.calibration.forms import author_of
from qa.training.held_out import FIGURES, as_text, rows_of

from .probe_pages import ProbePages, curve_names

_COLOURS = {
    Probe.State.ACTIVE: "success",
    Probe.State.SHADOW: "warning",
    Probe.State.CANDIDATE: "info",
}


@admin.register(Probe)
class ProbeAdmin(ProbePages):
    """Probes: trained or uploaded here, tried in shadow, put in force, retired."""

    list_display: ClassVar = [
        "__str__", "shown_state", "kind", "reads", "auroc", "ece", "answers",
        "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["kind", "state", "language_model_name"]
    list_select_related: ClassVar = ["created_by"]
    search_fields: ClassVar = ["fingerprint", "language_model", "note"]
    actions_list: ClassVar = ["train", "upload"]
    actions_detail: ClassVar = ["activate_this", "shadow_this", "retire_this", "export"]
    fieldsets: ClassVar = [
        (None, {"fields": ["kind", "shown_state", "reads", "note"]}),
        ("What it is worth", {"fields": ["figures", "curves"]}),
        ("History", {"fields": ["history"]}),
        (
            "Record",
            {
                "fields": [
                    "fingerprint", "language_model", "language_model_name", "form",
                    "temperature", "fitted_on", "data_sha256", "settings",
                    "weighed", "created_by", "created_at",
                ]
            },
        ),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Probe]:
        rows: QuerySet[Probe] = super().get_queryset(request)
        return rows.defer("weights")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Probe | None = None
    ) -> list[str]:
        return [name for _, options in self.fieldsets for name in options["fields"]]

    @action(description="Put in force", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    @confirmed(
        "Put this probe in force for its language model, in place of the one of its kind "
        "that is? What a policy was calibrated to belongs to that one."
    )
    def activate_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Put the probe in force."""
        return self._move(request, object_id, Probe.State.ACTIVE)

    @action(description="Run in shadow", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    @confirmed("Ask this probe about every answer, and let it refuse none?")
    def shadow_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Let the probe run in shadow."""
        return self._move(request, object_id, Probe.State.SHADOW)

    @action(description="Retire", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    @confirmed("Ask this probe no more? It is kept, and can be promoted again.")
    def retire_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._move(request, object_id, Probe.State.RETIRED)

    @display(description="state", ordering="state", label=_COLOURS)  # type: ignore[untyped-decorator]  # unfold ships no types
    def shown_state(self, probe: Probe) -> str:
        """Show what it is used for, as a badge."""
        return probe.state

    @admin.display(description="reads")
    def reads(self, probe: Probe) -> str:
        place = "" if probe.layer is None else f", {probe.part} {probe.layer}"
        return f"{probe.language_model_name or probe.language_model[:12]}{place}"

    @admin.display(description="AUROC")
    def auroc(self, probe: Probe) -> str:
        """Show how well it tells right answers from wrong ones."""
        return as_text(probe.metrics.get("auroc"))

    @admin.display(description="ECE")
    def ece(self, probe: Probe) -> str:
        """Show how far its confidence is off."""
        return as_text(probe.metrics.get("ece"))

    @admin.display(description="answers")
    def answers(self, probe: Probe) -> str:
        """Show on how many answers it was fitted."""
        count = probe.sizes.get("answers")
        return f"{count:,}" if isinstance(count, int) else ""

    @admin.display(description="figures")
    def figures(self, probe: Probe) -> SafeString | str:
        """Show its figures beside what it is compared with."""
        rows = rows_of("this probe", probe.metrics)
        if not any(rows[0][1:]):
            return "Nothing was measured."
        heads = (
            "",
            *(name.upper() if name != "brier" else "Brier" for name in FIGURES),
        )
        how = probe.metrics.get("measured", "")
        return format_html(
            "<p>{}; in brackets bootstrap 95 % intervals</p>{}", how, table(heads, rows)
        )

    @admin.display(description="curves")
    def curves(self, probe: Probe) -> SafeString | str:
        """Show its reliability, and its risk against coverage."""
        names = curve_names(probe.metrics)
        images = (
            (
                reverse("admin:probes_probe_curve", args=[probe.pk, name]),
                name.replace("_", " "),
            )
            for name in names
        )
        return format_html_join(
            "",
            '<img class="block max-w-full mb-4" loading="lazy" src="{}" alt="{}">',
            images,
        )

    @admin.display(description="history")
    def history(self, probe: Probe) -> SafeString:
        """Show who brought it into which state, and when."""
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
        return table(("when", "what", "who", ""), rows)

    @admin.display(description="fitted on")
    def fitted_on(self, probe: Probe) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in probe.sizes.items())

    @admin.display(description="settings")
    def settings(self, probe: Probe) -> SafeString | str:
        try:
            said = probe.parsed_card.settings
        except ProbeFileError as error:
            return str(error)
        return table(("", ""), [(name, str(value)) for name, value in said.items()])

    @admin.display(description="weights of the signals")
    def weighed(self, probe: Probe) -> SafeString | str:
        """Show what a joint probe makes of each signal."""
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
        by = author_of(request)
        try:
            if state == Probe.State.RETIRED:
                probe = retire(int(object_id), by=by)
            else:
                probe = promote(int(object_id), state, by=by)
        except NescioError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            message = f"{probe} is {probe.get_state_display()} from the next answer on."
            self.message_user(request, message, messages.SUCCESS)
        return redirect("admin:probes_probe_change", object_id)
