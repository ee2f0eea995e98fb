"""What a language model proposed is accepted in a curator's words or declined, by keyboard."""

import pytest
from playwright.sync_api import expect

from kb.models import Entry
from tests.kb.enrichment.test_proposals import KENYA, PERU, propose

from .conftest import Desk

pytestmark = pytest.mark.usefixtures("knowledge")
LIMA, NAIROBI = "The capital of Peru is Lima.", "The capital of Kenya is Nairobi."


def test_a_proposal_is_verified_in_other_words_and_another_rejected(curator: Desk):
    propose(PERU, KENYA)
    page = curator.open("/inbox?kind=proposal")
    page.get_by_role("link", name=LIMA).press("Enter")
    page.get_by_label("Text").fill("Lima is the capital of Peru.")
    page.get_by_label("Verify now").press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()

    page = curator.open("/inbox?kind=proposal")
    expect(page.get_by_role("link", name=LIMA)).to_have_count(0)
    page.get_by_role("link", name=NAIROBI).press("Enter")
    page.get_by_label("Reason").fill("Not our business.")
    page.get_by_label("Reject").press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Rejected: ")).to_be_visible()
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("Undone: Rejected")).to_be_visible()
    page.get_by_label("Reason").fill("Not our business.")
    page.get_by_label("Reject").press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()

    page = curator.open("/inbox?kind=proposal")
    expect(page.get_by_text("Nothing waits here.")).to_be_visible()
    kept, gone = Entry.objects.filter(origin="enriched").order_by("pk")
    page = curator.open(f"/knowledge/entries/{kept.pk}")
    expect(page.get_by_text("Lima is the capital of Peru.").first).to_be_visible()
    expect(page.get_by_text("✓ Verified")).to_be_visible()
    page = curator.open(f"/knowledge/entries/{gone.pk}")
    expect(page.get_by_text("This is retired.")).to_be_visible()
    expect(page.get_by_text("Not our business.").first).to_be_visible()
