"""Readers' comments on entries; never evidence."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import models, transaction

from accounts.exceptions import ForbiddenError
from accounts.models import optional_user
from accounts.roles import Role, has_role_in
from accounts.undo import ChangedSinceError, undoes
from kb.entries.models import Entry
from kb.exceptions import CommentNotFoundError, EntryNotFoundError
from kb.text.cleaning import clean_text

COMMENT_LIMIT = 2_000
UNDO: Final = "kb.comment"


class Comment(models.Model):
    """Plain text below an entry, for everyone who may see the entry.

    A row-level policy ties its visibility to the entry's; a trigger records in the
    audit log who deleted whose comment, without the words.
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
    entry = _readable(by, entry_id)
    if entry is None:
        raise EntryNotFoundError(f"There is no entry {entry_id} that you may see.")
    entry.knowledge_base.check_in_use()
    said = clean_text(text, field="comment", limit=COMMENT_LIMIT)
    return Comment.objects.create(entry_id=entry_id, author=by, text=said)


def _readable(user: User, entry_id: int) -> Entry | None:
    rows = Entry.objects.readable_by(user).filter(pk=entry_id)
    return rows.select_related("knowledge_base").defer("search_vector").first()


@transaction.atomic
def delete_comment(*, comment_id: int, by: User) -> dict[str, Any]:
    """Delete one's own comment, or any as a curator; return the data for `UNDO`."""
    entries = Entry.objects.readable_by(by).values("pk")
    rows = Comment.objects.filter(pk=comment_id, entry__in=entries)
    fetched = rows.select_related("author", "entry__knowledge_base")
    comment = fetched.select_for_update(of=("self",)).first()
    if comment is None or not comment.is_deletable_by(by):
        raise CommentNotFoundError(
            f"There is no comment {comment_id} that you may delete; its author and "
            "curators may."
        )
    comment.entry.knowledge_base.check_in_use()
    noted = {
        "comment": comment.pk,
        "entry": comment.entry_id,
        "author": comment.author_id,
        "signs_in_as": comment.author.get_username() if comment.author else "",
        "text": comment.text,
        "created_at": comment.created_at.isoformat(),
    }
    comment.delete()
    return noted


@undoes(
    UNDO,
    lambda noted: [f"deleting comment {noted['comment']} on entry {noted['entry']}"],
)
@transaction.atomic
def undo_deletion(noted: Mapping[str, Any], by: User) -> None:
    """Restore a deleted comment with its words, author and time.

    Raises:
        ChangedSinceError: It exists, or its author was erased or renamed.
        EntryNotFoundError: The entry is gone, or `by` may no longer read it.
        ForbiddenError: `by` is neither the author nor a curator.
    """
    entry = _readable(by, noted["entry"])
    if entry is None:
        raise EntryNotFoundError("The entry was deleted, or you may no longer see it.")
    entry.knowledge_base.check_in_use()
    if Comment.objects.filter(pk=noted["comment"]).exists():
        raise ChangedSinceError("The comment has already been restored.")
    author = User.objects.filter(pk=noted["author"]).first()
    if noted["author"] and (
        author is None or author.get_username() != noted["signs_in_as"]
    ):
        raise ChangedSinceError(
            "The comment's author was erased or renamed since; it stays deleted."
        )
    comment = Comment(
        pk=noted["comment"], entry_id=noted["entry"], author=author, text=noted["text"]
    )
    if not comment.is_deletable_by(by):
        raise ForbiddenError("Only its author and curators can bring a comment back.")
    comment.save(force_insert=True)
    # The field sets the time of the insertion.
    written = datetime.fromisoformat(noted["created_at"])
    Comment.objects.filter(pk=comment.pk).update(created_at=written)
