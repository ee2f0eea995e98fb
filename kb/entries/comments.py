"""What readers of an entry say about it to each other; it is never evidence."""

from django.contrib.auth.models import User
from django.db import models, transaction

from accounts.models import optional_user
from accounts.roles import Role, has_role_in
from kb.entries.models import Entry
from kb.exceptions import CommentNotFoundError, EntryNotFoundError
from kb.text.cleaning import clean_text

COMMENT_LIMIT = 2_000


class Comment(models.Model):
    """Plain text below an entry, for all who may see the entry.

    A policy of the database shows it with the entry alone; a trigger writes into the audit
    who deleted whose, without the words.
    """

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="comments")
    author = optional_user("entry_comments")
    text = models.TextField(max_length=COMMENT_LIMIT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return f"comment on entry {self.entry_id}"

    def is_deletable_by(self, user: User) -> bool:
        return self.author_id == user.pk or has_role_in(
            user, Role.CURATOR, self.entry.knowledge_base_id
        )


@transaction.atomic
def add_comment(*, entry_id: int, by: User, text: str) -> Comment:
    if not Entry.objects.readable_by(by).filter(pk=entry_id).exists():
        raise EntryNotFoundError(f"There is no entry {entry_id} that you may see.")
    said = clean_text(text, field="comment", limit=COMMENT_LIMIT)
    return Comment.objects.create(entry_id=entry_id, author=by, text=said)


@transaction.atomic
def delete_comment(*, comment_id: int, by: User) -> int:
    """Delete a comment of one's own, or as a curator any; return its entry's id."""
    entries = Entry.objects.readable_by(by).values("pk")
    rows = Comment.objects.filter(pk=comment_id, entry__in=entries)
    comment = rows.select_for_update(of=("self",)).first()
    if comment is None or not comment.is_deletable_by(by):
        raise CommentNotFoundError(
            f"There is no comment {comment_id} that you may delete; its author and "
            "curators may."
        )
    entry_id: int = comment.entry_id
    comment.delete()
    return entry_id
