"""Former states of rows: the parts of the past that revisions do not record."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import models


class FormerRowQuerySet(models.QuerySet["FormerRow"]):
    def at(
        self, moment: datetime, table: str, ids: Iterable[int] | None = None
    ) -> Mapping[int, Mapping[str, Any] | None]:
        """Return {id: row at `moment`} for rows changed since; None: not yet created.

        Rows that are missing in the result have not changed.
        """
        rows = self.filter(source=table, until__gt=moment)
        if ids is not None:
            rows = rows.filter(row_id__in=ids)
        earliest = rows.order_by("row_id", "until", "pk").distinct("row_id")
        return dict(earliest.values_list("row_id", "was"))


class FormerRow(models.Model):
    """A former state of a row, written by triggers (`kb/migrations/past.sql`).

    Readable only in an unrestricted context, not as a single user.
    """

    source = models.CharField(max_length=40, help_text="Name of the table.")
    row_id = models.BigIntegerField()
    was = models.JSONField(null=True, help_text="null: the row did not exist before.")
    until = models.DateTimeField()

    objects = FormerRowQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["source", "row_id", "until"], name="former_row_at")
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.row_id} until {self.until:%Y-%m-%d %H:%M}"
