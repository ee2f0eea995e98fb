"""Who changed whose access stays on record, whatever path the change took."""

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import ProgrammingError, connection, transaction
from django.urls import reverse
from rest_framework.test import APIClient

from accounts.acting import acting_for, as_owner
from accounts.models import ApiToken, AuditEntry
from accounts.roles import Role
from accounts.services import create_token, set_knowledge_roles
from kb.models import Audience
from qa.policies.services import activate, ensure_default_policy, new_version, roll_back
from tests.clients import inline_rows, rest_client
from tests.factories import (
    make_audience,
    make_knowledge_base,
    make_staff,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db) -> User:
    return make_staff(Role.ADMIN, username="ada")


@pytest.fixture
def page(client, ada):
    client.force_login(ada)
    return client


def entries(kind: str, action: str = "") -> list[tuple[str, str, str]]:
    found = AuditEntry.objects.filter(kind=kind).order_by("pk")
    if action:
        found = found.filter(action=action)
    return [(entry.actor, entry.action, entry.subject) for entry in found]


def test_an_audience_opened_to_everyone_over_rest(ada):
    make_audience("board", groups=["board"])
    client = rest_client(ada)

    done = client.patch("/api/v1/audiences/board", {"everyone": True}, format="json")

    assert done.status_code == 200
    (entry,) = AuditEntry.objects.filter(kind="audience", action="update")
    assert (entry.actor, entry.subject) == ("ada", "board")
    assert entry.changes == {"everyone": [False, True]}


def test_an_audience_opened_in_the_admin_and_by_a_plain_update(page, ada):
    audience = make_audience("board", groups=["board"])
    address = reverse("admin:kb_audience_change", args=[audience.pk])

    page.post(address, {"name": "Board", "everyone": "on"})
    with acting_for(ada):
        Audience.objects.update(everyone=False)

    assert entries("audience", "update") == [("ada", "update", "board")] * 2
    assert entries("audience group", "delete") == [("ada", "delete", "board, board")]


def test_groups_that_are_given_and_taken_in_the_admin(page):
    user = make_user(username="agnes")
    curator = Group.objects.get(name="curator")

    page.post(
        reverse("admin:auth_user_change", args=[user.pk]),
        {
            "username": "agnes",
            "is_active": "on",
            "groups": [curator.pk],
            **inline_rows("knowledge_roles"),
        },
    )

    of_agnes = [each for each in entries("membership") if each[0]]
    assert sorted(of_agnes) == [
        ("ada", "delete", "agnes, agent"),
        ("ada", "insert", "agnes, curator"),
    ]


def test_a_password_that_was_set_is_on_record_without_the_password(page):
    user = make_user(username="agnes")

    page.post(
        reverse("admin:auth_user_password_change", args=[user.pk]),
        {
            "password1": "a correct horse battery",
            "password2": "a correct horse battery",
        },
    )

    (entry,) = AuditEntry.objects.filter(kind="user", action="update", actor="ada")
    assert entry.changes == {"password": ["…", "…"]}


def test_permissions_of_a_role(ada):
    permission = Group.objects.get(name="curator").permissions.earliest("pk")

    with acting_for(ada):
        Group.objects.get(name="agent").permissions.add(permission)

    assert entries("permission") == [("ada", "insert", f"agent, {permission.codename}")]


def test_what_a_migration_grants_to_roles_is_nobodys_doing(ada):
    with as_owner("tests"):
        Group.objects.get(name="curator").permissions.clear()
        call_command("migrate", verbosity=0)

    assert not AuditEntry.objects.filter(kind="permission").exists()


def test_tokens_made_and_revoked_and_nothing_that_authenticates(ada):
    with acting_for(ada):
        issued = create_token(user=ada, name="cron")
        ApiToken.objects.all().delete()

    assert entries("token") == [
        ("ada", "insert", "ada, cron"),
        ("ada", "delete", "ada, cron"),
    ]
    kept = str(list(AuditEntry.objects.filter(kind="token").values()))
    assert issued.row.digest not in kept
    assert issued.row.token_key not in kept
    assert issued.secret not in kept


