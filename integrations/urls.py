from django.urls import path

from integrations.chat.api import (
    SlackActionView,
    SlackCommandView,
    SlackEventsView,
    TeamsView,
)
from integrations.dify.api import RetrievalView
from integrations.mcp.api import McpView
from integrations.metrics.api import MetricsView
from integrations.openai.api import ChatView, ModelListView, ModelView
from integrations.widget.api import AskView, ChoiceView, TokenView, VoteView

urlpatterns = [
    path("dify/retrieval", RetrievalView.as_view(), name="dify_retrieval"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("mcp", McpView.as_view(), name="mcp"),
    path("slack/actions", SlackActionView.as_view(), name="slack_actions"),
    path("slack/commands", SlackCommandView.as_view(), name="slack_commands"),
    path("slack/events", SlackEventsView.as_view(), name="slack_events"),
    path("teams/messages", TeamsView.as_view(), name="teams_messages"),
    path("v1/chat/completions", ChatView.as_view(), name="openai_chat"),
    path("v1/models", ModelListView.as_view(), name="openai_models"),
    path("v1/models/<path:model>", ModelView.as_view(), name="openai_model"),
    path("widget/<slug:slug>/token", TokenView.as_view(), name="widget_token"),
    path("widget/<slug:slug>/ask", AskView.as_view(), name="widget_ask"),
    path(
        "widget/<slug:slug>/answers/<uuid:answer_id>/choice",
        ChoiceView.as_view(),
        name="widget_choice",
    ),
    path(
        "widget/<slug:slug>/answers/<uuid:answer_id>/vote",
        VoteView.as_view(),
        name="widget_vote",
    ),
]
