"""What of an HTML page belongs to its text: hidden parts, parts beside it, what opens.

`html` turns what is left into blocks.
"""

import re
from dataclasses import dataclass, field
from typing import Self

from lxml import etree

from .questions import MAX_QUESTION, asks_nothing

HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SKIPPED = frozenset(
    {
        "script", "style", "template", "noscript", "nav", "head", "svg", "math", "form",
        "button", "select", "iframe", "object", "title", "footer",
    }
)  # fmt: skip
BREAKING = frozenset(
    {
        "p", "div", "section", "article", "main", "body", "html", "blockquote", "header",
        "aside", "figure", "figcaption", "address", "dl", "dt", "dd", "details",
        "summary", "hr", "center", "fieldset", "td", "th", "tr", "li",
    }
)  # fmt: skip

_SKIPPED_ROLES = frozenset({"navigation", "search", "contentinfo"})
_BESIDE_ROLES = frozenset({"dialog", "alertdialog", "complementary"})
# Classes, ids and labels count only if no element or role does; whole words, since
# "feedback" alone may be the topic of a page.
_BESIDE = re.compile(
    r"(?:cookies?|consent|gdpr)-?(?:banner|consent|notice|bar|popup|modal|dialog|message|"
    r"overlay|wall|layer|settings)|(?:onetrust|cybotcookiebot|usercentrics)[\w-]*|"
    r"cc-window|breadcrumbs?(?:-?(?:nav|list|trail|navigation|wrapper|container))?|"
    r"related(?:-?(?:pages|links|articles|posts|topics|content|reading|questions))?|"
    r"(?:page-|article-)?feedback-?(?:widget|box|form|bar|prompt|section)|"
    r"was-this-(?:page-|article-)?helpful|(?:social-?)?share-?(?:buttons|links|bar)|"
    r"newsletter(?:-?(?:form|box|signup|sign-up))?|skip-?(?:link|to-content)|"
    r"(?:site|page|main|global)?[-_]?footer",
    re.IGNORECASE,
)
# Beside the text only if they are mostly links, which a canteen's menu is not.
_OF_LINKS = re.compile(
    r"(?:top|main|site|side|left|right|primary|secondary|global|header|footer|sub)?[-_]?"
    r"(?:nav|navbar|navigation|menu|menubar|side-?bar|links)",
    re.IGNORECASE,
)
_LABELS = re.compile(
    r"cookies?|breadcrumbs?|related(?: \w+)?|feedback|share", re.IGNORECASE
)
_IS_A_NOTE = re.compile(
    r"\b(?:note|tip|hint|warning|caution|info|important|callout|admonition)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Page:
    """What is collected about a page's elements before they are read in order.

    Attributes:
        opened: Elements that open below a question, with the question.
        asking: Elements that show such a question.
        controlled: Ids of elements that may be hidden until a reader opens them.
        around: Ancestors of the main content; empty if the page marks none.
    """

    opened: dict[etree._Element, str] = field(default_factory=dict)
    asking: set[etree._Element] = field(default_factory=set)
    controlled: set[str] = field(default_factory=set)
    around: set[etree._Element] = field(default_factory=set)

    @classmethod
    def of(cls, root: etree._Element) -> Self:
        page = cls()
        for details in root.iter("details"):
            if (summary := details.find("summary")) is not None:
                page._opens(details, summary)
        by_id = {each.get("id"): each for each in root.iter() if each.get("id")}
        for control in [*root.iter("*")]:
            names = (control.get("aria-controls") or "").split()
            page.controlled.update(names)
            opened = by_id.get(names[0]) if names else None
            if opened is not None and control.get("aria-expanded") is not None:
                page._is_opened(opened, control)
        main = [*root.iter("main"), *root.iterfind(".//*[@role='main']")]
        # A page may mark a part as its main content that is not.
        if sum(len(text_of(each)) for each in main) * 2 > len(text_of(root)):
            page.around.update(above for each in main for above in each.iterancestors())
        return page

    def _is_opened(self, opened: etree._Element, control: etree._Element) -> None:
        if opened.tag in _SKIPPED or opened in control.iterancestors():
            return
        is_button = control.tag == "button"
        if is_button:
            control.tag = "span"  # its words belong to the text
        heading = next(control.iterancestors(*HEADINGS), control)
        if opened.tag != "dd" and next(control.iterancestors("dt"), None) is None:
            self._opens(opened, heading)
            if is_button and heading is control and control not in self.asking:
                control.tag = "button"

    def _opens(self, opened: etree._Element, asking: etree._Element) -> None:
        question = text_of(asking)
        if question and len(question) <= MAX_QUESTION and not asks_nothing(question):
            self.opened[opened] = question
            self.asking.add(asking)

    def is_skipped(self, element: etree._Element, tag: str) -> bool:
        return (
            tag in _SKIPPED
            or element in self.asking
            or element.get("role") in _SKIPPED_ROLES
        )

    def is_hidden(self, element: etree._Element) -> bool:
        """Return whether readers never see an element, whatever they open."""
        is_hidden = element.get("hidden", "until-found") != "until-found" or (
            element.get("aria-hidden") == "true"
        )
        if not is_hidden or element in self.opened:
            return False
        is_panel = element.get("role") == "tabpanel"
        return not is_panel and element.get("id") not in self.controlled

    def is_beside(self, element: etree._Element, tag: str) -> bool:
        """Return whether an element is beside the page's own text."""
        names = f"{element.get('class', '')} {element.get('id', '')}".split()
        above = element.getparent()
        if tag in ("html", "body") or element in self.around or above is None:
            return False
        if tag == "main" or element.get("role") == "main":
            return False
        if tag == "aside" or element.get("role") == "complementary":
            return not _IS_A_NOTE.search(" ".join([*names, element.get("role", "")]))
        # The page's own heading may stand above its main content.
        if above in self.around and next(element.iter("h1"), None) is None:
            return True
        if tag == "header" and next(element.iter(*HEADINGS), None) is None:
            return (
                next(element.iterancestors("main", "article", "section"), None) is None
            )
        return (
            tag == "dialog"
            or element.get("role") in _BESIDE_ROLES
            or any(map(_BESIDE.fullmatch, names))
            or (any(map(_OF_LINKS.fullmatch, names)) and _is_mostly_links(element))
            or _LABELS.fullmatch(element.get("aria-label", "")) is not None
        )


def _is_mostly_links(element: etree._Element) -> bool:
    linked = sum(len(text_of(link)) for link in element.iter("a"))
    return linked * 2 > len(text_of(element))


def text_of(element: etree._Element) -> str:
    """Return the text below an element on one line, with single spaces."""
    return " ".join(raw_text(element).split())


def raw_text(element: etree._Element, without: tuple[str, ...] = ()) -> str:
    """Return the text below an element, except skipped tags and those in `without`."""
    words: list[str] = []
    skipping: etree._Element | None = None
    for event, each in etree.iterwalk(element, events=("start", "end")):
        tag = each.tag if isinstance(each.tag, str) else ""
        if event == "end":
            if skipping is each:
                skipping = None
            if skipping is None and each is not element:
                words.append(" " if tag in BREAKING else "")
                words.append(each.tail or "")
        elif skipping is None:
            if tag in _SKIPPED or (tag in without and each is not element):
                skipping = each
            else:
                words.append(" " if tag == "br" or tag in BREAKING else "")
                words.append(each.text or "")
    return "".join(words)
