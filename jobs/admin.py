from collections.abc import Callable
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from accounts.admin_parts import ReadOnlyAdmin, confirmed
from accounts.base_admin import action, badge, display, holders_of
from accounts.exceptions import NescioError
from accounts.people import AnyUser
from accounts.roles import Role, reach_of
from jobs.models import Job, JobQuerySet
from jobs.services import request_cancel, retry

_COLOURS = {
    Job.State.QUEUED: "info",
    Job.State.RUNNING: "warning",
    Job.State.SUCCEEDED: "success",
    Job.State.FAILED: "danger",
}


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    when_empty = "Work in the background, such as imports and exports, is listed here with its progress."
    list_display = [
        "kind",
        "shown_state",
        "progress",
        "attempts",
        "owner",
        "created_at",
    ]
    list_filter = ["state", "kind"]
    list_select_related = ["owner"]
    search_fields = ["kind", "owner__username", "error"]
    actions = ["cancel_selected", "retry_selected"]
    actions_detail = ["cancel_this", "retry_this"]
    has_steer_permission = holders_of(Role.ADMIN)
    shown_state = badge("state", _COLOURS)
    fieldsets = [
        (None, {"fields": ["kind", "state", "progress", "owner", "error"]}),
        ("Work", {"fields": ["parameters", "cursor", "result", "idempotency_key"]}),
        ("Runs", {"fields": [
            "attempts", "attempts_without_progress", "max_attempts", "worker",
            "lease_until", "notified_at", "not_before", "cancel_requested",
            "created_at", "started_at", "finished_at",
        ]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Return all jobs; users with roles in single knowledge bases see their own."""
        rows: JobQuerySet = super().get_queryset(request)
        if reach_of(request.user, Role.CURATOR) is None:
            return rows
        return rows.visible_to(request.user)

    @display(description="progress")
    def progress(self, job: Job) -> str:
        if job.total is None:
            return f"{job.done}"
        return format_html(
            '<progress max="{}" value="{}" aria-label="progress"></progress> {} of {}',
            max(job.total, 1),
            min(job.done, job.total),
            job.done,
            job.total,
        )

    @admin.action(description="Cancel the selected jobs", permissions=["steer"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        for job_id in queryset.values_list("pk", flat=True):
            self._steer(request, request_cancel, job_id, "will stop")

    @admin.action(description="Retry the selected jobs", permissions=["steer"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        for job_id in queryset.values_list("pk", flat=True):
            self._steer(request, retry, job_id, "goes on")

    @action(description="Cancel", icon="cancel", permissions=["steer"])
    @confirmed("Cancel this job?")
    def cancel_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        self._steer(
            request, request_cancel, self.found(request, object_id).pk, "will stop"
        )
        return redirect(reverse("admin:jobs_job_change", args=[object_id]))

    @action(description="Retry", icon="replay", permissions=["steer"])
    @confirmed("Retry this job?")
    def retry_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        self._steer(request, retry, self.found(request, object_id).pk, "goes on")
        return redirect(reverse("admin:jobs_job_change", args=[object_id]))

    def _steer(
        self, request: HttpRequest, change: Callable[..., Job], job_id: UUID, said: str
    ) -> None:
        by: AnyUser = request.user
        try:
            job = change(job_id, by=by)
        except NescioError as error:
            self.message_user(request, str(error), messages.WARNING)
        else:
            self.message_user(request, f"Job {job.kind} {said}.", messages.SUCCESS)
