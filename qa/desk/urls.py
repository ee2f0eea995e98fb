from django.urls import path

from . import answer_pages as history
from . import ask_pages as asking
from . import notice_pages as notices
from .answer_pages import escalate, vote

urlpatterns = [
    path("", asking.ask, name="ask"),
    path("answers", history.answers, name="answers"),
    path("answers/<uuid:answer_id>", history.answer, name="answer"),
    path("answers/<uuid:answer_id>/stream", asking.stream, name="answer-stream"),
    path("answers/<uuid:answer_id>/retry", asking.retry, name="answer-retry"),
    path("answers/<uuid:answer_id>/vote", vote, name="answer-vote"),
    path("answers/<uuid:answer_id>/escalate", escalate, name="answer-escalate"),
    path("notices", notices.notices, name="notices"),
    path("notices/unread", notices.unread, name="notices-unread"),
    path("notices/read", notices.read_all, name="notices-read"),
]
