"""Roles in single knowledge bases: what they add, who gives them, and where they are shown."""

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse

from accounts.delegation import acted_for
from accounts.exceptions import RoleElsewhereError
from accounts.models import AuditEntry, KnowledgeRole
from accounts.roles import (
    Role,
    has_role,
    has_role_in,
    has_role_somewhere,
    holders,
    refuse_elsewhere,
)
from accounts.services import create_token, set_knowledge_roles
from tests.clients import inline_rows, page_client
from tests.factories import make_knowledge_base, make_staff, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def cards():
    return make_knowledge_base("cards")


@pytest.fixture
def travel():
    return make_knowledge_base("travel")


@pytest.fixture
def ann(cards):
    user = make_user(role=None, username="ann")
    set_knowledge_roles(user, {cards.pk: "curator"})
    return user


@pytest.fixture
def owner():
    return page_client(make_staff(Role.ADMIN, username="owner"))


def test_a_curator_of_one_knowledge_base_is_an_agent_in_the_others(ann, cards, travel):
    assert has_role_in(ann, Role.CURATOR, cards.pk)
    assert not has_role_in(ann, Role.SME, travel.pk)
    assert has_role_somewhere(ann, Role.SME)
    assert not has_role(ann, Role.SME)
    assert has_role(ann, Role.AGENT)
    with pytest.raises(RoleElsewhereError, match="Travel"):
        refuse_elsewhere(ann, travel.pk)


def test_a_role_everywhere_is_not_narrowed_by_one_in_a_knowledge_base(cards, travel):
    user = make_user(Role.CURATOR)
    set_knowledge_roles(user, {cards.pk: "sme"})

    assert has_role_in(user, Role.CURATOR, cards.pk)
    assert has_role_in(user, Role.CURATOR, travel.pk)


def test_taking_the_last_role_away_leaves_nothing(ann, cards):
    set_knowledge_roles(ann, {})

    ann.refresh_from_db()
    assert not has_role(ann, Role.AGENT)
    assert not has_role_somewhere(ann, Role.SME)
    assert not ann.is_staff


def test_a_group_gives_its_role_to_its_members_alone(cards):
    group = Group.objects.create(name="cards team")
    KnowledgeRole.objects.create(knowledge_base=cards, group=group, role="curator")
    member, other = make_user(groups=["cards team"]), make_user()

    assert has_role_in(member, Role.CURATOR, cards.pk)
    assert not has_role_in(other, Role.SME, cards.pk)
    assert list(holders(Role.CURATOR, knowledge_base_id=cards.pk)) == [member]


def test_nobody_inactive_has_a_role_anywhere(ann, cards):
    ann.is_active = False

    assert not has_role_in(ann, Role.SME, cards.pk)
    assert not has_role_somewhere(ann, Role.SME)


def test_who_is_acted_for_is_an_agent_everywhere(ann, cards):
    acted = acted_for("ann", service=make_user(), named_by="header")

    assert has_role(acted, Role.AGENT)
    assert not has_role_somewhere(acted, Role.SME)


def test_a_role_in_one_knowledge_base_opens_no_page_that_all_share(ann):
    opened = {"kb.change_entry", "kb.view_proposal", "qa.change_gap", "kb.view_tag"}
    closed = {
        "kb.add_tag", "kb.add_knowledgebase", "qa.add_policy", "qa.view_policy",
        "auth.view_user", "accounts.view_knowledgerole", "kb.change_embeddingmodel",
    }  # fmt: skip

    assert ann.has_perms(opened)
    assert not any(map(ann.has_perm, closed))


def test_a_token_and_a_session_read_groups_and_roles_by_one_query(
    client, ann, cards, django_assert_num_queries
):
    secret = create_token(user=ann).secret
    headers = {"Authorization": f"Token {secret}"}
    client.get("/api/v1/due", headers=headers)

    with django_assert_num_queries(2):  # the token with all of it, the inbox's tags
        client.get("/api/v1/notices", headers=headers)


# The pages where they are given.


def test_an_owner_invites_a_curator_of_one_knowledge_base(owner, cards):
    secret = "correct horse battery"
    given = {
        "username": "carla", "usable_password": "true",
        "password1": secret, "password2": secret,
        **inline_rows("knowledge_roles", {"knowledge_base": cards.pk, "role": "curator"}),
    }  # fmt: skip

    done = owner.post(reverse("admin:auth_user_add"), given)

    carla = User.objects.get(username="carla")
    assert done.status_code == 302
    assert carla.is_staff
    assert has_role_in(carla, Role.CURATOR, cards.pk)
    listed = owner.get(reverse("admin:auth_user_changelist")).content.decode()
    assert "curator of Cards" in listed
    (entry,) = AuditEntry.objects.filter(kind="knowledge role")
    assert (entry.actor, entry.action, entry.subject) == (
        "owner", "insert", "carla, cards",
    )  # fmt: skip


