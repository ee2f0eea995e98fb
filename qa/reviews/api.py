"""Reviews over REST: the queue, judgements, samples and agreement."""

from collections.abc import Sequence

import django_filters
from django.db.models import Prefetch, Q, QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_202_ACCEPTED, HTTP_204_NO_CONTENT

from accounts.pagination import NewestFirstPagination
from accounts.rest import MomentFilter, RowViewSet, StrictFilterSet, csv_download
from accounts.roles import (
    IsCuratorSomewhere,
    IsSME,
    IsSMESomewhere,
    where_not_elsewhere,
)
from jobs.api import JobSerializer
from kb.interface.api import KnowledgeBaseFilter, TagFilter
from qa.answers.models import Answer, fetch_evidence
from qa.answers.submitted_text import EntryOptions
from qa.exceptions import ReviewNotFoundError
from qa.reviews.agreement import agreement
from qa.reviews.judgements import Correction, Judgement, csv_lines
from qa.reviews.models import Review
from qa.reviews.sample_models import ReviewSample, ReviewStratum
from qa.reviews.sampling import SampleOrder, enqueue_draw
from qa.reviews.serializers import (
    AgreementSerializer,
    JudgementSerializer,
    NewSampleSerializer,
    OneReviewSerializer,
    ReviewSerializer,
    SampleSerializer,
)
from qa.reviews.services import judge, release, skip, take, take_next, undo

_HELD = {409: "Somebody else holds it, or it is done."}
_REVIEW_OR_HELD = {200: OneReviewSerializer, **_HELD}


class ReviewFilter(StrictFilterSet):
    state = django_filters.ChoiceFilter(choices=Review.State.choices)
    tag = TagFilter()
    outcome = django_filters.ChoiceFilter(
        field_name="answer__outcome", choices=Answer.Outcome.choices
    )
    knowledge_base = KnowledgeBaseFilter("answer__knowledge_base")
    reviewed_after = MomentFilter("reviewed_at", "gte")
    reviewed_before = MomentFilter("reviewed_at", "lt")


class ReviewViewSet(RowViewSet[Review]):
    permission_classes = [IsSMESomewhere]
    serializer_class: type[ReviewSerializer] = OneReviewSerializer
    filterset_class = ReviewFilter
    lookup_url_kwarg = "review_id"
    not_found = ReviewNotFoundError

    def get_queryset(self) -> QuerySet[Review]:
        return Review.objects.visible_to(self.request.user).select_related(
            "answer__knowledge_base", "tag", "assignee", "locked_by", "reviewed_by"
        )

    def get_object(self) -> Review:
        found = super().get_object()
        fetch_evidence(found.answer, self.request.user)
        return found

    @extend_schema(responses=ReviewSerializer(many=True))
    def list(self, request: Request) -> Response:
        """List reviews, newest first."""
        self.serializer_class = ReviewSerializer
        return super().list(request)

    @extend_schema(filters=True, responses={(200, "text/csv"): OpenApiTypes.STR})
    @action(detail=False, pagination_class=None)
    def export(self, request: Request) -> StreamingHttpResponse:
        """Download judgements as CSV, newest first, each with its stratum's counts."""
        rows = self.filter_queryset(self.get_queryset()).filter(
            Q(is_blind=False) | Q(reviewed_by=self.user), state=Review.State.DONE
        )
        return csv_download(csv_lines(rows.select_related("stratum")), "reviews")

    @extend_schema(
        request=None, responses={200: OneReviewSerializer, 204: "Nothing waits."}
    )
    @action(detail=False, methods=["post"])
    def next(self, request: Request) -> Response:
        """Lock the first review of the queue: one's own, then those of one's tags."""
        found = take_next(self.user)
        if found is None:
            return Response(status=HTTP_204_NO_CONTENT)
        self.kwargs[self.lookup_url_kwarg] = found.pk
        return self.row_response()

    @extend_schema(responses=AgreementSerializer(many=True))
    @action(
        detail=False,
        filterset_class=None,
        pagination_class=None,
        permission_classes=[IsSME],
    )
    def agreement(self, request: Request) -> Response:
        """Return Cohen's kappa of first and second reviews, with its interval."""
        return Response(AgreementSerializer(agreement(), many=True).data)

    def retrieve(self, request: Request, review_id: int) -> Response:
        """Return a review; the answer's own address has its evidence and gates."""
        return self.row_response()

    @extend_schema(operation_id="reviews_hold", request=None, responses=_REVIEW_OR_HELD)
    @action(detail=True, methods=["put"])
    def lock(self, request: Request, review_id: int) -> Response:
        """Lock it, so that nobody else judges it in the meantime."""
        take(review_id, by=self.user)
        return self.row_response()

    @extend_schema(responses=_REVIEW_OR_HELD)
    @lock.mapping.delete
    def release(self, request: Request, review_id: int) -> Response:
        """Release it to all experts."""
        release(review_id, by=self.user)
        return self.row_response()

    @extend_schema(request=None, responses=_REVIEW_OR_HELD)
    @action(detail=True, methods=["post"])
    def skip(self, request: Request, review_id: int) -> Response:
        """Skip it: you are not asked again; others are, after those waiting."""
        skip(review_id, by=self.user)
        return self.row_response()

    @extend_schema(
        operation_id="reviews_judge",
        request=JudgementSerializer,
        responses=_REVIEW_OR_HELD,
    )
    @action(detail=True, methods=["put"])
    def judgement(self, request: Request, review_id: int) -> Response:
        """Judge it, and optionally add or edit an entry."""
        given = self.validated(JudgementSerializer)
        add, edit = given.pop("add"), given.pop("mend")
        knowledge = EntryOptions(**add) if add else Correction(**edit) if edit else None
        judge(review_id, Judgement(**given, knowledge=knowledge), by=self.user)
        return self.row_response()

    @extend_schema(responses=_REVIEW_OR_HELD)
    @judgement.mapping.delete
    def undo(self, request: Request, review_id: int) -> Response:
        """Undo one's own judgement, which is kept as a draft, or one's own skipping."""
        undo(review_id, by=self.user)
        return self.row_response()


class SamplePagination(NewestFirstPagination):
    ordering = ("-drawn_at", "-pk")


class SampleViewSet(RowViewSet[ReviewSample]):
    permission_classes = [IsSMESomewhere]
    serializer_class = SampleSerializer
    pagination_class = SamplePagination
    filterset_fields: list[str] = []

    def get_permissions(self) -> Sequence[BasePermission]:
        is_draw = self.action == "create"
        return [IsCuratorSomewhere() if is_draw else IsSMESomewhere()]

    def get_queryset(self) -> QuerySet[ReviewSample]:
        strata = ReviewStratum.objects.select_related(
            "product_line", "line_of_business"
        )
        return (
            ReviewSample.objects.filter(where_not_elsewhere(self.request.user))
            .select_related("knowledge_base", "drawn_by")
            .prefetch_related(Prefetch("strata", queryset=strata))
        )

    @extend_schema(operation_id="review_samples_list")
    def list(self, request: Request) -> Response:
        """List samples with their strata, newest first."""
        return super().list(request)

    @extend_schema(
        operation_id="review_samples_draw",
        request=NewSampleSerializer,
        responses={202: JobSerializer},
    )
    def create(self, request: Request) -> Response:
        """Draw a sample in the background; for curators."""
        given = self.validated(NewSampleSerializer)
        base = given.pop("knowledge_base")
        job = enqueue_draw(SampleOrder(knowledge_base=base.pk, **given), by=self.user)
        return Response(JobSerializer(job).data, HTTP_202_ACCEPTED)
