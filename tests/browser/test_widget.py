"""The widget on pages of other origins, under a strict policy, in a real browser."""

import re
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import jwt
import pytest
from playwright.sync_api import Page, expect

from integrations.widget import tokens
from integrations.widget.models import Widget
from qa.models import Answer, Vote
from tests.browser.conftest import violations_in_all_looks
from tests.factories import make_entry, make_knowledge_base, make_user

KNOWN = "How do I block a lost card?"
UNKNOWN = "What does a contactless payment cost abroad?"
HOSTILE = "What is the hostile answer?"
MARKUP = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
# Of the widget's site scripts and requests, and of nobody anything else.
POLICY = (
    "default-src 'none'; script-src {site}; connect-src 'self' {site}; "
    "require-trusted-types-for 'script'; trusted-types; base-uri 'none'"
)
PHONE = {"width": 390, "height": 800}
# The tests look into the shadow root that pages can't.
OPENED = """
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (options) {
        return attach.call(this, { ...options, mode: 'open' });
    };
"""

pytestmark = pytest.mark.usefixtures("knowledge")


class Site:
    """Another site, with one page that holds the script tag."""

    def __init__(self, widget_site: str) -> None:
        site = self
        self.attributes = ""
        self.style = "color-scheme: light dark"

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_page = self.path == "/"
                body = site.page(widget_site) if is_page else site.claim
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                policy = POLICY.format(site=widget_site)
                self.send_header("Content-Security-Policy", policy)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.claim = ""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def page(self, widget_site: str) -> str:
        return (
            "<!DOCTYPE html><html lang=en><title>Intranet</title>"
            '<meta name=viewport content="width=device-width, initial-scale=1">'
            '<meta name=color-scheme content="light dark">'
            "<main><h1>Cards</h1><p>All about our cards.</p>"
            f'<script src="{widget_site}/static/nescio/widget.js" '
            f'data-widget="cards-help" {self.attributes} defer></script></main>'
        )


@pytest.fixture
def site(live_server) -> Iterator[Site]:
    made = Site(live_server.url)
    thread = Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def widget(site) -> Widget:
    make_entry(MARKUP, question=HOSTILE)
    return Widget.objects.create(
        name="cards-help",
        knowledge_base=make_knowledge_base(),
        account=make_user(username="cards widget"),
        origins=[site.address],
    )


@pytest.fixture
def visit(make_desk, site, widget):
    def go(*, opened: bool = True, **options) -> Page:
        page: Page = make_desk(**options).page
        if opened:
            page.add_init_script(OPENED)
        page.goto(site.address)
        return page

    return go


def ask(page: Page, question: str) -> None:
    page.get_by_label("Ask the knowledge base").last.fill(question)
    page.keyboard.press("Enter")
    page.locator("nescio-widget article").wait_for(timeout=60_000)


def test_a_reader_asks_sees_the_evidence_and_votes_by_keyboard_alone(visit):
    page = visit()
    page.keyboard.press("Tab")
    page.keyboard.type(KNOWN)
    page.keyboard.press("Enter")

    shown = page.get_by_role("article", name="Answer", exact=True)
    expect(shown).to_contain_text("Block it at once in the app", timeout=60_000)
    expect(shown.get_by_role("group", name="Evidence")).to_contain_text("Price list")
    expect(shown.get_by_role("group", name="Evidence")).to_contain_text("✓ Verified")
    said = page.get_by_role("status").first
    expect(said).to_have_text(re.compile("^Answer: Block it at once"))
    for _ in range(2):  # the button Ask, then Yes
        page.keyboard.press("Tab")
    focused = page.evaluate(
        "document.querySelector('nescio-widget').shadowRoot.activeElement.textContent"
    )
    assert focused == "Yes"
    page.keyboard.press("Enter")
    expect(page.get_by_text("Thank you.")).to_be_visible()
    assert Vote.objects.get().is_up
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="No")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert not Vote.objects.get().is_up


def test_a_refusal_shows_its_reason_and_what_was_near(visit):
    page = visit()

    ask(page, UNKNOWN)

    shown = page.get_by_role("article", name="Not answered")
    expect(shown).to_contain_text("There is something related here, but nothing that")
    near = shown.get_by_role("group", name="Related, but no answer")
    expect(near).to_contain_text(
        "Cash withdrawals abroad cost 3 percent of the amount."
    )


