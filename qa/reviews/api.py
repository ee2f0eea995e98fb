"""Reviews over REST: the queue, the judgement, the samples, the agreement."""

import django_filters
from django.db.models import Prefetch, Q, QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_202_ACCEPTED, HTTP_204_NO_CONTENT
from rest_framework.views import APIView

from accounts.filters import NonEmptyForm, SlugFilter
from accounts.pagination import NewestFirstPagination
from accounts.roles import IsSME, Role, caller, has_role
from jobs.api import JobSerializer
from qa.answers.models import Answer, fetch_evidence
from qa.exceptions import ReviewNotFoundError
from qa.reviews.agreement import agreement
from qa.reviews.judgements import csv_lines
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

_HELD = {409: OpenApiResponse(description="Somebody else holds it, or it is done.")}


class ReviewFilter(django_filters.FilterSet):
    """By who is to act, of what, and what was judged."""

    state = django_filters.ChoiceFilter(choices=Review.State.choices)
    tag = SlugFilter("tag__slug")
    outcome = django_filters.ChoiceFilter(
        field_name="answer__outcome", choices=Answer.Outcome.choices
    )
    knowledge_base = SlugFilter("answer__knowledge_base__slug")
    reviewed_after = django_filters.IsoDateTimeFilter("reviewed_at", "gte")
    reviewed_before = django_filters.IsoDateTimeFilter("reviewed_at", "lt")

    class Meta:
        model = Review
        fields: list[str] = []
        form = NonEmptyForm


class _ReviewsView(GenericAPIView[Review]):
    permission_classes = [IsSME]
    throttle_scope = "user"
    serializer_class = ReviewSerializer

    def get_queryset(self) -> QuerySet[Review]:
        return Review.objects.visible_to(self.request.user).select_related(
            "answer__knowledge_base", "tag", "assignee", "locked_by", "reviewed_by"
        )

    def shown(self, review_id: int) -> Response:
        """Return a review as it stands.

        Raises:
            ReviewNotFoundError: There is none that the expert may see.
        """
        found = self.get_queryset().filter(pk=review_id).first()
        if found is None:
            raise ReviewNotFoundError(f"There is no review {review_id}.")
        fetch_evidence(found.answer, self.request.user)
        context = self.get_serializer_context()
        return Response(OneReviewSerializer(found, context=context).data)


class ReviewListView(_ReviewsView, ListAPIView[Review]):
    """What waits, and what was judged."""

    pagination_class = NewestFirstPagination
    filterset_class = ReviewFilter

    @extend_schema(operation_id="reviews_list")
    def get(self, request: Request) -> Response:
        """List reviews, newest first."""
        return self.list(request)


