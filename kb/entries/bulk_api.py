"""Verifying or retiring many entries in one request."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import caller
from kb.entries import bulk
from kb.entries.models import Entry
from kb.entries.values import REASON_LIMIT
from kb.interface.api import AgentReadsCuratorWrites

_ACTIONS = [
    (each.value, each.value) for each in (bulk.Action.VERIFY, bulk.Action.RETIRE)
]
_RESULTS = [(each, each) for each in ("changed", "unchanged", "failed")]
_GREATEST_ID = 2**63 - 1


class BulkChangeSerializer(rest.StrictSerializer):
    """A bulk change: which entries, what to do, and why."""

    ids = rest.StrictListField(
        child=rest.StrictIntegerField(min_value=1, max_value=_GREATEST_ID),
        min_length=1,
        max_length=bulk.BATCH,
    )
    action = serializers.ChoiceField(choices=_ACTIONS)
    reason = rest.StrictCharField(
        max_length=REASON_LIMIT,
        allow_blank=True,
        default="",
        help_text="Kept with the revision of each.",
    )


class _OutcomeSerializer(serializers.Serializer[Any]):
    """The outcome for one entry."""

    id = serializers.IntegerField()
    result = serializers.ChoiceField(choices=_RESULTS)
    code = serializers.CharField(help_text="Code of the error, or empty.")
    message = serializers.CharField(help_text="Why it failed, or empty.")


class BulkReportSerializer(serializers.Serializer[Any]):
    """The outcome for each entry, in the order of the ids."""

    changed = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="Already as requested.")
    failed = serializers.IntegerField()
    entries = _OutcomeSerializer(many=True)


class BulkEntryViewSet(rest.ResourceViewSet[Entry]):
    permission_classes = [AgentReadsCuratorWrites]
    serializer_class = BulkReportSerializer
    filter_backends = []
    pagination_class = None

    @extend_schema(
        summary="Verify or retire many entries",
        request=BulkChangeSerializer,
        responses=BulkReportSerializer,
    )
    @action(detail=False, methods=["post"])
    def bulk(self, request: Request) -> Response:
        """Verify or retire up to 500 entries; failures do not affect the others.

        An entry with an open contradiction is not verified: resolve the conflict, or
        verify it alone with `override`.
        """
        given = self.validated(BulkChangeSerializer)
        ids = list(dict.fromkeys(given["ids"]))
        change = bulk.BulkChange(bulk.Action(given["action"]), reason=given["reason"])
        return Response(
            _shown(ids, bulk.change_visible(ids, change, by=caller(request)))
        )


def _shown(ids: list[int], report: bulk.BulkReport) -> dict[str, Any]:
    failed = {each.entry_id: each for each in report.failures}
    same = set(report.unchanged_ids)

    def result(pk: int) -> dict[str, Any]:
        if failure := failed.get(pk):
            said = {"code": failure.code, "message": failure.message}
            return {"id": pk, "result": "failed", **said}
        what = "unchanged" if pk in same else "changed"
        return {"id": pk, "result": what, "code": "", "message": ""}

    return {
        "changed": report.changed,
        "unchanged": report.unchanged,
        "failed": len(failed),
        "entries": [result(pk) for pk in ids],
    }