def test_the_page_of_a_knowledge_base_gives_and_takes_roles_of_users_and_groups(
    owner, ann, cards
):
    team = Group.objects.create(name="team")
    bob = make_user(groups=["team"])
    address = reverse("admin:kb_knowledgebase_change", args=[cards.pk])
    fields = {
        "name": "Cards", "language": "en", "when_overdue": "mark",
        "overdue_grace_days": 30,
    }  # fmt: skip
    row = KnowledgeRole.objects.get(user=ann)
    kept = {"id": row.pk, "knowledge_base": cards.pk, "user": ann.pk, "role": "curator"}

    done = owner.post(
        address,
        fields
        | inline_rows(
            "roles",
            kept | {"DELETE": "on"},
            {"knowledge_base": cards.pk, "group": team.pk, "role": "sme"},
            there=1,
        ),
    )

    assert done.status_code == 302
    ann.refresh_from_db()
    bob.refresh_from_db()
    assert (ann.is_staff, bob.is_staff) == (False, True)
    assert has_role_in(bob, Role.SME, cards.pk)


def test_a_role_is_a_users_or_a_groups_and_not_of_both(owner, ann, cards):
    team = Group.objects.create(name="team")
    address = reverse("admin:kb_knowledgebase_change", args=[cards.pk])
    row = {"knowledge_base": cards.pk, "role": "sme"}

    for wrong, said in (
        (row, "Name either a user or a group"),
        (row | {"user": ann.pk, "group": team.pk}, "Name either a user or a group"),
    ):
        refused = owner.post(address, {"name": "Cards", **inline_rows("roles", wrong)})
        assert said in str(refused.context["errors"])
    assert KnowledgeRole.objects.get().role == "curator"


def test_a_second_role_in_a_knowledge_base_is_an_error_of_the_form(
    owner, ann, cards, travel
):
    """Also beside a row that somebody else added after the page was opened."""
    address = reverse("admin:auth_user_change", args=[ann.pk])
    first = KnowledgeRole.objects.get(user=ann)
    second = KnowledgeRole.objects.create(user=ann, knowledge_base=travel, role="sme")
    moved = {"id": first.pk, "knowledge_base": travel.pk, "role": "sme"}
    swapped = {"id": second.pk, "knowledge_base": cards.pk, "role": "sme"}

    for rows, there in (
        ([{"knowledge_base": cards.pk, "role": "sme"}], 0),
        ([moved], 1),
        ([moved, swapped], 2),
        ([moved, swapped | {"DELETE": "on"}], 2),
    ):
        given = inline_rows("knowledge_roles", *rows, there=there)
        refused = owner.post(address, {"username": "ann", "is_active": "on"} | given)
        assert "ann has a role in" in str(refused.context["errors"])
    of_base = inline_rows("roles", {"user": ann.pk, "role": "sme"})
    refused = owner.post(
        reverse("admin:kb_knowledgebase_change", args=[cards.pk]),
        {"name": "Cards"} | of_base,
    )
    assert "ann has a role in Cards already" in str(refused.context["errors"])


def test_a_role_is_removed_and_given_again_in_one_step(owner, ann, cards):
    row = KnowledgeRole.objects.get(user=ann)
    old = {"id": row.pk, "knowledge_base": cards.pk, "role": "curator", "DELETE": "on"}
    new = {"knowledge_base": cards.pk, "role": "sme"}

    done = owner.post(
        reverse("admin:auth_user_change", args=[ann.pk]),
        {"username": "ann", "is_active": "on"}
        | inline_rows("knowledge_roles", old, new, there=1),
    )

    assert done.status_code == 302
    assert KnowledgeRole.objects.get(user=ann).role == "sme"


def test_deleting_a_group_closes_the_admin_for_its_members(owner, cards):
    group = Group.objects.create(name="team")
    KnowledgeRole.objects.create(knowledge_base=cards, group=group, role="sme")
    bob = make_staff(groups=["team"])
    root = page_client(User.objects.create_superuser("root"))

    root.post(reverse("admin:auth_group_delete", args=[group.pk]), {"post": "yes"})

    bob.refresh_from_db()
    assert not Group.objects.filter(name="team").exists()
    assert not bob.is_staff
