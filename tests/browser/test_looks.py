"""What pages look like to whom: small screens, dark rooms, other senses."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from qa.gaps.escalations import close, escalate
from qa.models import Answer
from tests.browser.conftest import make_signed_up, violations, violations_in_all_looks
from tests.factories import make_user
from tests.qa.answer_rows import make_answer, make_asked_back

PHONE = {"width": 360, "height": 740}
VERBATIM = "How do I block a lost card?"
UNKNOWN = "Who won the chess game?"

pytestmark = pytest.mark.usefixtures("knowledge")


def test_our_pages_have_no_accessibility_violation(make_desk):
    desk = make_desk(reduced_motion="reduce")

    found = {"login": violations_in_all_looks(desk.open("/login"))}
    page = desk.sign_in("agent")
    found["empty"] = violations_in_all_looks(page)
    desk.ask(VERBATIM)
    for details in page.locator("details").all():
        details.locator("summary").click()
    found["answered"] = violations_in_all_looks(page)
    page.locator("#vote-up").click()
    page.get_by_label("What was good?").wait_for()
    found["voted"] = violations_in_all_looks(page)
    desk.ask(UNKNOWN)
    found["refused"] = violations_in_all_looks(page)
    page.locator("#vote-down").click()
    boxes = page.locator(".reasons input")
    boxes.first.wait_for()
    widths = {box.bounding_box()["width"] for box in boxes.all()}
    assert max(widths) < 32, "a box leaves its line to the reason"
    found["reasons"] = violations_in_all_looks(page)
    near = Entry.objects.order_by("pk")[:3]
    meant = make_asked_back(User.objects.get(username="agent"), *near)
    found["asked back"] = violations_in_all_looks(desk.open(f"/answers/{meant.pk}"))
    found["ask"] = violations_in_all_looks(desk.open("/"))
    found["list"] = violations_in_all_looks(desk.open("/answers"))
    found["knowledge"] = violations_in_all_looks(desk.open("/knowledge"))
    found["found"] = violations_in_all_looks(desk.open("/knowledge?q=card"))
    found["profile"] = violations_in_all_looks(desk.open("/profile"))
    found["help"] = violations_in_all_looks(desk.open("/help"))
    found["tokens"] = violations_in_all_looks(desk.open("/tokens"))
    found["missing"] = violations_in_all_looks(desk.open("/knowledge/entries/0"))
    desk.complaints.pop()  # Chromium reports the 404 itself
    entry = Entry.objects.select_related("document").latest("pk")
    found["entry"] = violations_in_all_looks(
        desk.open(f"/knowledge/entries/{entry.pk}")
    )
    found["document"] = violations_in_all_looks(
        desk.open(f"/knowledge/documents/{entry.document_id}")
    )
    found["no notices"] = violations_in_all_looks(desk.open("/notices"))
    sent = escalate(
        Answer.objects.get(question=UNKNOWN).pk, user=User.objects.get(username="agent")
    )
    close(sent.pk, by=make_signed_up(Role.SME, "expert"), reason="Nobody keeps count.")
    page = desk.open("/notices")
    page.get_by_role("link", name="Notices 1 unread").wait_for()
    found["notices"] = violations_in_all_looks(page)
    expert = make_desk(reduced_motion="reduce")
    expert.let_in("expert")
    escalate(
        make_answer(make_user(), question=UNKNOWN).pk, user=User.objects.latest("pk")
    )
    page = expert.open("/inbox")
    for details in page.locator("details").all():
        details.locator("summary").click()
    found["inbox"] = violations_in_all_looks(page)

    assert found == {name: [] for name in found}


@pytest.mark.parametrize("question", [VERBATIM, UNKNOWN])
def test_nothing_runs_out_of_a_phone(make_desk, question):
    desk = make_desk(viewport=PHONE)
    page = desk.log_in("agent")

    desk.ask(question)

    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    button = page.get_by_role("button", name="Ask", exact=True).bounding_box()
    assert button["height"] >= 40


def test_an_escalation_fits_a_phone_and_says_where_one_is(make_desk):
    curator = make_signed_up(Role.CURATOR, "carla")
    near = tuple(Entry.objects.all())
    signal = {"gate": "hard_refusal", "name": "distance_over_confidence"}
    refused = make_answer(
        curator,
        question="What does a contactless payment cost abroad?",
        near_misses=near,
        signals=[{**signal, "value": 1.2, "threshold": 0.85, "passed": False}],
    )
    sent = escalate(refused.pk, user=curator)
    desk = make_desk(viewport=PHONE)
    page = desk.log_in("carla", f"/admin/qa/escalation/{sent.pk}/change/")

    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    here = page.locator("#header-inner h1 a:visible")
    expect(here).to_have_count(1)
    expect(here).to_contain_text("What does a contactless")
    assert here.bounding_box()["width"] > 90


def test_dark_rooms_get_dark_pages(make_desk):
    colours = {}
    for scheme in ("light", "dark"):
        page = make_desk(color_scheme=scheme).open("/login")
        script = "getComputedStyle(document.body).backgroundColor"
        colours[scheme] = page.evaluate(script)

    assert colours == {"light": "rgb(245, 246, 248)", "dark": "rgb(18, 22, 29)"}


def test_who_wants_no_motion_gets_none(make_desk):
    page = make_desk(reduced_motion="reduce").open("/login")

    animation = page.evaluate(
        """() => {
            const spinner = document.createElement('span');
            spinner.className = 'spinner';
            document.body.append(spinner);
            return getComputedStyle(spinner).animationName;
        }"""
    )

    assert animation == "none"


def test_keyboard_reaches_everything_in_order_and_shows_where_it_is(desk):
    page = desk.log_in("agent")
    for _ in range(10):  # the box has the focus first
        page.keyboard.press("Shift+Tab")
    names = []
    for _ in range(12):
        names.append(
            page.evaluate(
                "document.activeElement.innerText || document.activeElement.id"
            ).strip()
        )
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(outline) == "solid"
        page.keyboard.press("Tab")

    assert names == [
        "Skip to the content",
        "Nescio",
        "Ask",
        "Knowledge",
        "My questions",
        "Notices",
        "API tokens",
        "Help",
        "agent",
        "Sign out",
        "question",
        "Ask",
    ]


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/kb/entry/", "/admin/qa/answer/", "/admin/qa/gap/"]
)
def test_admin_runs_under_its_own_policy(desk, path):
    make_signed_up(Role.ADMIN, "boss")
    page = desk.log_in("boss", path)

    expect(page.get_by_text("Embedded database").first).to_be_visible()
    page.wait_for_load_state("networkidle")


def test_every_field_of_the_admins_forms_has_a_name(desk):
    boss = make_signed_up(Role.ADMIN, "boss")
    boss.is_superuser = True
    boss.save()
    page = desk.log_in("boss")

    found = {}
    forms = ("kb/entry", "kb/document", "kb/audience", "integrations/widget")
    for path in forms:
        desk.open(f"/admin/{path}/add/")
        page.wait_for_load_state("networkidle")
        found[path] = violations(page, serious_only=True)

    assert found == {path: [] for path in found}
