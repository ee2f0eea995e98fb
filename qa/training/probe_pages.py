"""The curves of a probe, drawn from the numbers that its card keeps.

A card may have been uploaded: what it says is checked before it is drawn.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from unfold.decorators import action

from accounts.admin_parts import ReadOnlyAdmin
from accounts.exceptions import NescioError
from jobs.services import enqueue
from probes.cards import CARD, ProbeKind
from probes.models import Probe
from probes.services import register
from qa.calibration.forms import author_of
from qa.evaluation.report.svg_charts import (
    INK,
    SVG,
    Description,
    draw_legend,
    draw_steps,
    house_style,
    panels,
    saved,
    share_axes,
    styles,
)
from qa.training.jobs import KIND

from .forms import TrainingForm, UploadForm

Points = list[tuple[float, float]]


def curve_names(metrics: Mapping[str, Any]) -> list[str]:
    """Return the names of the curves that these metrics hold."""
    return [name for name, read in _READ.items() if read(metrics)]


def curve_svg(name: str, metrics: Mapping[str, Any]) -> bytes | None:
    """Draw one of them; None where there is no such curve."""
    points = _READ[name](metrics) if name in _READ else []
    if not points:
        return None
    across, up = zip(*points, strict=True)
    with house_style():
        figure, (axes,) = panels()
        style = next(styles())
        if name == "reliability":
            axes.plot(across, up, label="this probe", **style)
            axes.plot((0, 1), (0, 1), color=INK, linestyle=":", label="exact")
            axes.set_xlabel("confidence")
            axes.set_ylabel("share that is right")
            title = "Reliability"
            text = "; ".join(
                f"at {x:.2f} confidence {y:.0%} are right" for x, y in points
            )
        else:
            draw_steps(axes, across, up, label="this probe", place=0, style=style)
            axes.set_xlabel("coverage: share of the answers that is shown")
            axes.set_ylabel("risk: share of the shown that is wrong")
            title = "Risk against coverage"
            text = f"Showing all, {up[-1]:.0%} are wrong."
        share_axes(axes, top=max(0.05, *up))
        draw_legend(axes, "")
        return saved(figure, SVG, Description(title, text))


def _risk_coverage(metrics: Mapping[str, Any]) -> Points:
    return _shares(metrics.get("risk_coverage"), lambda row: row)


def _reliability(metrics: Mapping[str, Any]) -> Points:
    def point(row: Any) -> Any:  # noqa: ANN401  # whatever JSON holds
        return (
            [row.get("probability"), row.get("accuracy")] if _is_object(row) else None
        )

    return _shares(metrics.get("reliability"), point)


def _shares(rows: object, point: Any) -> Points:  # noqa: ANN401  # from JSON to JSON
    found: Points = []
    for row in rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ():
        pair = point(row)
        if not isinstance(pair, Sequence) or len(pair) != 2:
            return []
        if not all(isinstance(v, int | float) and 0 <= v <= 1 for v in pair):
            return []
        found.append((float(pair[0]), float(pair[1])))
    return found


def _is_object(row: object) -> bool:
    return isinstance(row, Mapping)


_READ = {"reliability": _reliability, "risk_coverage": _risk_coverage}
_FORM = "admin/form_page.html"


class ProbePages(ReadOnlyAdmin):
    """Where a probe is trained, uploaded, downloaded and drawn."""

    def get_urls(self) -> list[URLPattern]:
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
            "train probe. It is kept as a candidate.",
        )

    def curve(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        probe = get_object_or_404(Probe.objects.light(), pk=pk)
        drawn = curve_svg(name, probe.metrics)
        if drawn is None:
            raise Http404(f"There is no curve {name!r}.")
        return HttpResponse(drawn, content_type="image/svg+xml")

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
