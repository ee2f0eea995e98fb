"""Accounts that a directory makes, changes and closes over REST."""

import pytest
from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from accounts.models import ApiToken, AuditEntry
from accounts.provider.provisioning import write_account
from accounts.roles import Role
from accounts.services import create_token
from tests.factories import make_knowledge_base, make_user

pytestmark = pytest.mark.django_db


def token_of(user: User, **rights) -> APIClient:
    client = APIClient()
    secret = create_token(user=user, **rights).secret
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.fixture
def directory(db, settings) -> APIClient:
    settings.OIDC_ISSUER = "https://login.example.org"
    return token_of(make_user(Role.ADMIN, username="directory"), may_manage_users=True)


def make(client: APIClient, **given):
    return client.post("/api/v1/users", given, format="json")


def change(client: APIClient, name: str, **given):
    return client.patch(f"/api/v1/users/{name}", given, format="json")


def test_an_account_is_made_changed_and_closed(directory):
    Group.objects.create(name="cards-staff")
    made = make(
        directory,
        username="ada@example.org",
        groups=["sme", "cards-staff"],
        subject="7",
    )
    assert made.status_code == 201
    assert made.json()["groups"] == ["cards-staff", "sme"]
    assert made.json()["subject"] == "7"
    ada = User.objects.get(username="ada@example.org")
    assert ada.is_staff
    assert not ada.has_usable_password()
    create_token(user=ada)

    changed = change(directory, ada.username, groups=["agent"], first_name="Ada")
    closed = change(directory, ada.username, is_active=False)

    assert (changed.json()["groups"], changed.json()["first_name"]) == (
        ["agent"],
        "Ada",
    )
    assert closed.json()["is_active"] is False
    assert not ApiToken.objects.owned_by(ada).exists()
    listed = directory.get("/api/v1/users").json()["results"]
    assert [each["username"] for each in listed] == [ada.username, "directory"]
    by = AuditEntry.objects.filter(subject__startswith=ada.username)
    assert {each.actor for each in by.exclude(kind="token")} == {"directory"}


def test_who_is_opened_again_has_the_admin_that_their_role_opens(directory):
    make(directory, username="ada", groups=["sme"])
    make(directory, username="ben", groups=["curator"], is_active=False)
    # As a directory does, which sends all that it knows.
    change(directory, "ada", is_active=False, groups=["sme"])
    assert not User.objects.filter(username__in=["ada", "ben"], is_staff=True).exists()

    for name in ("ada", "ben"):
        change(directory, name, is_active=True)

    assert User.objects.get(username="ada").is_staff
    assert User.objects.get(username="ben").is_staff


def test_a_role_in_one_knowledge_base_is_given_shown_and_taken(directory):
    make_knowledge_base("cards")
    roles = [{"knowledge_base": "cards", "role": "curator"}]

    made = make(directory, username="ann", knowledge_roles=roles)
    twice = change(directory, "ann", knowledge_roles=roles * 2)
    nowhere = [{"knowledge_base": "travel", "role": "sme"}]
    wrong = change(directory, "ann", knowledge_roles=nowhere)
    kept = change(directory, "ann", first_name="Ann").json()
    is_staff = User.objects.get(username="ann").is_staff
    taken = change(directory, "ann", knowledge_roles=[]).json()

    assert made.json()["knowledge_roles"] == kept["knowledge_roles"] == roles
    assert twice.status_code == wrong.status_code == 400
    assert is_staff
    assert taken["knowledge_roles"] == []
    assert not User.objects.get(username="ann").is_staff


def test_a_change_does_not_open_what_was_closed_meanwhile(directory):
    ada = make_user(username="ada")
    read_before = User.objects.get(pk=ada.pk)
    change(directory, "ada", is_active=False)

    write_account(read_before, {"first_name": "Ada"})

    ada.refresh_from_db()
    assert (ada.first_name, ada.is_active) == ("Ada", False)


def test_nobody_does_it_without_a_token_made_for_it(directory):
    admin = User.objects.get(username="directory")
    session = APIClient()
    session.force_login(admin)
    own = token_of(make_user(Role.CURATOR), may_manage_users=True)

    for client in (session, token_of(admin), own):
        refused = make(client, username="x")
        assert refused.status_code == 403
        assert change(client, "directory", is_active=False).status_code == 403
        assert client.get("/api/v1/users").status_code == 403
    assert "--manages-users" in make(session, username="x").json()["error"]["message"]


def test_superusers_are_out_of_reach(directory):
    User.objects.create_superuser("root")

    assert change(directory, "root", is_active=False).status_code == 404
    assert make(directory, username="Root").status_code == 409
    assert directory.get("/api/v1/users/root").status_code == 404


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"username": "a b"}, 400),
        ({"username": "a\0"}, 400),
        ({"username": "new", "groups": ["nowhere"]}, 400),
        ({"username": "new", "is_superuser": True}, 400),
        ({"username": "new", "subject": "7"}, 409),
        ({"username": "BOB"}, 409),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_made(directory, given, status):
    make(directory, username="bob", subject="7")

    assert make(directory, **given).status_code == status
    assert User.objects.count() == 2


def test_a_subject_needs_a_provider_and_a_name_may_be_anything(directory, settings):
    settings.OIDC_ISSUER = ""

    refused = make(directory, username="bob", subject="7")

    assert refused.json()["error"]["code"] == "no_identity_provider"
    assert not User.objects.filter(username="bob").exists()
    assert directory.get("/api/v1/users/a%00b").status_code == 404


def test_the_list_takes_few_queries(directory, django_assert_num_queries):
    for number in range(3):
        make(directory, username=f"user-{number}", groups=["agent"])

    with django_assert_num_queries(4):  # token, users, groups, roles
        directory.get("/api/v1/users")


@pytest.mark.parametrize("role", [{}, {"knowledge_base": "cards"}, {"role": "sme"}])
def test_a_role_that_lacks_a_part_is_refused_also_in_a_change(directory, role):
    make_knowledge_base()
    make_user(username="olga")

    refused = change(directory, "olga", knowledge_roles=[role])

    assert refused.status_code == 400
    assert "It is missing" in str(refused.json()["error"]["detail"])
