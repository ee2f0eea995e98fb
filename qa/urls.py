from django.urls import path
from rest_framework.routers import SimpleRouter

from qa.answers.api import AnswerListView, AnswerView, AskView, RetryView
from qa.answers.playground import SearchView
from qa.dashboard.api import DashboardView
from qa.gaps.api import EscalationViewSet, GapViewSet, NoticeViewSet
from qa.policies.api import DriftListView, PolicyListView, PolicyView
from qa.reviews.api import ReviewViewSet, SampleViewSet
from qa.votes.api import VoteExportView, VoteHandledView, VoteListView, VoteView

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("escalations", EscalationViewSet, "api_escalation")
router.register("gaps", GapViewSet, "api_gap")
router.register("notices", NoticeViewSet, "api_notice")
router.register("reviews/samples", SampleViewSet, "api_review_sample")
router.register("reviews", ReviewViewSet, "api_review")

urlpatterns = [
    *router.urls,
    path("ask", AskView.as_view(), name="api_ask"),
    path("search", SearchView.as_view(), name="api_search"),
    path("answers", AnswerListView.as_view(), name="api_answers"),
    path("answers/<uuid:answer_id>", AnswerView.as_view(), name="api_answer"),
    path("answers/<uuid:answer_id>/retry", RetryView.as_view(), name="api_retry"),
    path("answers/<uuid:answer_id>/vote", VoteView.as_view(), name="api_vote"),
    path(
        "answers/<uuid:answer_id>/escalate",
        EscalationViewSet.as_view({"post": "escalate"}),
    ),
    path("votes", VoteListView.as_view(), name="api_votes"),
    path("votes/export", VoteExportView.as_view(), name="api_votes_export"),
    path(
        "votes/<int:vote_id>/handled",
        VoteHandledView.as_view(),
        name="api_vote_handled",
    ),
    path("policies", PolicyListView.as_view(), name="api_policies"),
    path("policies/<int:policy_id>", PolicyView.as_view(), name="api_policy"),
    path("dashboard", DashboardView.as_view(), name="api_dashboard"),
    path("drift", DriftListView.as_view(), name="api_drift"),
]
