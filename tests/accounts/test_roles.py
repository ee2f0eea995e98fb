import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.core.management import call_command

from accounts.roles import Role, has_role
from tests.factories import make_user

RANKED = [Role.AGENT, Role.SME, Role.CURATOR, Role.ADMIN]


@pytest.mark.parametrize("held", RANKED)
@pytest.mark.parametrize("least", RANKED)
def test_a_role_includes_the_roles_below_it(db, held, least):
    expected = RANKED.index(held) >= RANKED.index(least)

    assert has_role(make_user(held), least) is expected


def test_nobody_inactive_or_anonymous_has_a_role(db):
    user = make_user(Role.ADMIN)
    user.is_active = False

    assert not has_role(user, Role.AGENT)
    assert not has_role(AnonymousUser(), Role.AGENT)


@pytest.mark.parametrize(
    ("role", "permission", "allowed"),
    [
        (Role.AGENT, "kb.view_entry", False),
        (Role.SME, "kb.view_entry", True),
        (Role.SME, "qa.view_answer", True),
        (Role.SME, "kb.change_entry", False),
        (Role.CURATOR, "kb.change_entry", True),
        (Role.CURATOR, "qa.view_answer", True),
        (Role.CURATOR, "kb.delete_entry", False),
        (Role.CURATOR, "qa.add_policy", False),
        (Role.CURATOR, "auth.view_user", False),
        (Role.ADMIN, "qa.add_policy", True),
        (Role.ADMIN, "auth.change_user", True),
        (Role.ADMIN, "accounts.delete_apitoken", True),
        (Role.ADMIN, "qa.change_answer", False),
    ],
)
def test_migrating_gave_each_role_its_permissions(db, role, permission, allowed):
    assert make_user(role).has_perm(permission) is allowed


def test_migrating_again_adds_what_is_missing_and_keeps_what_was_granted(db):
    curator = Group.objects.get(name="curator")
    before = set(curator.permissions.values_list("codename", flat=True))
    extra = Group.objects.get(name="admin").permissions.get(codename="view_user")
    curator.permissions.add(extra)
    curator.permissions.remove(curator.permissions.get(codename="change_entry"))

    call_command("migrate", verbosity=0)

    after = set(curator.permissions.values_list("codename", flat=True))
    assert after == before | {"view_user"}
    assert Group.objects.filter(name__in=[role.value for role in Role]).count() == 4
