from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.views.main import SEARCH_VAR
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts.admin_parts import EstimatingPaginator, ListFilter, written
from accounts.base_admin import badge, display
from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.people import person_name
from accounts.queue_admin import QueueAdmin
from accounts.roles import Role, caller, has_role
from accounts.undo import offer_undo
from kb.tags.models import Tag
from qa.answers.admin import gates_table, shortened
from qa.answers.models import Answer, fetch_evidence
from qa.answers.word_search import has_words
from qa.dashboard.services import read_false_shares
from qa.dashboard.traffic import make_scope
from qa.reviews import services
from qa.reviews.agreement import agreement
from qa.reviews.models import Review, ReviewQuerySet
from qa.training.outlook import NEXT, read_outlook
from qa.votes.models import Vote

from .forms import JudgementForm

_STATES = {"waiting": "warning", "locked": "info", "done": "success", "skipped": "info"}
_OUTCOMES = {"answered": "success", "refused": "warning"}
_SHOWN_VOTES = 5
_ESTIMATED_DAYS = 90
_COUNTED = 1_000  # the most that are counted of the queue; beyond this, "or more"
# The buttons of a review's page, except for saving the judgement.
_STEPS: dict[str, tuple[Callable[..., Review], str]] = {
    "take": (services.take, ""),
    "release": (services.release, "Released to all experts."),
    "skip": (services.skip, "Skipped; another expert will judge it."),
    "undo": (services.undo, "Undone. Your judgement is kept here as your draft."),
}


class _ForWhomFilter(ListFilter):
    title = "for whom"
    parameter_name = "for"
    choices_by_value = {"me": "me", "tags": "my tags", "done": "judged by me"}

    def narrow(
        self, rows: ReviewQuerySet, value: str, request: HttpRequest
    ) -> QuerySet[Review]:
        if value == "me":
            mine = services.review_queue(caller(request)).order_by()
            return rows.filter(pk__in=mine.values("pk"))
        if value == "tags":
            return rows.filter(tag__in=Tag.objects.of_expert(request.user))
        return rows.done().filter(reviewed_by=request.user.pk)


class _RoundFilter(ListFilter):
    """First or second opinion; the choices are fixed, so no query is needed."""

    title = "round"
    parameter_name = "round"
    choices_by_value = {"1": "first", "2": "second"}

    def narrow(
        self, rows: ReviewQuerySet, value: str, request: HttpRequest
    ) -> QuerySet[Review]:
        return rows.filter(round=value)


