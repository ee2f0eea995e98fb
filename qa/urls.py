from django.urls import path

from qa.api.answers import AnswerListView, AnswerView, VoteView
from qa.api.ask import AskView, RetryView
from qa.api.policies import DriftListView, PolicyListView, PolicyView
from qa.api.search import SearchView

urlpatterns = [
    path("ask", AskView.as_view(), name="api_ask"),
    path("search", SearchView.as_view(), name="api_search"),
    path("answers", AnswerListView.as_view(), name="api_answers"),
    path("answers/<uuid:answer_id>", AnswerView.as_view(), name="api_answer"),
    path("answers/<uuid:answer_id>/retry", RetryView.as_view(), name="api_retry"),
    path("answers/<uuid:answer_id>/vote", VoteView.as_view(), name="api_vote"),
    path("policies", PolicyListView.as_view(), name="api_policies"),
    path("policies/<int:policy_id>", PolicyView.as_view(), name="api_policy"),
    path("drift", DriftListView.as_view(), name="api_drift"),
]