def test_a_token_taken_with_a_password_is_its_users_doing(ada):
    ada.set_password("a correct horse battery")
    ada.save()

    APIClient().post(
        "/api/v1/tokens",
        {"username": "ada", "password": "a correct horse battery"},
        format="json",
    )

    assert entries("token") == [("ada", "insert", "ada")]


def test_policies_made_activated_and_rolled_back(ada):
    with acting_for(ada):
        first = ensure_default_policy(make_knowledge_base())
        second = new_version(first, by=ada, alpha=0.4)
        activate(second, by=ada)
        roll_back(second, by=ada)

    made, changed = entries("policy", "insert"), entries("policy", "update")
    assert made == [
        ("ada", "insert", "cards, default, 1"),
        ("ada", "insert", "cards, default, 2"),
    ]
    assert [subject for _, _, subject in changed] == [
        "cards, default, 1",
        "cards, default, 2",
        "cards, default, 2",
        "cards, default, 1",
    ]
    assert AuditEntry.objects.filter(changes__is_active=[True, False]).count() == 2


def test_what_no_user_asked_for_says_so():
    make_user(username="agnes")

    assert entries("user", "insert") == [("", "insert", "agnes")]
    assert AuditEntry.objects.latest("pk").reader == "nescio:everything"


def test_signing_in_is_no_change(client):
    client.force_login(make_user())

    assert entries("user", "update") == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_auditentry SET actor = 'somebody else'",
        "DELETE FROM accounts_auditentry",
        "INSERT INTO accounts_auditentry SELECT * FROM accounts_auditentry",
    ],
)
def test_the_application_can_only_read_the_record(ada, statement):
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert AuditEntry.objects.exists()


def test_the_page_shows_who_changed_what_and_changes_nothing(page, ada):
    make_audience("board", groups=["board"])
    with acting_for(ada):
        Audience.objects.update(everyone=True)
    entry = AuditEntry.objects.latest("pk")
    address = reverse("admin:accounts_auditentry_change", args=[entry.pk])

    listed = page.get(reverse("admin:accounts_auditentry_changelist"))
    shown = page.get(address).content.decode()

    assert "board" in listed.content.decode()
    assert "everyone" in shown
    assert "ada" in shown
    assert page.post(address, {"actor": "x"}).status_code == 403
    removal = reverse("admin:accounts_auditentry_delete", args=[entry.pk])
    assert page.post(removal, {"post": "yes"}).status_code == 403


def test_a_curator_does_not_see_the_record(client):
    user = make_staff(Role.CURATOR)
    client.force_login(user)

    page = client.get(reverse("admin:accounts_auditentry_changelist"))

    assert page.status_code == 403


def test_an_admin_reads_the_audit_over_rest(ada):
    make_knowledge_base()
    client, address = rest_client(ada), "/api/v1/audit"
    with acting_for(ada):
        make_audience("board")
        make_audience("vault")
        Audience.objects.filter(slug="vault").update(everyone=False)

    def read(**asked: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = client.get(address, asked).json()["results"]
        return found

    newest, second, first = read(kind="audience", actor="ada")
    assert (newest["action"], newest["subject"]) == ("update", "vault")
    assert newest["changes"] == {"everyone": [True, False]}
    assert newest["reader"] == f"nescio:user:{ada.pk}"
    assert (second["subject"], first["subject"]) == ("vault", "board")
    assert read(kind="audience", since=str(newest["at"])) == [newest]
    assert read(kind="audience", until=str(second["at"])) == [first]
    ben = make_user(username="ben")
    assert read(kind="audience", actor=ben.username) == []
    unknown = client.get(address, {"actor": "nobody"})
    assert unknown.json()["error"]["message"] == "actor: There is no user 'nobody'."
    misspelt = client.get(address, {"kind": "audiences"})
    assert misspelt.status_code == 400
    assert "there are: audience, " in misspelt.json()["error"]["message"]
    assert {row["kind"] for row in read()} > {"audience"}
    assert client.get(address, {"since": "yesterday"}).status_code == 400
    assert client.post(address).status_code == 405


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME, Role.CURATOR, None])
def test_the_audit_is_for_admins_alone_over_rest(role):
    user = make_user(role)
    if role is None:
        set_knowledge_roles(user, {make_knowledge_base().pk: "curator"})

    assert rest_client(user).get("/api/v1/audit").status_code == 403
