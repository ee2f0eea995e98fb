from django.urls import path

from . import (
    answer_pages,
    ask_pages,
    entry_editing,
    entry_pages,
    inbox_pages,
    knowledge_pages,
    playground_pages,
)

urlpatterns = [
    path("", ask_pages.ask, name="ask"),
    path("answers", answer_pages.answers, name="answers"),
    path("answers/<uuid:answer_id>", answer_pages.answer, name="answer"),
    path("answers/<uuid:answer_id>/stream", ask_pages.stream, name="answer-stream"),
    path("answers/<uuid:answer_id>/retry", ask_pages.retry, name="answer-retry"),
    path("answers/<uuid:answer_id>/vote", answer_pages.vote, name="answer-vote"),
    path("answers/<uuid:answer_id>/choose", answer_pages.choose, name="answer-choose"),
    path(
        "answers/<uuid:answer_id>/escalate",
        answer_pages.escalate,
        name="answer-escalate",
    ),
    path("help", ask_pages.help_page, name="help"),
    path("knowledge", knowledge_pages.knowledge, name="knowledge"),
    path(
        "knowledge/documents/<int:document_id>",
        knowledge_pages.document,
        name="document",
    ),
    path("knowledge/entries/<int:entry_id>", entry_pages.entry, name="entry"),
    path(
        "knowledge/entries/<int:entry_id>/edit", entry_editing.edit, name="entry-edit"
    ),
    path("playground", playground_pages.playground, name="playground"),
    path("playground/cases", playground_pages.save_tried, name="playground-cases"),
    path(
        "knowledge/entries/<int:entry_id>/comments",
        entry_pages.comment,
        name="entry-comment",
    ),
    path(
        "knowledge/comments/<int:comment_id>/delete",
        entry_pages.uncomment,
        name="comment-delete",
    ),
    path("knowledge/entries/<int:entry_id>/flag", entry_pages.flag, name="entry-flag"),
    path(
        "knowledge/entries/<int:entry_id>/still-true",
        entry_pages.still_true,
        name="entry-still-true",
    ),
    path(
        "knowledge/entries/<int:entry_id>/validity",
        entry_pages.validity,
        name="entry-validity",
    ),
    path(
        "knowledge/entries/<int:entry_id>/retire",
        entry_pages.retire,
        name="entry-retire",
    ),
    path(
        "knowledge/entries/<int:entry_id>/restore",
        entry_pages.restore,
        name="entry-restore",
    ),
    path("inbox", inbox_pages.inbox, name="inbox"),
    path("inbox/change", inbox_pages.change, name="inbox-change"),
    path("inbox/count", inbox_pages.count, name="inbox-count"),
    path("notices", answer_pages.notices, name="notices"),
    path("notices/unread", answer_pages.unread, name="notices-unread"),
    path("notices/read", answer_pages.read_all, name="notices-read"),
]