@pytest.mark.verifier
def test_a_reader_says_which_entry_is_meant_and_takes_it_back(visit):
    for product, fee in (("Business", 96), ("Gold", 120), ("Student", 12)):
        make_entry(f"The Tarn {product} card costs {fee} euros a year.")
    page = visit()

    ask(page, "How much is the yearly fee?")

    meant = page.get_by_role("group", name="Do you mean one of these?")
    button = meant.get_by_role("button", name="I mean this one").first
    button.focus()
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(meant.get_by_role("status")).to_have_text("Kept as your own choice.")
    assert Vote.objects.get().answering_entry is not None
    assert violations_in_all_looks(page) == []

    # One vote: a thumb down keeps the entry, a thumb up takes it back, and both are shown.
    asked = page.get_by_role("group", name="Was this refusal right?")
    no, yes = (asked.get_by_role("button", name=name) for name in ("No", "Yes"))
    expect(no).to_have_attribute("aria-pressed", "true")
    yes.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(no).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(yes).to_have_attribute("aria-pressed", "false")
    assert Vote.objects.get().answering_entry is not None

    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(no).to_have_attribute("aria-pressed", "false")
    assert not Vote.objects.exists()


def test_a_hostile_answer_stays_text(visit):
    page = visit()

    ask(page, HOSTILE)

    expect(page.get_by_role("article").locator(".text")).to_have_text(MARKUP)
    assert page.title() == "Intranet"
    assert page.locator("nescio-widget img, nescio-widget script").count() == 0


def test_a_table_and_a_list_are_ones_to_who_listens_and_scroll_by_themselves(visit):
    rows = "Copy | Price\nA4 <b>print | 60 cents\nScan | 14 pounds"
    question = "What do copies cost?"
    make_entry(f"{rows}\n- Pay first.\n- Then wait.", question=question)
    page = visit(reduced_motion="reduce")
    page.set_viewport_size(PHONE)

    ask(page, question)

    shown = page.get_by_role("article").locator(".text")
    expect(shown.get_by_role("columnheader")).to_have_text(["Copy", "Price"])
    expect(shown.get_by_role("cell")).to_have_text(
        ["A4 <b>print", "60 cents", "Scan", "14 pounds"]
    )
    expect(shown.get_by_role("listitem")).to_have_text(["Pay first.", "Then wait."])
    assert not violations_in_all_looks(page, "nescio-widget")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_it_has_no_accessibility_violation_and_fits(visit):
    page = visit(reduced_motion="reduce")

    found = {"empty": violations_in_all_looks(page, "nescio-widget")}
    ask(page, KNOWN)
    found["answered"] = violations_in_all_looks(page, "nescio-widget")
    page.get_by_role("button", name="Yes").click()
    page.get_by_text("Thank you.").wait_for()
    found["voted"] = violations_in_all_looks(page, "nescio-widget")
    ask(page, UNKNOWN)
    page.get_by_role("article", name="Not answered").wait_for()
    found["refused"] = violations_in_all_looks(page, "nescio-widget")

    assert found == {name: [] for name in found}


def test_no_page_reaches_into_it(visit):
    page = visit(opened=False)
    page.locator("nescio-widget").wait_for(state="attached")

    assert page.evaluate("document.querySelector('nescio-widget').shadowRoot") is None
    assert page.evaluate("document.querySelectorAll('style').length") == 0


def test_pages_of_other_origins_get_no_answer(make_desk, site, widget):
    Widget.objects.update(origins=["https://elsewhere.example"])
    desk = make_desk()
    page = desk.page
    page.add_init_script(OPENED)
    page.goto(site.address)

    page.get_by_label("Ask the knowledge base").last.fill(KNOWN)
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert")).to_contain_text("be reached")
    assert not Answer.objects.exists()
    assert any("CORS" in said for said in desk.complaints)
    desk.complaints.clear()


def test_an_expired_token_is_renewed_unseen(make_desk, site, widget):
    desk = make_desk()
    page = desk.page
    page.add_init_script(OPENED)
    page.goto(site.address)
    ask(page, KNOWN)
    Widget.objects.update(secret_seed="another")  # as good as expired

    page.get_by_role("button", name="Yes").click()

    expect(page.get_by_text("Thank you.")).to_be_visible()
    assert Vote.objects.get().is_up
    (said,) = desk.complaints
    assert "401" in said
    desk.complaints.clear()


def test_a_claim_of_the_pages_own_site_names_its_reader(visit, site, widget):
    make_user(username="ada")
    Widget.objects.update(names_users=True)
    now = int(time.time())
    said = {"sub": "ada", "aud": "cards-help", "iat": now, "exp": now + 60}
    site.claim = jwt.encode(said, widget.secret, "HS256")
    site.attributes = 'data-claim="/claim"'

    ask(visit(), KNOWN)

    assert Answer.objects.filter(asker__username="ada").count() == 1


def test_a_short_lived_token_is_fetched_before_it_ends(visit, monkeypatch):
    monkeypatch.setattr("integrations.widget.api.TOKEN_SECONDS", 30)  # 0 s in the page
    page = visit()
    ask(page, KNOWN)
    fetched = []
    page.on("request", lambda r: fetched.append(r.url))

    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("Thank you.")).to_be_visible()

    assert any(url.endswith("/token") for url in fetched)
    assert tokens.TOKEN_SECONDS == 600
