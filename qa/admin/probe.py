import io
import json
import zipfile
from typing import ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import action, display

from accounts.admin_confirmation import confirmed
from accounts.exceptions import NescioError
from jobs.services import enqueue
from probes.cards import CARD, ProbeKind
from probes.exceptions import ProbeFileError
from probes.joint import joint_from
from probes.models import Probe
from probes.services.registry import promote, register, retire
from qa.training.background import KIND
from qa.training.held_out import FIGURES, as_text, rows_of

from .calibration_desk import author_of
from .probe_curves import curve_names, curve_svg
from .probe_forms import TrainingForm, UploadForm
from .read_only import ReadOnlyAdmin
from .tables import table

_COLOURS = {
    Probe.State.ACTIVE: "success",
    Probe.State.SHADOW: "warning",
    Probe.State.CANDIDATE: "info",
}
_FORM = "admin/qa/probe/form.html"


@admin.register(Probe)
class ProbeAdmin(ReadOnlyAdmin):
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
        """Leave the weights where they are."""
        rows: QuerySet[Probe] = super().get_queryset(request)
        return rows.defer("weights")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Probe | None = None
    ) -> list[str]:
        """Show everything as text."""
        return [name for _, options in self.fieldsets for name in options["fields"]]

    def get_urls(self) -> list[URLPattern]:
        """Add the forms and the curves."""
        wrap = self.admin_site.admin_view
        own = [
            path("train/", wrap(self.train_form), name="probes_probe_train_form"),
            path("upload/", wrap(self.upload_form), name="probes_probe_upload_form"),
            path(
                "<int:pk>/curves/<slug:name>.svg",
                wrap(self.curve),
                name="probes_probe_curve",
            ),
        ]
        urls: list[URLPattern] = super().get_urls()
        return [*own, *urls]

    def has_steer_permission(
        self, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        """Whether probes may be trained, uploaded and promoted."""
        return request.user.has_perms(["probes.add_probe", "probes.change_probe"])

    @action(description="Train a probe", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    def train(self, request: HttpRequest) -> HttpResponse:
        """Open the form of a new training."""
        return redirect("admin:probes_probe_train_form")

    @action(description="Upload a probe", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    def upload(self, request: HttpRequest) -> HttpResponse:
        """Open the form that takes a probe's files."""
        return redirect("admin:probes_probe_upload_form")

    @action(description="Put in force", permissions=["steer"])  # type: ignore[untyped-decorator]  # unfold ships no types
    @confirmed(
        "Let this probe tell how sure every answer of its language model is, in place of "
        "the one that does? Least confidences that a policy was calibrated to belong to "
        "that one."
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
        """Retire the probe."""
        return self._move(request, object_id, Probe.State.RETIRED)

    @action(description="Download its files", permissions=["view"])  # type: ignore[untyped-decorator]  # unfold ships no types
    def export(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Hand out the probe's two files."""
        probe = get_object_or_404(Probe, pk=object_id)
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(CARD, probe.files.card)
            name = ProbeKind(probe.kind).weights_file
            archive.writestr(name, probe.files.weights)
        file = f"{probe.kind}-{probe.fingerprint[:8]}.zip"
        response = HttpResponse(held.getvalue(), content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="{file}"'
        return response

    def train_form(self, request: HttpRequest) -> HttpResponse:
        """Ask what to train, and enqueue it."""
        self._require_steer(request)
        form = TrainingForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            parameters = form.parameters()
            job = enqueue(
                KIND,
                parameters,
                owner=author_of(request),
                idempotency_key=f"{KIND} {json.dumps(parameters, sort_keys=True)}"[
                    :200
                ],
            )
            message = format_html(
                'The probe is being trained; <a href="{}">the job</a> shows how far it '
                "is, and what it is worth.",
                reverse("admin:jobs_job_change", args=[job.pk]),
            )
            self.message_user(request, message, messages.SUCCESS)
            return redirect("admin:probes_probe_changelist")
        return self._form(
            request,
            form,
            "Train a probe",
            "Answers are read and probes are fitted in the background. A training that is "
            "broken off goes on from what was read.",
        )

    def upload_form(self, request: HttpRequest) -> HttpResponse:
        """Take a probe's files, and register it."""
        self._require_steer(request)
        form = UploadForm(request.POST or None, request.FILES or None)
        if request.method == "POST" and form.is_valid():
            try:
                probe = register(
                    form.probe_files(),
                    by=author_of(request),
                    note=form.cleaned_data["note"],
                )
            except NescioError as error:
                form.add_error(None, str(error))
            else:
                message = f"{probe} is kept; it is {probe.state}."
                self.message_user(request, message, messages.SUCCESS)
                return redirect("admin:probes_probe_change", probe.pk)
        return self._form(
            request,
            form,
            "Upload a probe",
            "A probe's card and its weights, as they are downloaded here or written by "
            "train_probe. It is kept as a candidate.",
        )

    def curve(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        """Draw one curve of a probe."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        probe = get_object_or_404(Probe.objects.light(), pk=pk)
        drawn = curve_svg(name, probe.metrics)
        if drawn is None:
            raise Http404(f"There is no curve {name!r}.")
        return HttpResponse(drawn, content_type="image/svg+xml")

    @display(description="state", ordering="state", label=_COLOURS)  # type: ignore[untyped-decorator]  # unfold ships no types
    def shown_state(self, probe: Probe) -> str:
        """Show what it is used for, as a badge."""
        return probe.state

    @admin.display(description="reads")
    def reads(self, probe: Probe) -> str:
        """Show which model it reads, and where."""
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
        """Show the sizes."""
        return ", ".join(f"{name} {count:,}" for name, count in probe.sizes.items())

    @admin.display(description="settings")
    def settings(self, probe: Probe) -> SafeString | str:
        """Show how it was fitted."""
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

    def _require_steer(self, request: HttpRequest) -> None:
        if not self.has_steer_permission(request):
            raise PermissionDenied

    def _form(
        self,
        request: HttpRequest,
        form: TrainingForm | UploadForm,
        title: str,
        intro: str,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "intro": intro,
            "form": form,
            "back": reverse("admin:probes_probe_changelist"),
        }
        return render(request, _FORM, context)
