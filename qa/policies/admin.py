from collections.abc import Collection
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet, TextField, Value
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.views.decorators.http import require_http_methods

from accounts.admin_parts import confirmed, tell_of_job
from accounts.base_admin import (
    BaseAdmin,
    Fieldsets,
    action,
    display,
    holders_of,
    nobody,
)
from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.models import count_of
from accounts.people import AnyUser, person_name
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer
from qa.calibration import versions as words
from qa.calibration.activation_pages import activation
from qa.calibration.admin import CalibrationPages
from qa.calibration.forms import author_of
from qa.calibration.self_calibration import settings_of
from qa.calibration.threshold_effects import has_drifted
from qa.calibration.versions import Running, current_fingerprints
from qa.calibration.wording_pages import preview
from qa.pipeline.policy import CHOSEN, DECLARED, RetrievalTiming, Scope, Section
from qa.policies import services
from qa.policies.lacking import lacking
from qa.policies.models import Policy, RefusalWording, self_calibrated


@admin.register(RefusalWording)
class RefusalWordingAdmin(BaseAdmin):
    """The wording of a refusal; without a row, the built-in one is used."""

    list_display = ["knowledge_base", "language", "shown_reason", "text"]
    list_filter = ["knowledge_base", "language", "reason"]
    list_select_related = ["knowledge_base"]
    search_fields = ["text"]
    actions_list: ClassVar = ["open_preview"]

    def has_delete_permission(
        self, request: HttpRequest, obj: RefusalWording | None = None
    ) -> bool:
        is_archived = obj is not None and obj.knowledge_base.archived_at is not None
        return not is_archived and super().has_delete_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_http_methods(["GET", "HEAD", "POST"])(self.preview))  # fmt: skip
        urls: list[URLPattern] = super().get_urls()
        return [path("preview/", view, name="qa_refusalwording_preview"), *urls]

    def preview(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        site = self.admin_site.each_context(request) | {"opts": self.opts}
        return preview(request, site)

    @action(description="Preview", permissions=["view"])
    def open_preview(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:qa_refusalwording_preview")

    @admin.display(description="reason", ordering="reason")
    def shown_reason(self, wording: RefusalWording) -> str:
        return wording.get_reason_display() if wording.reason else "every other reason"


# The model for which a threshold was chosen outside this form.
_SET_FOR = "calibrated_own_knowledge"
_CHOSEN = ("knowledge_base", "name", *CHOSEN, _SET_FOR)
_USUAL = (
    "min_entry_answer",
    "sources_must_agree",
    "reveal_not_entitled",
    "answer_from_enriched",
    "test_cases_must_pass",
)


def _rare_fields(section: Section) -> list[str]:
    fields = [name for name in CHOSEN if DECLARED[name].section is section]
    if section is Section.TIMING:
        fields.append(_SET_FOR)
    return [name for name in fields if name not in _USUAL]


_RARE = {each: fields for each in Section if (fields := _rare_fields(each))}


class PolicyForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    """A new version; thresholds set by hand apply to whatever models run."""

    class Meta:
        model = Policy
        fields = _CHOSEN
        labels: ClassVar = {
            name: capfirst(DECLARED[name].label) for name in _CHOSEN[2:]
        }
        help_texts: ClassVar = {
            **{name: DECLARED[name].described for name in CHOSEN},
            _SET_FOR: "What manage.py calibrate min_known or monitor printed with the "
            "threshold; a policy of the scope adaptive is not activated without it.",
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        alpha, horizon = cleaned.get("alpha"), cleaned.get("horizon")
        if alpha is not None and horizon is not None and horizon < alpha:
            self.add_error(
                "horizon",
                f"{horizon} is below alpha {alpha}: what is near enough to answer "
                "would count as unrelated. Raise it.",
            )
        scope, timing = cleaned.get("scope"), cleaned.get("retrieval_timing")
        if (
            scope
            and timing
            and (scope == Scope.ADAPTIVE) is (timing == RetrievalTiming.ALWAYS)
        ):
            self.add_error(
                "retrieval_timing",
                f"{timing} does not go with the scope {scope}: {services.SCOPE_REMEDY}",
            )
        return cleaned


_NAMED = 5  # audiences listed by name; the others are counted


def _set_elsewhere(base: KnowledgeBase, user: AnyUser) -> SafeString:
    """Render the common settings that are not fields of a policy (four queries)."""
    audiences = Audience.objects.listed_for(user)
    wordings = RefusalWording.objects.filter(knowledge_base=base)
    values = {
        "base": base,
        "target": settings_of(base).get_wrong_share_target_display(),
        "audiences": audiences[:_NAMED],
        "more": max(audiences.count() - _NAMED, 0),
        "wordings": wordings.count(),
    }
    return render_to_string("admin/qa/policy/_set_elsewhere.html", values)


@admin.register(Policy)
class PolicyAdmin(BaseAdmin):
    """Versions of policies: created from one another and activated, never changed."""

    form = PolicyForm
    list_display: ClassVar = [
        "__str__", "knowledge_base", "in_use", "thresholds", "shadow", "alpha",
        "answered", "created",
    ]  # fmt: skip
    list_filter = ["knowledge_base", "is_active"]
    list_select_related = ["knowledge_base", "created_by", "certificate"]
    actions_detail = ["try_this", "make_new_version", "activate_this"]
    actions_list = ["open_calibration", "evaluate"]
    fieldsets: ClassVar[Fieldsets] = [
        (None, {"fields": ["knowledge_base", "name"]}),
        (
            "What most people set",
            {
                "fields": _USUAL,
                "description": "Choose on the calibration page how many shown answers "
                "may be wrong; it derives the thresholds from that.",
            },
        ),
        *(
            (f"Advanced: {section.value}", {"classes": ["collapse"], "fields": fields})
            for section, fields in _RARE.items()
        ),
    ]
    _made_by_machine: ClassVar = [
        "version", "is_active", "is_calibrated", "calibrated_embedder",
        "calibrated_language_model", "calibrated_probes", "created_by", "created_at",
    ]  # fmt: skip

    def get_urls(self) -> list[URLPattern]:
        back = path(
            "<int:object_id>/roll-back",
            self.admin_site.admin_view(self.roll_back_this),
            name="qa_policy_roll_back_this",
        )
        return [back, *CalibrationPages(self).urls(), *super().get_urls()]

    def useless_actions(self, key: int) -> Collection[str]:
        is_active = Policy.objects.filter(pk=key, is_active=True).exists()
        return ["activate_this"] if is_active else []

    def get_queryset(self, request: HttpRequest) -> QuerySet[Policy]:
        rows: QuerySet[Policy] = super().get_queryset(request)
        running = {
            name: Value(value, output_field=TextField())
            for name, value in asdict(current_fingerprints()).items()
        }
        return rows.annotate(
            answers_count=count_of(Answer.objects.all(), "policy"),
            has_drifted=has_drifted(),
            from_own_questions=self_calibrated(),
            **running,
        )

    def get_fieldsets(
        self, request: HttpRequest, obj: Policy | None = None
    ) -> Fieldsets:
        of = obj or self._source(request)
        sections = [*self.fieldsets]
        if of is not None:
            base, (name, usual) = of.knowledge_base, sections[1]
            # Lazy, as Django reads the sections several times but shows them once.
            said = SimpleLazyObject(partial(_set_elsewhere, base, request.user))
            sections[1] = name, {**usual, "description": said}
        if obj is None:
            return sections
        return [*sections, ("Record", {"fields": self._made_by_machine})]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Policy | None = None
    ) -> list[str]:
        return [] if obj is None else [*_CHOSEN, *self._made_by_machine]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        source = self._source(request)
        return {name: getattr(source, name) for name in _CHOSEN} if source else {}

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form filled from a version, chosen first if several are active.

        A form with default values would reset tuned thresholds if only a name is given.
        """
        if (
            request.method == "GET"
            and self.has_add_permission(request)
            and KnowledgeBase.objects.exists()
            and self._source(request) is None
        ):
            return self._let_choose(request)
        shown: HttpResponse = super().add_view(request, form_url, extra_context)
        return shown

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a version, with a warning about what it requires that is missing."""
        rows = Policy.objects.select_related("knowledge_base")
        policy = rows.filter(pk=number_in(object_id) or 0).first()
        is_shown = request.method == "GET" and self.has_view_permission(request, policy)
        if policy and is_shown and (missing := lacking(policy)):
            self.message_user(request, missing, messages.WARNING)
        shown: HttpResponse = super().change_view(
            request, object_id, form_url, extra_context
        )
        return shown

    def _let_choose(self, request: HttpRequest) -> HttpResponse:
        active = Policy.objects.filter(is_active=True)
        for base in KnowledgeBase.objects.exclude(
            pk__in=active.values("knowledge_base")
        ):
            services.ensure_default_policy(base)
        said = (
            "A new version starts from an existing one. Open a version of the "
            "knowledge base and press “Create a new version from this”."
        )
        self.message_user(request, said, messages.INFO)
        return redirect(f"{reverse('admin:qa_policy_changelist')}?is_active__exact=1")

    def _source(self, request: HttpRequest) -> Policy | None:
        """Return the version to start from: the one named, or else the active one.

        None if none is named and there are several knowledge bases.
        """
        key = number_in(request.GET.get("source", ""))
        rows = Policy.objects.select_related("knowledge_base")
        if named := rows.filter(pk=key or 0).first():
            return named
        bases = KnowledgeBase.objects.all()[:2]
        return services.active_policy(bases[0]) if len(bases) == 1 else None

    def save_model(
        self, request: HttpRequest, obj: Policy, form: PolicyForm, change: bool
    ) -> None:
        if change:
            return
        changes = {name: form.cleaned_data[name] for name in _CHOSEN[1:]}
        base = services.basis(
            form.cleaned_data["knowledge_base"], self._source(request)
        )
        made = services.new_version(
            base, by=author_of(request), is_calibrated=False, **changes
        )
        obj.pk, obj.version = made.pk, made.version
        message = f"{made} was created. It decides nothing until it is activated."
        self.message_user(request, message, messages.INFO)

    def response_post_save_add(
        self, request: HttpRequest, obj: Policy
    ) -> HttpResponseRedirect:
        """Redirect to the new version, where it can be activated."""
        return HttpResponseRedirect(reverse("admin:qa_policy_change", args=[obj.pk]))

    def may_touch(self, request: HttpRequest, row: Policy) -> bool:
        return False

    has_delete_permission = nobody
    has_steer_permission = holders_of("qa.add_policy", "qa.change_policy")

    @display(description="state", label={"active": "success", "inactive": "info"})
    def in_use(self, policy: Policy) -> str:
        return "active" if policy.is_active else "inactive"

    @display(
        description="thresholds",
        label={
            "certified": "success",
            "calibrated": "success",
            "from own questions": "info",
            "hand-set": "info",
            "stale": "danger",
            "drifted": "danger",
        },
    )
    def thresholds(self, policy: Policy) -> tuple[str, str]:
        """Show where the thresholds come from, and whether they still hold."""
        names = ("embedder", "retrieval", "language_model", "probes")
        running = Running(*[getattr(policy, name) for name in names])
        state = words.threshold_badge(policy, running).text
        if getattr(policy, "has_drifted", None):
            return "drifted", f"{state}, drifted"
        return state, state

    @display(description="in shadow", label="warning")
    def shadow(self, policy: Policy) -> str | None:
        gates = (gate.split()[0] for gate in words.shadow_gates(policy))
        return ", ".join(gates) or None

    @admin.display(description="created", ordering="created_at")
    def created(self, policy: Policy) -> str:
        """Show time and author in one column; two would be too wide for a laptop."""
        at = f"{timezone.localtime(policy.created_at):%Y-%m-%d %H:%M}"
        return f"{at}, {person_name(policy.created_by)}" if policy.created_by else at

    @admin.display(description="answers", ordering="answers_count")
    def answered(self, policy: Policy) -> int:
        return int(getattr(policy, "answers_count", 0))

    @action(description="Create a new version from this", permissions=["steer"])
    def make_new_version(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect(f"{reverse('admin:qa_policy_add')}?source={object_id}")

    @action(description="Activate", permissions=["steer"])
    def activate_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        policy = self.found(request, object_id)
        site = self.admin_site.each_context(request) | {"opts": self.opts}
        return activation(request, policy, site)

    @action(description="Roll back", permissions=["steer"])
    @confirmed("Activate the version that was active before this one again?")
    def roll_back_this(self, request: HttpRequest, object_id: int) -> HttpResponse:
        policy = self.found(request, object_id)
        try:
            before = services.roll_back(policy, by=author_of(request))
        except NescioError as error:
            self.message_user(request, str(error), messages.ERROR)
            return redirect("admin:qa_policy_change", object_id)
        message = f"Rolled back: {before} decides again, in place of {policy}."
        self.message_user(request, message, messages.SUCCESS)
        return redirect("admin:qa_policy_calibrate", policy.knowledge_base_id)

    @action(description="Try thresholds from this", permissions=["view"])
    def try_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        policy = self.found(request, object_id)
        address = reverse("admin:qa_policy_calibrate", args=[policy.knowledge_base_id])
        return redirect(f"{address}?base={policy.pk}")

    @action(description="Calibration", permissions=["view"])
    def open_calibration(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:qa_policy_calibration")

    @action(description="Evaluate the demonstration", permissions=["steer"])
    @confirmed("Ask the demonstration questions in the background?")
    def evaluate(self, request: HttpRequest) -> HttpResponse:
        job = enqueue(
            "qa.evaluate",
            {"suite": "demo"},
            owner=author_of(request),
            idempotency_key="qa.evaluate demo",
        )
        said = (
            'The demonstration questions are being asked; <a href="{}">the job</a> '
            "shows how far it is, and its result."
        )
        return tell_of_job(self, request, said, job.pk)
