"""An administrator changes in words how questions are decided, by keyboard."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import KnowledgeBase
from qa.evaluation.saved_cases import save_case
from qa.models import Policy
from qa.policies.services import new_version
from tests.factories import make_audience, make_entry

from .conftest import Desk, make_signed_up, violations, work

pytestmark = pytest.mark.usefixtures("knowledge")
VAULT = "What is the word of the vault?"


@pytest.fixture
def owner(desk: Desk) -> Desk:
    make_signed_up(Role.ADMIN, "boss")
    desk.log_in("boss")
    return desk


def test_the_list_of_versions_fits_a_laptop_however_long_its_names_are(owner):
    User.objects.update(first_name="Carla Maria", last_name="Beispielhausen")
    KnowledgeBase.objects.update(name="Consumer credit and insurance desk")
    boss = User.objects.get(username="boss")
    new_version(
        Policy.objects.get(),
        by=boss,
        is_calibrated=False,
        hard_refusal=False,
        soft_refusal=False,
    )
    owner.page.set_viewport_size({"width": 1280, "height": 800})

    page = owner.open("/admin/qa/policy/")

    expect(page.get_by_role("cell", name="Carla Maria Beispielhausen")).to_be_visible()
    table = page.locator("#result_list").evaluate(
        "table => [table.offsetWidth, table.closest('form').offsetWidth]"
    )
    assert table[0] <= table[1]


def test_a_version_is_made_in_words_activated_and_decides_on_the_ask_page(owner):
    make_entry(
        "The vault's word is sesame.",
        question=VAULT,
        audience=make_audience("leads", groups=["leads"]),
    )
    page = owner.ask(VAULT)
    expect(page.get_by_role("heading", name="Nothing is known")).to_be_visible()
    boss = User.objects.get(username="boss")
    save_case(
        VAULT, knowledge_base=Policy.objects.get().knowledge_base,
        expects_answer=False, entries=[], asker=boss, by=boss,
    )  # fmt: skip

    page = owner.open("/admin/qa/policy/")
    page.get_by_role("link", name=str(Policy.objects.get()), exact=True).press("Enter")
    page.get_by_role("link", name="Create a new version from this").press("Enter")
    page.get_by_label("Name").fill("open")
    page.get_by_label("Reveals knowledge that the asker may not see").press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("decides nothing until it is activated")).to_be_visible()
    page.get_by_text("Activate", exact=True).press("Enter")
    changes = page.get_by_role("region", name="What changes").get_by_role("row")
    expect(changes.nth(1)).to_contain_text(
        "Reveals knowledge that the asker may not see"
    )
    expect(changes).to_have_count(2)
    # Nobody has to press a button for the test cases.
    said = page.locator("#cases-title + p")
    expect(said).to_contain_text("The test cases wait for a worker.")
    work("qa.evaluate")
    expect(said).to_contain_text("The test case passes.")
    expect(page.get_by_label("Reason for activating")).to_have_count(0)
    assert violations(page) == []
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("now decides every question of Cards")).to_be_visible()

    owner.open("/")
    page = owner.ask(VAULT)
    expect(page.get_by_role("heading", name="You do not have access")).to_be_visible()


def test_the_words_of_a_refusal_are_tried_saved_and_read_by_who_asks(owner):
    page = owner.open("/admin/qa/refusalwording/")
    page.get_by_role("link", name="Preview").press("Enter")
    page.get_by_label("Text").focus()
    page.keyboard.type("Call extension 3333.")
    shown = page.get_by_role("region", name="On the asker's page")
    expect(shown).to_contain_text("Call extension 3333.")
    expect(shown).to_contain_text("not saved")
    page.get_by_label("Reason", exact=True).select_option(
        label="every reason without a wording of its own"
    )
    expect(shown).to_contain_text("Call extension 3333.")
    page.get_by_role("button", name="Save this wording").press("Enter")
    expect(page.get_by_text("The wording is saved")).to_be_visible()
    owner.open("/")
    page = owner.ask("Who won the chess game?")
    expect(page.locator(".answer-text")).to_have_text("Call extension 3333.")
