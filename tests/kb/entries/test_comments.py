"""Comments below an entry: for who sees it, gone by its author or a curator alone."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.acting import acting_for
from accounts.models import AuditEntry
from accounts.roles import Role
from kb.entries.comments import COMMENT_LIMIT, add_comment, delete_comment
from kb.exceptions import (
    CommentNotFoundError,
    EntryNotFoundError,
    InvalidKnowledgeError,
)
from kb.models import Comment
from tests.factories import make_audience, make_entry, make_user

pytestmark = pytest.mark.django_db


def test_readers_see_each_others_comments_and_delete_their_own():
    entry = make_entry()
    olga, ben = make_user(username="olga"), make_user(username="ben")
    page = reverse("entry", args=[entry.pk])
    clients = {user: Client() for user in (olga, ben)}
    for user, client in clients.items():
        client.force_login(user)

    posted = clients[olga].post(f"{page}/comments", {"text": "Only <since> May."})
    assert posted["Location"] == f"{page}#comments"
    (comment,) = Comment.objects.all()
    delete = reverse("comment-delete", args=[comment.pk])

    shown = clients[ben].get(page).content.decode()
    assert "Only &lt;since&gt; May." in shown
    assert delete not in shown
    assert clients[ben].post(delete).status_code == 404
    assert delete in clients[olga].get(page).content.decode()
    assert clients[ben].post(f"{page}/comments", {"text": " "}).status_code == 422
    assert clients[olga].post(delete)["Location"] == f"{page}#comments"
    assert not Comment.objects.exists()
    audited = AuditEntry.objects.get(kind="comment")
    assert (audited.actor, audited.action) == ("olga", "delete")
    assert audited.subject == f"entry {entry.pk}, olga"
    assert "since" not in str(audited.changes)


def test_a_curator_deletes_any_that_they_may_see():
    insider = make_user(groups=["vault"])
    hidden = make_entry("Secret.", audience=make_audience("vault", groups=["vault"]))
    comment = add_comment(entry_id=hidden.pk, by=insider, text="Secret too.")
    stranger = make_user(Role.CURATOR)

    with acting_for(stranger):
        assert not Comment.objects.exists()
    with pytest.raises(CommentNotFoundError):
        delete_comment(comment_id=comment.pk, by=stranger)
    with pytest.raises(EntryNotFoundError):
        add_comment(entry_id=hidden.pk, by=stranger, text="Hello?")
    with pytest.raises(InvalidKnowledgeError, match="may have 2000"):
        add_comment(entry_id=hidden.pk, by=insider, text="x" * (COMMENT_LIMIT + 1))

    curator = make_user(Role.CURATOR, groups=["vault"])
    assert delete_comment(comment_id=comment.pk, by=curator) == hidden.pk
    assert not Comment.objects.exists()