class ReviewExportView(_ReviewsView):
    """Judgements as a table."""

    filterset_class = ReviewFilter

    @extend_schema(
        operation_id="reviews_export", responses={(200, "text/csv"): OpenApiTypes.STR}
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Download judgements as CSV, newest first, each with what it weighs."""
        rows = self.filter_queryset(self.get_queryset()).filter(
            Q(is_blind=False) | Q(reviewed_by=caller(request)),
            state=Review.State.DONE,
        )
        return StreamingHttpResponse(
            csv_lines(rows.select_related("stratum")),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="reviews.csv"'},
        )


class ReviewNextView(_ReviewsView):
    """What is to be judged next."""

    @extend_schema(
        operation_id="reviews_next",
        request=None,
        responses={
            200: OneReviewSerializer,
            204: OpenApiResponse(description="Nothing waits."),
        },
    )
    def post(self, request: Request) -> Response:
        """Hold the first review of one's queue: one's own, then those of one's tags."""
        found = take_next(caller(self.request))
        return self.shown(found.pk) if found else Response(status=HTTP_204_NO_CONTENT)


class ReviewView(_ReviewsView):
    """One of them."""

    @extend_schema(operation_id="reviews_read", responses=OneReviewSerializer)
    def get(self, request: Request, review_id: int) -> Response:
        """Read a review; the answer's own address has evidence and gates."""
        return self.shown(review_id)


class ReviewLockView(_ReviewsView):
    """Who holds it."""

    @extend_schema(
        operation_id="reviews_hold",
        request=None,
        responses={200: OneReviewSerializer, **_HELD},
    )
    def put(self, request: Request, review_id: int) -> Response:
        """Hold it: nobody else judges it meanwhile."""
        take(review_id, by=caller(self.request))
        return self.shown(review_id)

    @extend_schema(
        operation_id="reviews_release", responses={200: OneReviewSerializer, **_HELD}
    )
    def delete(self, request: Request, review_id: int) -> Response:
        """Give it back to all experts."""
        release(review_id, by=caller(self.request))
        return self.shown(review_id)


class ReviewSkipView(_ReviewsView):
    """Passing it on."""

    @extend_schema(
        operation_id="reviews_skip",
        request=None,
        responses={200: OneReviewSerializer, **_HELD},
    )
    def post(self, request: Request, review_id: int) -> Response:
        """Pass it on: one is not asked again, others after what waits."""
        skip(review_id, by=caller(self.request))
        return self.shown(review_id)


class ReviewJudgementView(_ReviewsView):
    """What an expert says."""

    @extend_schema(
        operation_id="reviews_judge",
        request=JudgementSerializer,
        responses={200: OneReviewSerializer, **_HELD},
    )
    def put(self, request: Request, review_id: int) -> Response:
        """Judge it, and add or mend an entry with it."""
        given = JudgementSerializer(data=request.data, context={"request": request})
        given.is_valid(raise_exception=True)
        judge(review_id, given.judgement(), by=caller(self.request))
        return self.shown(review_id)

    @extend_schema(
        operation_id="reviews_undo", responses={200: OneReviewSerializer, **_HELD}
    )
    def delete(self, request: Request, review_id: int) -> Response:
        """Take back one's own judgement, which stays as a draft, or one's passing on."""
        undo(review_id, by=caller(self.request))
        return self.shown(review_id)


class AgreementView(APIView):
    """How far experts agree."""

    permission_classes = [IsSME]
    throttle_scope = "user"

    @extend_schema(
        operation_id="reviews_agreement", responses=AgreementSerializer(many=True)
    )
    def get(self, request: Request) -> Response:
        """Read Cohen's kappa of first and second reviews, with its interval."""
        return Response(AgreementSerializer(agreement(), many=True).data)


class SamplePagination(NewestFirstPagination):
    """Pages of samples, the last drawn first."""

    ordering = ("-drawn_at", "-pk")


class SampleListView(ListAPIView[ReviewSample]):
    """What was drawn for review."""

    permission_classes = [IsSME]
    throttle_scope = "user"
    serializer_class = SampleSerializer
    pagination_class = SamplePagination
    filterset_fields: list[str] = []

    def get_queryset(self) -> QuerySet[ReviewSample]:
        strata = ReviewStratum.objects.select_related(
            "product_line", "line_of_business"
        )
        return ReviewSample.objects.select_related(
            "knowledge_base", "drawn_by"
        ).prefetch_related(Prefetch("strata", queryset=strata))

    @extend_schema(operation_id="review_samples_list")
    def get(self, request: Request) -> Response:
        """List samples with their strata, newest first."""
        return self.list(request)

    @extend_schema(
        operation_id="review_samples_draw",
        request=NewSampleSerializer,
        responses={202: JobSerializer},
    )
    def post(self, request: Request) -> Response:
        """Draw a sample in the background; for curators."""
        if not has_role(request.user, Role.CURATOR):
            raise PermissionDenied("This needs the role curator.")
        given = NewSampleSerializer(data=request.data, context={"request": request})
        given.is_valid(raise_exception=True)
        values = dict(given.validated_data)
        base = values.pop("knowledge_base")
        order = SampleOrder(knowledge_base=base.pk, **values)
        job = enqueue_draw(order, by=caller(request))
        return Response(JobSerializer(job).data, HTTP_202_ACCEPTED)
