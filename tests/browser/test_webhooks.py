"""An administrator sends events to another program and sees what came of it, by keyboard."""

import pytest
from playwright.sync_api import expect
from standardwebhooks.webhooks import Webhook

from accounts.roles import Role
from integrations.events.delivery import deliver_due
from tests.integrations.test_events import Receiver, let_time_pass
from tests.qa.answer_rows import make_answer

from .conftest import make_signed_up

pytestmark = pytest.mark.usefixtures("knowledge")


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOW_PRIVATE = True
    made = Receiver()
    yield made
    made.stop()


def test_an_event_reaches_a_program_and_is_replayed(desk, receiver):
    boss = make_signed_up(Role.ADMIN, "boss")
    page = desk.log_in("boss", "/admin/integrations/endpoint/")
    page.get_by_title("Add webhook endpoint").press("Enter")
    page.get_by_label("Name").fill("Chat")
    page.get_by_label("Address").fill("ftp://example.org")
    page.get_by_label("answer.refused").press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("it must begin with")).to_be_visible()
    page.get_by_label("Address").fill(receiver.url)
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    secret = page.locator("#secret").inner_text()

    page = desk.open("/admin/integrations/endpoint/")
    page.get_by_role("link", name="Chat").press("Enter")
    page.get_by_role("link", name="Send a test").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("Accepted with 200")).to_be_visible()
    make_answer(boss, question="Who won the chess game?")
    receiver.statuses.append(500)
    deliver_due()
    page.get_by_role("main").get_by_role("link", name="Deliveries").press("Enter")
    rows = page.get_by_role("row").filter(has_text="Chat")
    expect(rows).to_contain_text(["answer.refused", "endpoint.test"])
    expect(rows.first).to_contain_text("500")
    rows.first.get_by_role("link").first.press("Enter")
    expect(page.get_by_text("only 2xx counts as received")).to_be_visible()
    page.wait_for_load_state()
    let_time_pass()
    deliver_due()
    page.reload()
    expect(page.get_by_text("delivered", exact=True)).to_be_visible()
    page.get_by_role("link", name="Replay").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("It will be sent again")).to_be_visible()
    deliver_due()
    _test, _failed, _delivered, (headers, body) = receiver.posts
    assert Webhook(secret).verify(body, headers)["type"] == "answer.refused"
