"""An owner makes a curator of one knowledge base, in a real browser."""

from django.contrib.auth.models import User
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry, KnowledgeBase
from tests.factories import make_entry, make_knowledge_base

from .conftest import choose_by_typing, make_signed_up, violations


def test_a_curator_of_one_knowledge_base_is_made_and_finds_its_work_alone(
    make_desk, knowledge
):
    travel = make_knowledge_base("travel")
    make_entry("Lounges cost 30 euros.", knowledge_base=travel, state="draft")
    make_entry("A new card costs 12 euros.", state="draft")
    cards = KnowledgeBase.objects.get(slug="cards")
    make_signed_up(Role.ADMIN, "owner")
    make_signed_up(Role.AGENT, "ann")

    owner = make_desk(viewport={"width": 1280, "height": 900})
    page = owner.log_in("owner", f"/admin/kb/knowledgebase/{cards.pk}/change/")
    page.get_by_role("link", name="Add another role").press("Enter")
    choose_by_typing(page.locator("#id_roles-0-user"), "ann")
    choose_by_typing(page.locator("#id_roles-0-role"), "curator")
    # The last heading, of the column that removes rows, is empty: the admin theme's own.
    assert violations(page, "#roles-group", serious_only=True) == []
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    listed = owner.open("/admin/auth/user/").locator("tr", has_text="ann")
    expect(listed).to_contain_text("agent, curator of Cards")

    ann = make_desk(viewport={"width": 1280, "height": 900})
    page = ann.log_in("ann", "/admin/kb/entry/")
    expect(page.get_by_text("A new card costs 12 euros.")).to_be_visible()
    expect(page.get_by_text("Lounges cost 30 euros.")).to_have_count(0)
    page = ann.open("/admin/kb/entry/add/")
    offered = page.locator("#id_knowledge_base option")
    expect(offered.filter(has_text="Travel")).to_have_count(0)
    page = ann.open("/admin/")
    expect(page.get_by_role("link", name="Policies")).to_have_count(0)
    expect(page.get_by_role("link", name="Proposals")).to_be_visible()

    assert User.objects.get(username="ann").is_staff
    assert Entry.objects.filter(knowledge_base=travel, state="draft").exists()
