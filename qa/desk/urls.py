from django.urls import include, path

from . import (
    answer_pages,
    ask_pages,
    entry_editing,
    entry_pages,
    inbox_pages,
    knowledge_pages,
    playground_pages,
)

_of_answer = [
    path("stream", ask_pages.stream, name="answer-stream"),
    path("retry", ask_pages.retry, name="answer-retry"),
    path("vote", answer_pages.vote, name="answer-vote"),
    path("choose", answer_pages.choose, name="answer-choose"),
    path("escalate", answer_pages.escalate, name="answer-escalate"),
]
_of_entry = [
    path("edit", entry_editing.edit, name="entry-edit"),
    path("comments", entry_pages.comment, name="entry-comment"),
    path("flag", entry_pages.flag, name="entry-flag"),
    path("still-true", entry_pages.still_true, name="entry-still-true"),
    path("validity", entry_pages.validity, name="entry-validity"),
    path("retire", entry_pages.retire, name="entry-retire"),
    path("restore", entry_pages.restore, name="entry-restore"),
]
urlpatterns = [
    path("", ask_pages.ask, name="ask"),
    path("answers", answer_pages.answers, name="answers"),
    path("answers/<uuid:answer_id>", answer_pages.answer, name="answer"),
    path("answers/<uuid:answer_id>/", include(_of_answer)),
    path("help", ask_pages.help_page, name="help"),
    path("knowledge", knowledge_pages.knowledge, name="knowledge"),
    path(
        "knowledge/documents/<int:document_id>",
        knowledge_pages.document,
        name="document",
    ),
    path("knowledge/entries/<int:entry_id>", entry_pages.entry, name="entry"),
    path("knowledge/entries/<int:entry_id>/", include(_of_entry)),
    path(
        "knowledge/comments/<int:comment_id>/delete",
        entry_pages.uncomment,
        name="comment-delete",
    ),
    path("playground", playground_pages.playground, name="playground"),
    path("playground/cases", playground_pages.save_tried, name="playground-cases"),
    path("inbox", inbox_pages.inbox, name="inbox"),
    path("inbox/change", inbox_pages.change, name="inbox-change"),
    path("inbox/count", inbox_pages.count, name="inbox-count"),
    path("notices", answer_pages.notices, name="notices"),
    path("notices/unread", answer_pages.unread, name="notices-unread"),
    path("notices/read", answer_pages.read_all, name="notices-read"),
]
