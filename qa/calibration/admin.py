"""The calibration pages of the policy admin, and the admin of drift readings."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import add_never_cache_headers, patch_cache_control
from django.views.decorators.http import require_GET, require_POST

from accounts.admin_parts import ReadOnlyAdmin
from accounts.base_admin import column, display
from accounts.exceptions import NescioError
from kb.documents.models import KnowledgeBase
from qa.calibration.models import DriftReading
from qa.calibration.services import certify, labels_of_run
from qa.calibration.threshold_effects import logged_of
from qa.calibration.thresholds import NotCertified
from qa.calibration.versions import current_fingerprints
from qa.evaluation.models import EvaluationRun
from qa.exceptions import EvaluationDataError
from qa.policies.models import Policy, PolicyActivation
from qa.policies.services import new_version, version_before

from . import versions as version_words
from . import wording as words
from .figures import draw, figures
from .forms import (
    Desk,
    PromiseForm,
    SelfCalibrationForm,
    author_of,
    chosen_of,
    find_drawn,
    follow,
    own_context,
    read_desk,
)
from .wording import CURVE, curve_svg

if TYPE_CHECKING:
    from qa.policies.admin import PolicyAdmin

_HISTORY = 20
# Finished runs, versions and self-calibrations are immutable, so their plots can be
# cached.
_KEPT_SECONDS = 3_600
View = Callable[..., HttpResponse]


class CalibrationPages:
    def __init__(self, policies: "PolicyAdmin") -> None:
        self._policies = policies

    def urls(self) -> list[URLPattern]:
        views: Mapping[str, tuple[str, View]] = {
            "calibration": ("calibration/", require_GET(self.index)),
            "calibrate": ("calibration/<int:pk>/", require_GET(self.show)),
            "try_on_labelled": ("calibration/<int:pk>/labelled", require_GET(self.try_on_labelled)),
            "try_on_traffic": ("calibration/<int:pk>/traffic", require_GET(self.try_on_traffic)),
            "save_tried": ("calibration/<int:pk>/save", require_POST(self.save)),
            "certify": ("calibration/<int:pk>/certify", require_POST(self.certify)),
            "itself": ("calibration/<int:pk>/itself", require_POST(self.itself)),
            "curve": ("calibration/<int:pk>/curves/<slug:name>.svg", require_GET(self.curve)),
            "compare": ("calibration/<int:pk>/compare", require_GET(self.compare)),
        }  # fmt: skip
        wrap = self._policies.admin_site.admin_view
        return [
            path(
                address, wrap(view, cacheable=name == "curve"), name=f"qa_policy_{name}"
            )
            for name, (address, view) in views.items()
        ]

    def index(self, request: HttpRequest) -> HttpResponse:
        self._require_view(request)
        rows = list(KnowledgeBase.objects.in_use().order_by("name"))
        if len(rows) == 1:
            return redirect("admin:qa_policy_calibrate", rows[0].pk)
        context = {"title": "Calibration", "knowledge_bases": rows}
        return self._page(request, "calibration_index", context)

    def show(self, request: HttpRequest, pk: int) -> HttpResponse:
        desk = self._desk(request, pk)
        return self._calibration(request, desk, PromiseForm())

    def try_on_labelled(self, request: HttpRequest, pk: int) -> HttpResponse:
        desk = self._desk(request, pk)
        may_steer = self._policies.has_steer_permission(request)
        context = self._on_labelled(desk) | {"desk": desk, "may_steer": may_steer}
        response = self._part(request, "_labelled", context)
        # Show the URL of the whole page, so that it can be bookmarked and shared.
        shown = reverse("admin:qa_policy_calibrate", args=[pk])
        response["HX-Replace-Url"] = f"{shown}?{request.GET.urlencode()}"
        return response

    def try_on_traffic(self, request: HttpRequest, pk: int) -> HttpResponse:
        desk = self._desk(request, pk)
        return self._part(request, "_traffic", self._on_traffic(desk))

    def save(self, request: HttpRequest, pk: int) -> HttpResponse:
        self._require_steer(request)
        desk = self._desk(request, pk)
        changes = desk.changes()
        if changes is None:
            messages.error(request, "Those thresholds are not valid; nothing is saved.")
            return self._calibration(request, desk, PromiseForm())
        try:
            made = new_version(desk.base, by=author_of(request), **changes)
        except NescioError as error:
            messages.error(request, str(error))
            return self._calibration(request, desk, PromiseForm())
        text = f"{made} is created, set by hand. It decides nothing until activated."
        messages.success(request, text)
        return self._to_comparison(desk, made)

    def certify(self, request: HttpRequest, pk: int) -> HttpResponse:
        self._require_steer(request)
        desk, promise = self._desk(request, pk), PromiseForm(request.POST)
        if desk.run is None or not promise.is_valid():
            return self._calibration(request, desk, promise)
        try:
            found = certify(
                desk.base,
                labels_of_run(desk.run),
                epsilon=promise.cleaned_data["epsilon"],
                delta=promise.cleaned_data["delta"],
                by=author_of(request),
            )
        except NescioError as error:
            return self._calibration(request, desk, promise, refusal=(str(error),))
        if isinstance(found, NotCertified):
            why = (found.explanation, *found.warnings)
            return self._calibration(request, desk, promise, refusal=why)
        text = (
            f"{found} is created: {found.certificate}. It decides nothing until "
            "activated."
        )
        messages.success(request, text)
        return self._to_comparison(desk, found)

    def itself(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Save the self-calibration settings and start a calibration if requested."""
        self._require_steer(request)
        desk, form = self._desk(request, pk), SelfCalibrationForm(request.POST)
        if not form.is_valid():
            return self._calibration(request, desk, PromiseForm(), own_form=form)
        said = follow(desk.knowledge_base, form, request)
        messages.success(request, said)
        return redirect("admin:qa_policy_calibrate", pk)

    def compare(self, request: HttpRequest, pk: int) -> HttpResponse:
        desk = self._desk(request, pk)
        new = chosen_of(desk.policies, request.GET.get("new", "")) or desk.policies[0]
        sides = (desk.base, new)
        labelled, log = desk.labelled, logged_of(desk.knowledge_base)
        frozen = [policy.as_value() for policy in sides]
        effects = [labelled.effect(each) for each in frozen] if labelled else []
        logged = [log.effect(each) for each in frozen]
        values, running = version_words.policy_rows(sides), current_fingerprints()
        context = {
            "title": f"Compare policies: {desk.knowledge_base}",
            "new": new,
            "versions": [version_words.version(policy, running) for policy in sides],
            "values": values,
            "any_differs": any(row.differs for row in values),
            "certificates": version_words.certificate_rows(
                [getattr(policy, "certificate", None) for policy in sides]
            ),
            "labelled_rows": words.labelled_rows(effects) if effects else (),
            "logged_rows": words.logged_rows(logged),
            "log_notes": words.log_notes(log),
        }
        frame = self._frame(request, desk)
        return self._page(request, "compare", frame | context)

    def curve(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        desk = self._desk(request, pk)
        own = find_drawn(request, desk.knowledge_base) if name == CURVE else None
        try:
            drawn = (
                curve_svg(own)
                if own
                else draw(name, desk.answers, desk.base.as_value())
            )
        except EvaluationDataError as error:
            raise Http404(str(error)) from error
        if drawn is None:
            raise Http404(f"There is no curve {name!r}.")
        response = HttpResponse(drawn, content_type="image/svg+xml")
        is_finished = desk.run and desk.run.state == EvaluationRun.State.FINISHED
        if "of" in request.GET if own else is_finished:
            patch_cache_control(response, private=True, max_age=_KEPT_SECONDS)
        else:
            add_never_cache_headers(response)
        return response

    def _calibration(
        self,
        request: HttpRequest,
        desk: Desk,
        promise: PromiseForm,
        refusal: tuple[str, ...] = (),
        own_form: SelfCalibrationForm | None = None,
    ) -> HttpResponse:
        own = desk.base.as_value()
        labelled = desk.labelled
        context = {
            "title": f"Calibration: {desk.knowledge_base}",
            "promise": promise,
            "refusal": refusal,
            "by_alpha": words.threshold_cells(
                labelled.by_alpha(own) if labelled else ()
            ),
            "by_verdict": words.threshold_cells(
                labelled.by_min_verdict(own) if labelled else ()
            ),
            "by_confidence": words.confidence_tables(labelled, own) if labelled else (),
            "figures": figures(desk.answers, own),
            "threshold_heads": words.THRESHOLD_HEADS,
            "history": PolicyActivation.objects.of(desk.knowledge_base)[:_HISTORY],
        }
        parts = self._on_labelled(desk) | self._on_traffic(desk)
        parts |= own_context(desk.knowledge_base, own_form)
        frame = self._frame(request, desk)
        return self._page(request, "calibration", frame | parts | context)

    def _on_labelled(self, desk: Desk) -> dict[str, Any]:
        if desk.labelled is None or desk.tried is None:
            return {"labelled_rows": (), "is_measured": desk.labelled is not None}
        effect = desk.labelled.effect(desk.tried)
        base = desk.labelled.effect(desk.base.as_value())
        return {
            "effect": effect,
            "labelled_sentence": words.labelled_sentence(effect),
            "labelled_rows": words.labelled_rows((effect, base)),
            "is_measured": True,
        }

    def _on_traffic(self, desk: Desk) -> dict[str, Any]:
        if desk.tried is None:
            return {"log": None, "form": desk.form}
        log = logged_of(desk.knowledge_base)
        return {
            "log": log,
            "logged_sentences": words.logged_sentences(log.effect(desk.tried)),
            "log_notes": words.log_notes(log),
        }

    def _desk(self, request: HttpRequest, pk: int) -> Desk:
        self._require_view(request)
        return read_desk(request, pk)

    def _frame(self, request: HttpRequest, desk: Desk) -> dict[str, Any]:
        active = next((p for p in desk.policies if p.is_active), None)
        running = current_fingerprints()
        may_steer = self._policies.has_steer_permission(request)
        return {
            "desk": desk,
            "versions": [
                version_words.version(policy, running) for policy in desk.policies
            ],
            "active": active,
            "before": version_before(active) if active and may_steer else None,
            "may_steer": may_steer,
        }

    def _to_comparison(self, desk: Desk, made: Policy) -> HttpResponse:
        address = reverse("admin:qa_policy_compare", args=[desk.knowledge_base.pk])
        return redirect(f"{address}?{desk.query(new=made.pk)}")

    def _require_view(self, request: HttpRequest) -> None:
        if not self._policies.has_view_permission(request):
            raise PermissionDenied

    def _require_steer(self, request: HttpRequest) -> None:
        if not self._policies.has_steer_permission(request):
            raise PermissionDenied

    def _page(
        self, request: HttpRequest, name: str, context: dict[str, Any]
    ) -> HttpResponse:
        site = self._policies.admin_site.each_context(request)
        opts = {"opts": self._policies.opts}
        template = f"admin/qa/policy/{name}.html"
        return TemplateResponse(request, template, site | opts | context)

    def _part(
        self, request: HttpRequest, name: str, context: dict[str, Any]
    ) -> HttpResponse:
        return TemplateResponse(request, f"admin/qa/policy/{name}.html", context)


@admin.register(DriftReading)
class DriftReadingAdmin(ReadOnlyAdmin):
    when_empty = (
        "Each night, live answers are compared with those behind each certificate."
    )
    list_display = ["__str__", "state", "answers", "drifted", "first_at", "last_at"]
    list_filter = ["has_drifted", "checked_at"]
    fields: ClassVar = [
        "policy", "state", "drifted", "answers", "first_at", "last_at", "signals",
        "checked_at",
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[DriftReading]:
        rows: QuerySet[DriftReading] = super().get_queryset(request)
        return rows.select_related("certificate__policy")

    @display(
        description="state",
        label={"drifted": "danger", "as labelled": "success", "too few": "info"},
    )
    def state(self, reading: DriftReading) -> str:
        if reading.has_drifted:
            return "drifted"
        return "as labelled" if reading.was_possible else "too few"

    @admin.display(description="drifted signals")
    def drifted(self, reading: DriftReading) -> str:
        found = [name for name, each in reading.signals.items() if each["has_drifted"]]
        return ", ".join(found) or "-"

    policy = column("policy", lambda reading: reading.certificate.policy)

    def get_readonly_fields(
        self, request: HttpRequest, obj: DriftReading | None = None
    ) -> list[str]:
        return self.fields
