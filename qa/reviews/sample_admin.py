import secrets
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.safestring import SafeString

from accounts.admin_parts import ReadOnlyAdmin, StyledForm, form_page, table, written
from accounts.base_admin import action, holders_of
from accounts.people import person_name
from accounts.roles import caller, where_not_elsewhere
from kb.documents.models import KnowledgeBase
from kb.interface.admin import bases_curated_by
from qa.reviews.models import Review
from qa.reviews.sample_models import ReviewSample
from qa.reviews.sampling import SampleOrder, enqueue_draw

_WINDOW = timedelta(days=7)


class SampleForm(StyledForm):
    knowledge_base = forms.ModelChoiceField(KnowledgeBase.objects.none())
    hours = forms.FloatField(help_text="Hours that the experts have for it.")
    minutes_a_review = forms.FloatField(help_text="Minutes that a review takes.")
    second_share = forms.FloatField(
        label="Share that is judged twice",
        help_text="0 to 1; shows how far experts agree.",
    )
    since = forms.DateField(label="From", help_text="The first day.")
    until = forms.DateField(
        label="Until", help_text="The last day; today counts up to now."
    )
    seed = forms.IntegerField(help_text="The same seed draws the same answers.")

    def __init__(self, data: QueryDict | None, *, drawer: User) -> None:
        today = timezone.localdate()
        bases = bases_curated_by(drawer)
        initial = {
            "knowledge_base": bases.order_by("pk").first(),
            "hours": settings.REVIEW_HOURS_A_WEEK or 1.0,
            "minutes_a_review": settings.REVIEW_MINUTES,
            "second_share": settings.REVIEW_SECOND_SHARE,
            "since": today - _WINDOW,
            "until": today,
            "seed": secrets.randbelow(2**31),
        }
        super().__init__(data, initial=initial)
        field: Any = self.fields["knowledge_base"]
        field.queryset = bases

    def order(self) -> SampleOrder:
        given = dict(self.cleaned_data)
        midnight = timezone.localtime().replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        today = midnight.date()
        since, until = given.pop("since"), min(given.pop("until"), today)
        until += timedelta(days=1)
        base = given.pop("knowledge_base")
        return SampleOrder(
            knowledge_base=base.pk,
            since=midnight + (since - today),
            until=min(midnight + (until - today), timezone.now()),
            **given,
        )


@admin.register(ReviewSample)
class ReviewSampleAdmin(ReadOnlyAdmin):
    """Samples drawn for review: by whom, from which answers, and their progress."""

    when_empty = "Samples of answers that were drawn for review are listed here."
    list_display: ClassVar = [
        "drawn_at", "knowledge_base", "window", "drawn_of", "progress", "hours", "who",
    ]  # fmt: skip
    list_filter: ClassVar = ["knowledge_base", "drawn_at"]
    list_select_related: ClassVar = ["knowledge_base", "drawn_by"]
    actions_list: ClassVar = ["draw"]
    has_draw_permission = holders_of("qa.add_reviewsample")
    fieldsets: ClassVar = [
        (None, {"fields": [
            "knowledge_base", "window", "drawn_of", "progress", "drawn_at", "who",
        ]}),
        ("How it was drawn", {"fields": [
            "hours", "minutes_a_review", "second_share", "seed", "differs_by",
        ]}),
        ("Strata", {"fields": ["strata_table"]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReviewSample]:
        rows: QuerySet[ReviewSample] = super().get_queryset(request)
        rows = rows.filter(where_not_elsewhere(caller(request)))
        done = Q(strata__reviews__state=Review.State.DONE)
        return rows.annotate(
            review_count=Count("strata__reviews"),
            answer_count=Count("strata__reviews", filter=Q(strata__reviews__round=1)),
            done_count=Count("strata__reviews", filter=done),
        )

    @action(description="Draw a sample", permissions=["draw"])
    def draw(self, request: HttpRequest) -> HttpResponse:
        user = caller(request)
        form = SampleForm(request.POST or None, drawer=user)
        if written(form, lambda: enqueue_draw(form.order(), by=user)):
            said = "The sample is being drawn; its reviews will appear in the queue."
            self.message_user(request, said, messages.SUCCESS)
            return redirect("admin:qa_reviewsample_changelist")
        return form_page(
            self,
            request,
            form,
            "Draw a sample",
            intro="Answers are drawn at random from strata: by certainty, outcome and gate, "
            "vote, product line, line of business and day, as far as the hours suffice. "
            "More close decisions are drawn, and no word-for-word answers.",
            form_id="draw-sample",
        )

    @admin.display(description="answers of", ordering="since")
    def window(self, sample: ReviewSample) -> str:
        since = timezone.localtime(sample.since)
        until = timezone.localtime(sample.until - timedelta(microseconds=1))
        return f"{since:%Y-%m-%d} to {until:%Y-%m-%d}"

    @admin.display(description="drawn")
    def drawn_of(self, sample: Any) -> str:
        return f"{sample.answer_count:,} of {sample.population:,} answers"

    @admin.display(description="reviews")
    def progress(self, sample: Any) -> str:
        return f"{sample.done_count:,} of {sample.review_count:,} done"

    @admin.display(description="drawn by", ordering="drawn_by")
    def who(self, sample: ReviewSample) -> str:
        return person_name(sample.drawn_by) or "the schedule"

    @admin.display(description="strata differ by")
    def differs_by(self, sample: ReviewSample) -> str:
        labels = dict(ReviewSample.Dimension.choices)
        return ", ".join(labels[name] for name in sample.dimensions) or "nothing"

    @admin.display(description="strata")
    def strata_table(self, sample: ReviewSample) -> SafeString:
        strata = sample.strata.select_related("product_line", "line_of_business")
        done = Q(reviews__round=1, reviews__state=Review.State.DONE)
        rows = (
            (
                stratum.certainty,
                stratum.outcome,
                stratum.gate.replace("_", " "),
                stratum.get_vote_display(),
                stratum.product_line or "",
                stratum.line_of_business or "",
                stratum.period or "",
                f"{stratum.population:,}",
                stratum.drawn,
                stratum.judged,
            )
            for stratum in strata.annotate(
                judged=Count("reviews", filter=done)
            ).order_by("-population", "pk")
        )
        heads = (
            "certainty", "outcome", "gate", "vote", "product line", "line of business", "day",
            "answers", "drawn", "judged",
        )  # fmt: skip
        return table(heads, rows)
