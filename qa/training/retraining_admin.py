from collections.abc import Callable, Collection
from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin_parts import ReadOnlyAdmin, act_on_row, confirmed, table
from accounts.base_admin import action, badge, column, holders_of
from accounts.roles import caller
from probes.cards import ANSWER_KINDS, CONFIDENCE_BY_KIND
from probes.models import Probe
from qa.pipeline.gates import CONFIDENCES
from qa.policies.models import Policy
from qa.training import retraining as retrainings
from qa.training.models import Retraining

from .probe_pages import STEER

State = Retraining.State
_COLOURS = {
    State.TRAINING: "info",
    State.FAILED: "danger",
    State.SHADOW: "info",
    State.WAITING: "warning",
    State.PROMOTED: "success",
    State.DECLINED: "info",
    State.REVERTED: "danger",
}
# The actions offered in each state; the services enforce them.
_STEPS = {
    State.WAITING: {"approve_this", "decline_this"},
    State.PROMOTED: {"take_this_back"},
}


@admin.register(Retraining)
class RetrainingAdmin(ReadOnlyAdmin):
    has_steer_permission = holders_of(*STEER)
    shown_state = badge("state", _COLOURS)
    when_empty = "Retrained probes are listed here, compared with the active ones."
    list_display: ClassVar = [
        "__str__", "shown_state", "labels", "golden", "before", "after", "gain",
        "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["kind", "state"]
    actions_list: ClassVar = ["retrain"]
    actions_detail: ClassVar = ["approve_this", "decline_this", "take_this_back"]
    fieldsets: ClassVar = [
        (None, {"fields": ["kind", "state", "reason", "created_at"]}),
        (
            "On the golden answers",
            {"fields": ["golden_said", "champion_link", "challenger_link", "gain", "minimums"]},
        ),
        ("Fitted on", {"fields": ["labels_said", "reviewed", "job_link"]}),
        ("Steps", {"fields": ["history"]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Retraining]:
        rows: QuerySet[Retraining] = super().get_queryset(request)
        heavy = [
            f"{side}__{name}"
            for side in ("champion", "challenger")
            for name in ("weights", "card", "metrics")
        ]
        return rows.select_related("champion", "challenger").defer(*heavy)

    def useless_actions(self, key: int) -> Collection[str]:
        row = Retraining.objects.filter(pk=key).only("state").first()
        offered = _STEPS.get(State(row.state), set()) if row else set()
        return {*self.actions_detail} - offered

    @action(description="Retrain now", permissions=["steer"])
    @confirmed(
        "Train all kinds of probes on the reviews so far, and compare each with the "
        "active one? It takes minutes; no new probe decides anything before you approve it."
    )
    def retrain(self, request: HttpRequest) -> HttpResponse:
        count = retrainings.reviewed_answers()
        least = {kind: retrainings.min_reviewed(kind) for kind in ANSWER_KINDS}
        taught = [kind for kind in ANSWER_KINDS if least[kind] <= count]
        if not taught:
            message = (
                f"{count:,} answers are reviewed, but {min(least.values()):,} are "
                "needed: review more."
            )
            self.message_user(request, message, messages.ERROR)
        else:
            for kind in taught:
                retrainings.enqueue_retraining(kind, by=caller(request))
            message = "Probes are being trained; reload this page in a few minutes."
            self.message_user(request, message, messages.SUCCESS)
        return redirect("admin:qa_retraining_changelist")

    @action(description="Approve and activate", permissions=["steer"])
    @confirmed(
        "Let the new probe rate the confidence of every answer instead of the former "
        "one? Minimum confidences that were set for the former probe are set for the new "
        "one, so that no more wrong golden answers are shown than before. You can take it "
        "back."
    )
    def approve_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._carry_out(request, object_id, retrainings.approve)

    @action(description="Decline", permissions=["steer"])
    @confirmed("Leave the new probe in shadow?")
    def decline_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._carry_out(request, object_id, retrainings.decline)

    @action(description="Take back", permissions=["steer"])
    @confirmed("Activate the former probe again, and run this one in shadow?")
    def take_this_back(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._carry_out(request, object_id, retrainings.take_back)

    before = column("AUROC before", lambda row: _number(row.champion_auroc))
    after = column("after", lambda retraining: _number(retraining.challenger_auroc))

    @admin.display(description="difference [95 %]")
    def gain(self, retraining: Retraining) -> str:
        before, after = retraining.champion_auroc, retraining.challenger_auroc
        if before is None or after is None:
            return ""
        low, high = retraining.low, retraining.high
        interval = "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
        return f"{after - before:+.3f}{interval}"

    @admin.display(description="answers")
    def golden_said(self, retraining: Retraining) -> str:
        return f"{retraining.golden:,}, {retraining.golden_right:,} of them right"

    @admin.display(description="minimum confidences")
    def minimums(self, retraining: Retraining) -> SafeString | str:
        ids = [pk for pair in retraining.recalibrated for pk in pair]
        found = Policy.objects.select_related("knowledge_base").in_bulk(ids)
        field = CONFIDENCES[CONFIDENCE_BY_KIND[retraining.kind]]
        rows = [
            (
                str(found[after].knowledge_base),
                f"{getattr(found[before], field):.3f}",
                f"{getattr(found[after], field):.3f}",
                str(found[after]),
            )
            for before, after in retraining.recalibrated
            if before in found and after in found
        ]
        heads = ("knowledge base", "before", "after", "policy")
        return table(heads, rows) if rows else "set on approval, if there are any"

    @admin.display(description="answers")
    def labels_said(self, retraining: Retraining) -> str:
        return f"{retraining.labels:,}, {retraining.labels_right:,} of them right"

    @admin.display(description="former probe")
    def champion_link(self, retraining: Retraining) -> SafeString | str:
        return _link(retraining.champion, retraining.champion_auroc)

    @admin.display(description="new probe")
    def challenger_link(self, retraining: Retraining) -> SafeString | str:
        return _link(retraining.challenger, retraining.challenger_auroc)

    @admin.display(description="job")
    def job_link(self, retraining: Retraining) -> SafeString | str:
        if retraining.job_id is None:
            return "deleted"
        url = reverse("admin:jobs_job_change", args=[retraining.job_id])
        return format_html('<a class="text-primary-600" href="{}">its job</a>', url)

    @admin.display(description="what was done")
    def history(self, retraining: Retraining) -> SafeString:
        rows = [
            (
                f"{step.at:%Y-%m-%d %H:%M}",
                step.get_after_display(),
                str(step.by or "automatic"),
                step.note,
            )
            for step in retraining.steps.select_related("by")
        ]
        return table(("when", "what", "who", "note"), rows)

    def _carry_out(
        self, request: HttpRequest, object_id: str, decide: Callable[..., Retraining]
    ) -> HttpResponse:
        key = self.found(request, object_id).pk

        def act() -> str:
            retraining = decide(key, by=caller(request))
            return f"{retraining} is {retraining.get_state_display()}."

        return act_on_row(self, request, key, act)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _link(probe: Probe | None, auroc: float | None) -> SafeString | str:
    if probe is None:
        return "none"
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>, AUROC {}',
        reverse("admin:probes_probe_change", args=[probe.pk]),
        probe,
        _number(auroc),
    )
