"""Comments below an entry: for who sees it, gone by its author or a curator alone."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from accounts.acting import acting_for
from accounts.exceptions import ForbiddenError
from accounts.models import AuditEntry
from accounts.roles import Role
from accounts.undo import ChangedSinceError
from kb.entries.comments import (
    COMMENT_LIMIT,
    add_comment,
    delete_comment,
    undo_deletion,
)
from kb.entries.services import edit_entry
from kb.exceptions import (
    CommentNotFoundError,
    EntryNotFoundError,
    InvalidKnowledgeError,
)
from kb.models import Comment
from qa.privacy.persons import erase_person
from tests.factories import make_audience, make_curator, make_entry, make_user

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
    assert clients[olga].post(delete)["Location"] == page
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
    assert delete_comment(comment_id=comment.pk, by=curator)["entry"] == hidden.pk
    assert not Comment.objects.exists()


@pytest.fixture
def deleted():
    """Return a comment's columns, what brings it back, and who deleted it."""
    entry, curator = make_entry(), make_curator()
    add_comment(entry_id=entry.pk, by=make_user(username="olga"), text="Since May?")
    (columns,) = Comment.objects.values()
    noted = delete_comment(comment_id=columns["id"], by=curator)
    return columns, json.loads(json.dumps(noted)), curator


def test_a_deleted_comment_is_brought_back_as_it_was(deleted):
    columns, noted, curator = deleted

    undo_deletion(noted, curator)

    assert Comment.objects.values().get() == columns
    with pytest.raises(ChangedSinceError, match="already been restored"):
        undo_deletion(noted, curator)


def test_a_comment_of_who_was_erased_since_stays_deleted(deleted):
    _, noted, curator = deleted
    erase_person(User.objects.get(username="olga"))

    with pytest.raises(ChangedSinceError, match="erased or renamed since"):
        undo_deletion(noted, curator)

    assert not Comment.objects.exists()


def test_who_may_not_delete_a_comment_or_see_its_entry_brings_none_back(deleted):
    columns, noted, curator = deleted
    stranger = make_user()

    with pytest.raises(ForbiddenError):
        undo_deletion(noted, stranger)
    vault = make_audience("vault", groups=["vault"])
    edit_entry(
        entry_id=columns["entry_id"], author=None, may_verify=False, audience=vault
    )
    with pytest.raises(EntryNotFoundError):
        undo_deletion(noted, curator)

    assert not Comment.objects.exists()
