from typing import ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from accounts.admin_parts import ReadOnlyAdmin
from qa.calibration.models import DriftReading
from qa.policies.models import Policy


@admin.register(DriftReading)
class DriftReadingAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "state", "answers", "drifted", "first_at", "last_at"]
    list_filter = ["has_drifted", "checked_at"]
    fields: ClassVar = [
        "policy", "state", "drifted", "answers", "first_at", "last_at", "signals",
        "checked_at",
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[DriftReading]:
        rows: QuerySet[DriftReading] = super().get_queryset(request)
        return rows.select_related("certificate__policy")

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
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

    @admin.display(description="policy")
    def policy(self, reading: DriftReading) -> Policy:
        return reading.certificate.policy

    def get_readonly_fields(
        self, request: HttpRequest, obj: DriftReading | None = None
    ) -> list[str]:
        return self.fields