@admin.register(Review)
class ReviewAdmin(QueueAdmin):
    """The experts' review queue, and the page where an answer is judged."""

    when_empty = (
        "Answers that experts are to judge are listed here, once a sample is drawn."
    )
    shown_state = badge("state", _STATES)
    list_display: ClassVar = [
        "question", "outcome", "tag", "shown_state", "shown_round", "whose", "verdict",
        "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = [
        "state", _ForWhomFilter, "tag", _RoundFilter, "answer__outcome",
        "answer__knowledge_base",
    ]  # fmt: skip
    list_select_related: ClassVar = [
        "answer", "tag", "assignee", "locked_by", "reviewed_by", "skipped_by",
    ]  # fmt: skip
    list_per_page = 25
    paginator = EstimatingPaginator
    search_fields: ClassVar = ["answer__question"]
    search_help_text = "Beginnings of words in the question"
    ordering: ClassVar = ["-created_at", "-pk"]
    list_before_template = "admin/qa/review/_head.html"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Review], search_term: str
    ) -> tuple[QuerySet[Review], bool]:
        if not search_term.strip():
            return queryset, False
        said = has_words(Answer.objects.all(), search_term, of="answer")
        return queryset.filter(said), False

    def assign_to(self, user: User | None, key: int, *, by: User) -> Review:
        return services.assign(key, to=user, by=by)

    def get_urls(self) -> list[URLPattern]:
        view = require_POST(self.open_next)
        own = [path("next/", self.admin_site.admin_view(view), name="qa_review_next")]
        urls: list[URLPattern] = super().get_urls()
        return [*own, *urls]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        queue = services.review_queue(caller(request))
        extra: dict[str, Any] = {"open_count": queue.order_by()[:_COUNTED].count()}
        # These cover all knowledge bases, and are left out of search results.
        if has_role(request.user, Role.SME) and not request.GET.get(SEARCH_VAR):
            false_shares = read_false_shares(make_scope(_ESTIMATED_DAYS))
            extra |= {
                "outlook": read_outlook(*false_shares),
                "next_reviews": NEXT,
                "unattended": services.unattended_tags(),
                "agreements": [each for each in agreement() if each.kappa.pairs],
            }
        return super().changelist_view(request, {**extra, **(extra_context or {})})  # type: ignore[no-any-return]  # unfold ships no types

    def open_next(self, request: HttpRequest) -> HttpResponse:
        """Lock the first review of the queue and open it."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        review = services.take_next(caller(request))
        if review is None:
            self.message_user(request, "Nothing waits for you.", messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:qa_review_changelist"))
        return HttpResponseRedirect(_address(review))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        review = self._found(request, object_id)
        if request.method != "POST":
            return self._page(request, review, JudgementForm(review, caller(request)))
        step = request.POST.get("step", "")
        if step in _STEPS:
            return self._step(request, review, step)
        user = caller(request)
        form = JudgementForm(review, user, request.POST)
        if not written(
            form, lambda: services.judge(review.pk, form.judgement(), by=user)
        ):
            return self._page(request, review, form, status=400)
        _offer_undo(request, review, "Saved.")
        if step == "judge_and_go_on":
            return self.open_next(request)
        return HttpResponseRedirect(_address(review))

    def _step(self, request: HttpRequest, review: Review, step: str) -> HttpResponse:
        act, said = _STEPS[step]
        try:
            act(review.pk, by=caller(request))
        except NescioError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            if step == "skip":
                _offer_undo(request, review, said)
                return self.open_next(request)
            if said:
                self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(_address(review))

    def _found(self, request: HttpRequest, object_id: str) -> Review:
        rows = self.get_queryset(request).select_related(
            *self.list_select_related,
            "answer__knowledge_base",
            "answer__asker",
            "entry",
        )
        votes = Vote.objects.select_related("user").order_by("pk")
        rows = rows.prefetch_related(Prefetch("answer__votes", queryset=votes))
        review: Review | None = rows.filter(pk=number_in(object_id) or 0).first()
        if review is None:
            raise Http404(f"There is no review {object_id[:20]!r}.")
        fetch_evidence(review.answer, request.user)
        return review

    def _page(
        self,
        request: HttpRequest,
        review: Review,
        form: JudgementForm,
        *,
        status: int = 200,
    ) -> HttpResponse:
        user = caller(request)
        is_held = review.is_held(timezone.now())
        is_mine = is_held and review.locked_by_id == user.pk
        is_done = review.state == Review.State.DONE
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": f"Review {review.pk}",
            "review": review,
            "answer": review.answer,
            "votes": list(review.answer.votes.all())[:_SHOWN_VOTES],
            "form": form,
            "gates": gates_table(review.answer),
            "refusal": f"{review.answer.gate}: {review.answer.readable_reason}".replace(
                "_", " "
            ),
            "may_judge": is_mine,
            "may_take": not is_held and not is_done,
            "is_done": is_done,
            "is_readable": review.is_readable_by(user),
            "is_by_other": is_held and not is_mine,
            "may_undo": (is_done and review.reviewed_by_id == user.pk)
            or (
                review.state == Review.State.SKIPPED and review.skipped_by_id == user.pk
            ),
            "is_answer": review.answer.outcome == "answered",
        }
        return TemplateResponse(
            request, "admin/qa/review/page.html", context, status=status
        )

    @admin.display(description="question", ordering="answer__question")
    def question(self, review: Review) -> str:
        return shortened(review.answer.question)

    @display(description="outcome", ordering="answer__outcome", label=_OUTCOMES)
    def outcome(self, review: Review) -> str:
        return review.answer.outcome

    @admin.display(description="round", ordering="round")
    def shown_round(self, review: Review) -> str:
        return "second opinion" if review.round == 2 else "first"

    @admin.display(description="expert")
    def whose(self, review: Review) -> str:
        held = review.locked_by if review.state == Review.State.LOCKED else None
        by = review.reviewed_by if review.state == Review.State.DONE else None
        return person_name(by or held or review.assignee)

    @admin.display(description="verdict")
    def verdict(self, review: Review) -> str:
        if review.state != Review.State.DONE or review.is_blind:
            return ""
        if review.should_be_answered is not None:
            return "false refusal" if review.should_be_answered else "rightly refused"
        return "right to show" if review.is_right_to_show else "false answer"


def _offer_undo(request: HttpRequest, review: Review, said: str) -> None:
    noted, back = {"review": review.pk}, _address(review)
    offer_undo(request, said, kind=services.UNDO, before=noted, back=back)


def _address(review: Review) -> str:
    return reverse("admin:qa_review_change", args=[review.pk])
