from django.urls import path
from rest_framework.routers import SimpleRouter

from qa.answers.api import AnswerViewSet, AskView
from qa.answers.playground import SearchView
from qa.calibration.api import DriftListView, SelfCalibrationViewSet
from qa.dashboard.api import DashboardView
from qa.gaps.api import EscalationViewSet, GapViewSet, NoticeViewSet
from qa.inbox.api import FlagView, InboxView
from qa.policies.api import PolicyViewSet
from qa.privacy.api import PersonViewSet
from qa.reviews.api import ReviewViewSet, SampleViewSet
from qa.votes.api import VoteView, VoteViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("answers", AnswerViewSet, "api_answer")
router.register("escalations", EscalationViewSet, "api_escalation")
router.register("gaps", GapViewSet, "api_gap")
router.register("notices", NoticeViewSet, "api_notice")
router.register("policies", PolicyViewSet, "api_policy")
router.register("reviews/samples", SampleViewSet, "api_review_sample")
router.register("reviews", ReviewViewSet, "api_review")
router.register("votes", VoteViewSet, "api_votes")

urlpatterns = [
    *router.urls,
    path("ask", AskView.as_view(), name="api_ask"),
    path("entries/<int:entry_id>/flag", FlagView.as_view(), name="api_flag"),
    path("inbox", InboxView.as_view(), name="api_inbox"),
    path("search", SearchView.as_view(), name="api_search"),
    path("answers/<uuid:answer_id>/vote", VoteView.as_view(), name="api_vote"),
    path(
        "answers/<uuid:answer_id>/escalate",
        EscalationViewSet.as_view({"post": "escalate"}),
    ),
    path(
        "knowledge-bases/<slug:slug>/self-calibration",
        SelfCalibrationViewSet.as_view({"get": "retrieve", "patch": "partial_update"}),
        name="api_self_calibration",
    ),
    path(
        "knowledge-bases/<slug:slug>/calibrate",
        SelfCalibrationViewSet.as_view({"post": "calibrate"}),
        name="api_calibrate",
    ),
    path(
        "users/<str:username>/export",
        PersonViewSet.as_view({"get": "export"}),
        name="api_person_export",
    ),
    path(
        "users/<str:username>/erase",
        PersonViewSet.as_view({"post": "erase"}),
        name="api_person_erase",
    ),
    path("dashboard", DashboardView.as_view(), name="api_dashboard"),
    path("drift", DriftListView.as_view(), name="api_drift"),
]
