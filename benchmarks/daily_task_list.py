"""The ten daily tasks as a user performs them, and a counter of the user's actions."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, Request

LOUNGE = "Does the Tarn Gold card come with airport lounge access?"


@dataclass(slots=True)
class Hand:
    """A user's browser, and counts of what they did in it."""

    page: Page
    url: str
    clicks: int = 0
    keys: int = 0
    fields: int = 0
    pages: int = 0
    waited: float = 0.0

    def click(self, what: Locator) -> None:
        self.clicks += 1
        what.click()
        self.page.wait_for_load_state()

    def press(self, key: str) -> None:
        self.keys += 1
        self.page.keyboard.press(key)

    def fill(self, what: Locator, text: str) -> None:
        """Fill a field, counting a click unless it already has the focus."""
        if not what.evaluate("each => each === document.activeElement"):
            self.clicks += 1
        self.fields += 1
        what.fill(text)

    def choose(self, what: Locator, label: str) -> None:
        self.clicks += 2  # one to open the list, one to choose
        what.select_option(label=label)

    def link(self, name: str) -> Locator:
        return self.page.get_by_role("link", name=name).first

    def button(self, name: str, *, exact: bool = True) -> Locator:
        return self.page.get_by_role("button", name=name, exact=exact).first

    def watch(self, request: Request) -> None:
        """Add the waiting time of a finished request, except of streams and assets."""
        if request.resource_type not in ("document", "xhr", "fetch"):
            return
        if "text/event-stream" in request.headers.get("accept", ""):
            return
        timing = request.timing
        self.waited += max(0.0, timing["responseStart"] - timing["requestStart"])

    def count_page(self) -> None:
        self.pages += 1

    @property
    def figures(self) -> tuple[int | str, ...]:
        return self.clicks, self.keys, self.fields, self.pages, f"{self.waited:.0f}"


Task = Callable[[Hand], None]


def verify(hand: Hand) -> None:
    """Verify an entry that is due."""
    hand.click(hand.link("Inbox"))
    hand.click(hand.link("Due entry"))
    hand.click(hand.link("The hotline is free of charge"))
    hand.click(hand.button("Verify"))
    hand.page.get_by_text("Verified", exact=True).first.wait_for()


def reply(hand: Hand) -> None:
    """Answer an escalation and verify the answer as an entry."""
    hand.click(hand.link("Inbox"))
    hand.click(hand.link(LOUNGE))
    hand.fill(
        hand.page.get_by_label("Reply"), "It opens lounges in Europe twice a year."
    )
    hand.click(hand.page.get_by_text("Verify now").first)
    hand.click(hand.button("Save"))
    hand.page.wait_for_url("**/escalation/**")


def fill_gap(hand: Hand) -> None:
    """Write the entry that closes a gap."""
    hand.click(hand.link("Inbox"))
    hand.click(hand.page.get_by_label("Kind").get_by_role("link", name="Gap"))
    hand.click(hand.page.locator('a[id^="item-gap"]').filter(has_text="broken phone"))
    write_entry(hand)


def write_entry(hand: Hand) -> None:
    answer = hand.page.get_by_label("Answer, or why it is dismissed")
    hand.fill(answer, "None: phones are not insured.")
    hand.click(hand.page.get_by_text("Verify now").first)
    hand.click(hand.button("Save"))
    hand.page.wait_for_url("**/gap/**")


def find(hand: Hand) -> None:
    """Find an entry by misspelt words."""
    hand.click(hand.link("Knowledge"))
    hand.fill(hand.page.get_by_role("searchbox").first, "anual fee clasic")
    hand.click(hand.link("Tarn Classic card has no annual fee"))
    hand.page.get_by_text("About it").wait_for()


def retire(hand: Hand) -> None:
    """Retire an outdated entry, then undo it."""
    hand.click(hand.link("Inbox"))
    hand.click(hand.link("Paper statements"))
    hand.click(hand.button("Retire"))
    hand.press("Enter")  # Undo has the focus
    hand.page.get_by_text("Verified", exact=True).first.wait_for()


def review(hand: Hand) -> None:
    """Judge five answers in the review queue with the keyboard."""
    hand.click(hand.link("Inbox"))
    hand.click(hand.page.locator('a[id^="item-review"]').first)
    judge_five(hand)


def judge_five(hand: Hand) -> None:
    page = hand.page
    taken = hand.button("Review this one")
    if taken.count():
        hand.click(taken)
    for _ in range(5):
        page.locator("[data-grade] input").first.wait_for()
        for _ in range(page.locator("[data-grade]").count()):
            hand.press("2")
        here = page.url
        hand.press("Control+Enter")
        page.wait_for_function("here => location.href !== here", arg=here)


def resolve(hand: Hand) -> None:
    """Resolve a contradiction by retiring one of its entries."""
    hand.click(hand.link("Inbox"))
    hand.click(hand.page.locator('a[id^="item-conflict"]').first)
    hand.fill(hand.page.get_by_label("Reason"), "Price list of May.")
    hand.click(hand.button("A is right: retire the other"))
    hand.page.get_by_text("Conflict", exact=False).first.wait_for()


def bring_in(hand: Hand) -> None:
    """Import a file, apply it, and read the result."""
    hand.click(hand.link("Admin"))
    hand.click(hand.link("Imports"))
    upload(hand)


def upload(hand: Hand) -> None:
    page = hand.page
    hand.click(hand.link("Import a file"))
    file = Path(tempfile.mkdtemp()) / "answers.csv"
    file.write_text(
        "question,answer\nWhen is the branch open?,Monday to Friday from 9 to 17.\n"
    )
    hand.clicks += 1
    page.locator("input[type=file]").set_input_files(str(file))
    hand.click(hand.button("Check the file"))
    for step in ("Apply this import", "applied"):
        while not page.get_by_text(step).first.is_visible():
            page.wait_for_timeout(1000)
            page.reload()
        if step != "applied":
            hand.click(hand.link(step))
            hand.click(hand.button("Confirm"))


def follow_up(hand: Hand) -> None:
    """Ask a question and a follow-up."""
    hand.fill(
        hand.page.get_by_label("Your question"),
        "What does the Tarn Gold card cost per year?",
    )
    hand.press("Enter")
    hand.page.locator("article.result").wait_for(timeout=90_000)
    hand.press("f")
    hand.fill(
        hand.page.get_by_role("textbox", name="Ask a follow-up"), "and the Silver card?"
    )
    hand.press("Enter")
    hand.page.get_by_text("Silver card cost").first.wait_for(timeout=90_000)


def set_target(hand: Hand) -> None:
    """Set the share of shown answers that may be wrong."""
    hand.click(hand.link("Admin"))
    hand.click(hand.link("Policies"))
    hand.click(hand.link("Calibration"))
    hand.choose(
        hand.page.locator("#itself select").first, "at most 1 in 10 shown answers wrong"
    )
    hand.click(hand.page.locator("#itself").get_by_role("button", name="Save"))


TASKS: Mapping[str, tuple[str, Task]] = {
    "verify an entry": ("carla", verify),
    "answer an escalation": ("carla", reply),
    "fill a gap": ("carla", fill_gap),
    "find an entry by misspelt words": ("ben", find),
    "retire an outdated entry, and undo": ("carla", retire),
    "review five answers by keys": ("carla", review),
    "resolve a conflict": ("carla", resolve),
    "import a file and read its result": ("carla", bring_in),
    "ask a question and follow it up": ("ben", follow_up),
    "change the policy's target": ("boss", set_target),
}
