from django.urls import path

from qa.answers.api import AnswerListView, AnswerView, AskView, RetryView
from qa.answers.playground import SearchView
from qa.dashboard.api import DashboardView
from qa.gaps.api import (
    GapDismissView,
    GapDraftView,
    GapLinkView,
    GapListView,
    GapOwnerView,
    GapProposeView,
    GapReopenView,
    GapView,
    NoticeListView,
    NoticeReadView,
)
from qa.gaps.escalation_api import (
    AssigneeView,
    CloseView,
    EscalateView,
    EscalationListView,
    EscalationView,
    ReplyView,
)
from qa.policies.api import DriftListView, PolicyListView, PolicyView
from qa.reviews.api import (
    AgreementView,
    ReviewExportView,
    ReviewJudgementView,
    ReviewListView,
    ReviewLockView,
    ReviewNextView,
    ReviewSkipView,
    ReviewView,
    SampleListView,
)
from qa.votes.api import VoteExportView, VoteHandledView, VoteListView, VoteView

urlpatterns = [
    path("ask", AskView.as_view(), name="api_ask"),
    path("search", SearchView.as_view(), name="api_search"),
    path("answers", AnswerListView.as_view(), name="api_answers"),
    path("answers/<uuid:answer_id>", AnswerView.as_view(), name="api_answer"),
    path("answers/<uuid:answer_id>/retry", RetryView.as_view(), name="api_retry"),
    path("answers/<uuid:answer_id>/vote", VoteView.as_view(), name="api_vote"),
    path(
        "answers/<uuid:answer_id>/escalate",
        EscalateView.as_view(),
        name="api_escalate",
    ),
    path("escalations", EscalationListView.as_view(), name="api_escalations"),
    path(
        "escalations/<int:escalation_id>",
        EscalationView.as_view(),
        name="api_escalation",
    ),
    path(
        "escalations/<int:escalation_id>/reply",
        ReplyView.as_view(),
        name="api_escalation_reply",
    ),
    path(
        "escalations/<int:escalation_id>/close",
        CloseView.as_view(),
        name="api_escalation_close",
    ),
    path(
        "escalations/<int:escalation_id>/assignee",
        AssigneeView.as_view(),
        name="api_escalation_assignee",
    ),
    path("gaps", GapListView.as_view(), name="api_gaps"),
    path("gaps/<int:gap_id>", GapView.as_view(), name="api_gap"),
    path("gaps/<int:gap_id>/draft", GapDraftView.as_view(), name="api_gap_draft"),
    path("gaps/<int:gap_id>/link", GapLinkView.as_view(), name="api_gap_link"),
    path("gaps/<int:gap_id>/propose", GapProposeView.as_view(), name="api_gap_propose"),
    path("gaps/<int:gap_id>/dismiss", GapDismissView.as_view(), name="api_gap_dismiss"),
    path("gaps/<int:gap_id>/reopen", GapReopenView.as_view(), name="api_gap_reopen"),
    path("gaps/<int:gap_id>/owner", GapOwnerView.as_view(), name="api_gap_owner"),
    path("notices", NoticeListView.as_view(), name="api_notices"),
    path(
        "notices/<int:notice_id>/read", NoticeReadView.as_view(), name="api_notice_read"
    ),
    path("votes", VoteListView.as_view(), name="api_votes"),
    path("votes/export", VoteExportView.as_view(), name="api_votes_export"),
    path(
        "votes/<int:vote_id>/handled",
        VoteHandledView.as_view(),
        name="api_vote_handled",
    ),
    path("reviews", ReviewListView.as_view(), name="api_reviews"),
    path("reviews/agreement", AgreementView.as_view(), name="api_agreement"),
    path("reviews/export", ReviewExportView.as_view(), name="api_reviews_export"),
    path("reviews/next", ReviewNextView.as_view(), name="api_reviews_next"),
    path("reviews/samples", SampleListView.as_view(), name="api_review_samples"),
    path("reviews/<int:review_id>", ReviewView.as_view(), name="api_review"),
    path(
        "reviews/<int:review_id>/lock", ReviewLockView.as_view(), name="api_review_lock"
    ),
    path(
        "reviews/<int:review_id>/skip", ReviewSkipView.as_view(), name="api_review_skip"
    ),
    path(
        "reviews/<int:review_id>/judgement",
        ReviewJudgementView.as_view(),
        name="api_review_judgement",
    ),
    path("policies", PolicyListView.as_view(), name="api_policies"),
    path("policies/<int:policy_id>", PolicyView.as_view(), name="api_policy"),
    path("dashboard", DashboardView.as_view(), name="api_dashboard"),
    path("drift", DriftListView.as_view(), name="api_drift"),
]
