"""Users, groups and tokens in the admin; an admin is no superuser."""

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse

from accounts.models import ApiToken
from accounts.roles import Role
from accounts.services import create_token
from tests.clients import inline_rows
from tests.factories import make_staff, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_page(client):
    user = make_staff(Role.ADMIN, username="ada")
    client.force_login(user)
    return client


def user_url(user: User) -> str:
    return reverse("admin:auth_user_change", args=[user.pk])


def fields_of(user: User, **changes) -> dict[str, object]:
    fields = {"username": user.username, "is_active": "on", "is_staff": "on"}
    return {**fields, **inline_rows("knowledge_roles"), **changes}


def test_an_admin_changes_a_users_groups(admin_page):
    user = make_user()
    curator = Group.objects.get(name="curator")

    done = admin_page.post(user_url(user), fields_of(user, groups=[curator.pk]))

    assert done.status_code == 302
    assert user.groups.get() == curator


def test_an_account_is_made_with_its_role_at_once(admin_page):
    secret = "correct horse battery"
    given: dict[str, object] = {
        "username": "carla",
        "email": "carla@example.org",
        "usable_password": "true",
    }
    given |= {"password1": secret, "password2": secret}
    given["groups"] = str(Group.objects.get(name="curator").pk)
    given |= inline_rows("knowledge_roles")

    done = admin_page.post(reverse("admin:auth_user_add"), given)

    assert done.status_code == 302
    carla = User.objects.get(username="carla")
    assert (carla.is_staff, carla.is_superuser, carla.email) == (
        True,
        False,
        "carla@example.org",
    )
    assert [group.name for group in carla.groups.all()] == ["curator"]
    assert carla.check_password(secret)


@pytest.mark.parametrize(
    ("group", "opens"), [("agent", False), ("sme", True), ("curator", True)]
)
def test_the_group_that_is_ticked_decides_who_opens_the_admin(admin_page, group, opens):
    user = make_user()
    chosen = Group.objects.get(name=group)

    admin_page.post(user_url(user), fields_of(user, groups=[chosen.pk]))

    user.refresh_from_db()
    assert user.is_staff is opens


def test_an_admin_makes_nobody_a_superuser(admin_page):
    user = make_user()

    admin_page.post(
        user_url(user), fields_of(user, is_superuser="on", user_permissions=[1])
    )

    user.refresh_from_db()
    assert not user.is_superuser
    assert not user.user_permissions.exists()


def test_an_admin_neither_changes_a_superuser_nor_sets_their_password(admin_page):
    root = User.objects.create_superuser("root", password="correct horse battery")
    before = root.password

    changed = admin_page.post(user_url(root), fields_of(root, email="x@example.org"))
    password = admin_page.post(
        reverse("admin:auth_user_password_change", args=[root.pk]),
        {"password1": "another long one", "password2": "another long one"},
    )

    root.refresh_from_db()
    assert changed.status_code == password.status_code == 403
    assert (root.email, root.password) == ("", before)


def test_an_admin_gives_a_group_no_permissions_and_a_role_no_other_name(admin_page):
    agent = Group.objects.get(name="agent")

    admin_page.post(
        reverse("admin:auth_group_change", args=[agent.pk]),
        {"name": "boss", "permissions": [1]},
    )

    agent.refresh_from_db()
    assert agent.name == "agent"
    assert not agent.permissions.exists()


def test_nobody_deletes_a_role_or_a_user(admin_page):
    agent = Group.objects.get(name="agent")
    user = make_user()

    group = admin_page.post(
        reverse("admin:auth_group_delete", args=[agent.pk]), {"post": "yes"}
    )
    account = admin_page.post(
        reverse("admin:auth_user_delete", args=[user.pk]), {"post": "yes"}
    )

    assert group.status_code == account.status_code == 403
    assert Group.objects.filter(name="agent").exists()


def test_tokens_are_seen_and_revoked_and_their_secret_is_nowhere(admin_page):
    issued = create_token(user=make_user(), name="cron")
    listed = admin_page.get(reverse("admin:accounts_apitoken_changelist"))
    shown = admin_page.get(
        reverse("admin:accounts_apitoken_change", args=[issued.row.pk])
    )

    admin_page.post(
        reverse("admin:accounts_apitoken_delete", args=[issued.row.pk]),
        {"post": "yes"},
    )

    assert "cron" in listed.content.decode()
    for page in (listed, shown):
        assert issued.secret not in page.content.decode()
        assert issued.row.digest not in page.content.decode()
    assert not ApiToken.objects.exists()


def test_an_admin_revokes_no_superusers_token_here_either(admin_page):
    root = User.objects.create_superuser("root")
    issued = create_token(user=root)
    other = create_token(user=make_user())

    shown = admin_page.post(
        reverse("admin:accounts_apitoken_delete", args=[issued.row.pk]),
        {"post": "yes"},
    )
    admin_page.post(
        reverse("admin:accounts_apitoken_changelist"),
        {
            "action": "delete_selected",
            "_selected_action": [issued.row.pk, other.row.pk],
            "post": "yes",
        },
    )

    assert shown.status_code == 403
    assert ApiToken.objects.filter(pk=issued.row.pk).exists()


@pytest.mark.parametrize("revokes", [True, False])
def test_a_password_reset_offers_to_revoke_tokens(admin_page, revokes):
    user = make_user()
    create_token(user=user)
    address = reverse("admin:auth_user_password_change", args=[user.pk])

    page = admin_page.get(address).content.decode()
    done = admin_page.post(
        address,
        {
            "password1": "a correct horse battery",
            "password2": "a correct horse battery",
            **({"revoke_tokens": "on"} if revokes else {}),
        },
    )

    assert 'name="revoke_tokens"' in page
    assert done.status_code == 302
    assert ApiToken.objects.filter(user=user).exists() is not revokes


def test_all_tokens_of_chosen_users_are_revoked_at_once(admin_page):
    user, other = make_user(), make_user()
    root = User.objects.create_superuser("root")
    for each in (user, user, other, root):
        create_token(user=each)

    admin_page.post(
        reverse("admin:auth_user_changelist"),
        {"action": "revoke_tokens", "_selected_action": [user.pk, root.pk]},
    )

    left = ApiToken.objects.values_list("user__username", flat=True)
    assert set(left) == {other.username, "root"}


def test_groups_are_named_in_one_order_however_they_were_given(admin_page):
    given = [Group.objects.create(name=name) for name in ("zebra", "cards", "loans")]
    user = make_user()
    for group in given:
        user.groups.add(group)

    shown = admin_page.get(reverse("admin:auth_user_changelist")).content.decode()

    assert "cards, loans, zebra" in shown


def test_a_curator_sees_no_accounts(client):
    user = make_staff(Role.CURATOR)
    client.force_login(user)

    for name in ("auth_user", "auth_group", "accounts_apitoken"):
        assert client.get(reverse(f"admin:{name}_changelist")).status_code == 403
