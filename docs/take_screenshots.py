"""Take the screenshots in docs/images: `python docs/take_screenshots.py`.

Needs a running system. Reads its URL and the administrator's password from var/up.json,
asks some questions of the demonstration in headless Chromium and takes a screenshot of
each page. The calibration page has data once `manage.py evaluate demo --shadow` has
run, a gap exists some minutes after refused questions, and a review once a sample is
drawn.
"""

import json
import os
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
CHROMIUM = os.environ.get("NESCIO_CHROMIUM", "/usr/bin/chromium")
DESKTOP = {"width": 1200, "height": 900}
WIDE = {"width": 1300, "height": 720}
PHONE = {"width": 390, "height": 844}
ANSWERED = "what does it cost me if I pay late"
PLAYED = "What does it cost to get a new card if I lost mine?"
REFUSED = "Which documents does a dispute about a damaged parcel need?"
UNCLEAR = "How much is the yearly fee?"
VERBATIM = "How do I block a lost card?"
LIMIT_BYTES = 200_000


def main() -> None:
    """Take every screenshot."""
    var = Path(os.environ.get("NESCIO_VAR_DIR", ROOT / "var"))
    up = json.loads((var / "up.json").read_text())
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        page = signed_in(browser, up, scheme="light")
        picture_of_question(page, ANSWERED, "ask-answered")
        picture_of_question(page, REFUSED, "ask-refused")
        picture_of_question(page, UNCLEAR, "ask-which", part="#near-title")
        picture_of_page(page, "/knowledge?q=foreign+currency+gold", "knowledge")
        picture_of_page(page, "/knowledge/entries/1", "entry")
        picture_of_page(page, "/profile", "profile")
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]  # a TypedDict of the library
        picture_of_page(page, "/inbox", "inbox")
        picture_of_page(page, "/admin/", "admin-dashboard")
        picture_of_page(page, "/admin/kb/entry/", "admin-entries")
        picture_of_page(page, "/admin/kb/entry/due", "admin-due")
        picture_of_page(page, "/admin/qa/answer/dashboard/?days=7", "dashboard")
        picture_of_gap(page)
        picture_of_conflict(page)
        picture_of_review(page)
        page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]  # as above
        picture_of_calibration(page)
        picture_of_unsourced(page)
        picture_of_playground(page)
        phone = signed_in(browser, up, scheme="dark", viewport=PHONE)
        picture_of_question(phone, VERBATIM, "ask-phone-dark")
        browser.close()


def signed_in(
    browser: Browser,
    up: dict[str, str],
    *,
    scheme: str,
    viewport: dict[str, int] = DESKTOP,
) -> Page:
    """Return a page of a fresh browser context, signed in as the administrator."""
    page = browser.new_context(
        base_url=up["url"],
        viewport=viewport,  # type: ignore[arg-type]  # a TypedDict of the library
        color_scheme=scheme,  # type: ignore[arg-type]  # a literal of the library
        reduced_motion="reduce",
    ).new_page()
    page.goto("/login")
    page.get_by_label("Name").fill(up.get("username", "admin"))
    page.get_by_label("Password").fill(up["admin_password"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Your question").wait_for()
    return page


def picture_of_question(page: Page, question: str, name: str, part: str = "") -> None:
    """Ask a question and take the top of the result, or the view scrolled to `part`."""
    page.goto("/")
    page.get_by_label("Your question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("article.result").wait_for(timeout=120_000)
    page.evaluate("document.activeElement.blur()")
    if part:
        page.locator(part).evaluate("e => e.scrollIntoView()")
    save(page, name)


def picture_of_page(page: Page, path: str, name: str) -> None:
    """Take the top of a page."""
    page.goto(path)
    page.wait_for_load_state("networkidle")
    save(page, name)


def picture_of_conflict(page: Page) -> None:
    """Take the contradiction about contactless payments, if it is still open."""
    page.goto("/admin/kb/conflict/?state__exact=open")
    link = page.locator("#result_list tbody a", has_text="contactless").first
    if link.count():
        picture_of_page(page, link.get_attribute("href") or "", "admin-conflict")


def picture_of_gap(page: Page) -> None:
    """Take the gap with the greatest impact, if there is one."""
    page.goto("/admin/qa/gap/")
    link = page.locator("#result_list tbody a").first
    if link.count():
        picture_of_page(page, link.get_attribute("href") or "", "admin-gap")


def picture_of_unsourced(page: Page) -> None:
    """Take the newest answer from the model's own knowledge, if there is one."""
    found = page.request.get("/api/v1/answers?gate=boundary").json()["results"]
    if found:
        picture_of_page(page, f"/answers/{found[0]['id']}", "ask-unsourced")


def picture_of_review(page: Page) -> None:
    """Take the next review, if one is waiting, and release it to the queue."""
    page.goto("/admin/qa/review/")
    button = page.get_by_role("button", name="Review the next")
    if button.is_enabled():
        button.click()
        page.locator("#review").wait_for()
        save(page, "admin-review")
        page.get_by_role("button", name="Release").click()


def picture_of_calibration(page: Page) -> None:
    """Try a stricter maximum distance and take its effect."""
    page.goto("/admin/qa/policy/calibration/")
    with page.expect_response("**/traffic?*"), page.expect_response("**/labelled?*"):
        page.get_by_label("maximum distance", exact=True).fill("0.65")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement.blur()")
    page.locator(".cal-try").evaluate("e => e.scrollIntoView()")
    page.mouse.wheel(0, -80)  # out from under the page's header
    page.wait_for_timeout(500)
    save(page, "calibration")


def picture_of_playground(page: Page) -> None:
    """Compare a stricter threshold with the active version and take the whole page."""
    page.goto("/playground")
    page.get_by_label("Question", exact=True).fill(PLAYED)
    page.get_by_text("Other thresholds than").click()
    page.get_by_label("Minimum probability of an entry's own answer", exact=True).fill(
        "0.99"
    )
    page.get_by_text("Other thresholds than").click()
    page.get_by_label("Compare with").select_option(index=1)
    page.get_by_role("button", name="Try").click()
    page.get_by_role("heading", name="What differs").wait_for(timeout=120_000)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.set_viewport_size({**DESKTOP, "height": 1400})  # type: ignore[typeddict-item]
    save(page, "playground")
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]  # as above


def save(page: Page, name: str) -> None:
    """Write the screenshot.

    Raises:
        ValueError: The file is too large for the repository.
    """
    file = IMAGES / f"{name}.png"
    page.screenshot(path=file, scale="css")
    size = file.stat().st_size
    if size > LIMIT_BYTES:
        msg = f"{file} has {size} bytes; the limit is {LIMIT_BYTES}."
        raise ValueError(msg)


if __name__ == "__main__":
    main()
