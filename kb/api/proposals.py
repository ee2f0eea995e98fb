from collections.abc import Sequence
from typing import Any

import django_filters
from django.db import transaction
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import IsCurator
from jobs.api.serializers import JobSerializer
from kb.exceptions import ProposalNotFoundError
from kb.models import Entry, Proposal, ProposalQuerySet
from kb.services.enrichment_job import plan_of, start_enrichment
from kb.services.proposals import decide

from .filters import KnowledgeBaseFilter
from .permissions import caller
from .proposal_serializers import (
    DecidedSerializer,
    DecisionSerializer,
    NewEnrichmentSerializer,
    ProposalSerializer,
)


class ProposalFilter(django_filters.FilterSet):
    """What a list of proposals may be narrowed by."""

    knowledge_base = KnowledgeBaseFilter()
    state = django_filters.MultipleChoiceFilter(
        choices=Proposal.State.choices, label="May be given more than once."
    )

    class Meta:
        model = Proposal
        fields: list[str] = []


def _readable(request: Request) -> ProposalQuerySet:
    return Proposal.objects.visible_to(request.user).select_related(
        "knowledge_base", "entry__audience", "decided_by"
    )


def _context(request: Request, proposals: Sequence[Proposal]) -> dict[str, Any]:
    """Return which of the near entries the caller may see; one query for all."""
    near = {entry for proposal in proposals for entry, _ in proposal.nearest}
    visible = Entry.objects.visible_to(request.user).filter(pk__in=near)
    return {
        "request": request,
        "visible": frozenset(visible.order_by().values_list("pk", flat=True)),
    }


@extend_schema_view(
    get=extend_schema(operation_id="proposals_list", summary="List proposals")
)
class ProposalListView(ListAPIView[Proposal]):
    """What language models proposed to know, newest first; for curators."""

    permission_classes = [IsCurator]
    throttle_scope = "user"
    serializer_class = ProposalSerializer
    filterset_class = ProposalFilter

    def get_queryset(self) -> ProposalQuerySet:
        """Return the proposals for the caller's audiences."""
        return _readable(self.request)

    def list(self, request: Request, *_args: object, **_kwargs: object) -> Response:
        """Return a page of proposals."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        shown = ProposalSerializer(page, many=True, context=_context(request, page))
        return self.get_paginated_response(shown.data)

    @extend_schema(
        operation_id="proposals_create",
        summary="Let a language model propose knowledge",
        request=NewEnrichmentSerializer,
        responses={202: JobSerializer},
    )
    def post(self, request: Request) -> Response:
        """Start a background job that makes proposals from seed questions."""
        body = NewEnrichmentSerializer(data=request.data, context={"request": request})
        body.is_valid(raise_exception=True)
        given = dict(body.validated_data)
        plan = plan_of(most=given.pop("count"), **given)
        job = start_enrichment(plan, by=caller(request))
        return Response(JobSerializer(job).data, status=status.HTTP_202_ACCEPTED)


class ProposalView(GenericAPIView[Proposal]):
    """One proposal; for curators."""

    permission_classes = [IsCurator]
    throttle_scope = "user"
    serializer_class = ProposalSerializer
    queryset = Proposal.objects.none()

    @extend_schema(operation_id="proposals_read", summary="Read a proposal")
    def get(self, request: Request, proposal_id: int) -> Response:
        """Return a proposal."""
        found = _readable(request).filter(pk=proposal_id).first()
        if found is None:
            raise ProposalNotFoundError(
                f"There is no proposal {proposal_id} that you may see."
            )
        shown = ProposalSerializer(found, context=_context(request, [found]))
        return Response(shown.data)


class ProposalDecisionView(GenericAPIView[Proposal]):
    """Approving, verifying and rejecting in bulk; for curators."""

    permission_classes = [IsCurator]
    throttle_scope = "user"
    serializer_class = DecisionSerializer
    queryset = Proposal.objects.none()

    @extend_schema(
        operation_id="proposals_decide",
        summary="Approve, verify or reject proposals",
        request=DecisionSerializer,
        responses={
            200: DecidedSerializer,
            404: OpenApiResponse(description="One is not there, or not yours to see."),
            409: OpenApiResponse(description="One was decided on before."),
        },
    )
    def post(self, request: Request) -> Response:
        """Decide on proposals, on all of them or on none."""
        body = DecisionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = dict(body.validated_data)
        ids = sorted(set(given.pop("ids")))
        visible = set(
            _readable(request).filter(pk__in=ids).values_list("pk", flat=True)
        )
        missing = [number for number in ids if number not in visible]
        if missing:
            raise ProposalNotFoundError(
                f"There is no proposal {missing[0]} that you may see."
            )
        with transaction.atomic():
            for number in ids:
                decide(proposal_id=number, by=caller(request), **given)
        return Response({"decided": ids})
