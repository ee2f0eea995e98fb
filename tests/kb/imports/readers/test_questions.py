"""Questions that a text asks and answers: one fact of both, however they are marked."""

import io
import re

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.imports.readers import Fact
from tests.kb.imports.readers.files import document, facts

JOIN, DROP_IN = "How do I join?", "Can I just drop in?"
FORM, MONDAYS = "Fill in the form at the desk.", "Yes, on Mondays."
BOTH = [(JOIN, FORM), (DROP_IN, MONDAYS)]


def said(read: list[Fact]) -> list[tuple[str, str]]:
    return [(fact.question, fact.text) for fact in read]


@pytest.mark.parametrize(
    "text",
    [
        f"# FAQ\n\n**Q: {JOIN}**\nA: {FORM}\n\n**Q: {DROP_IN}**\nA: {MONDAYS}\n",
        f"# FAQ\n\nQ1. {JOIN}\n\nA1. {FORM}\n\nQ2. {DROP_IN}\n\nA2. {MONDAYS}\n",
        f"# FAQ\n\nQ: {JOIN} A: {FORM}\n\nQ: {DROP_IN} A: {MONDAYS}\n",
        f"# FAQ\n\nFrage: {JOIN}\nAntwort: {FORM}\nFrage: {DROP_IN}\nAntwort: {MONDAYS}\n",
        f"# FAQ\n\n**{JOIN}**\n\n{FORM}\n\n**{DROP_IN}**\n\n{MONDAYS}\n",
        f"# FAQ\n\n**{JOIN}**\n{FORM}\n\n**{DROP_IN}**\n{MONDAYS}\n",
        f"# FAQ\n\n## {JOIN}\n\n{FORM}\n\n## {DROP_IN}\n\n{MONDAYS}\n",
        f"# FAQ\n\n## 1. {JOIN}\n\n{FORM}\n\n## 2. {DROP_IN}\n\n{MONDAYS}\n",
        f"# FAQ\n\n1. {JOIN}\n   {FORM}\n2. {DROP_IN}\n   {MONDAYS}\n",
        f"# FAQ\n\n- {JOIN}\n- {DROP_IN}\n\n## {JOIN}\n\n{FORM}\n\n## {DROP_IN}\n\n{MONDAYS}\n",
    ],
    ids=[
        "marks", "numbered marks", "one line", "German marks", "bold", "bold above",
        "headings", "numbered headings", "list", "contents",
    ],
)  # fmt: skip
def test_a_question_and_its_answer_are_one_fact(text):
    read = document("faq.md", text)

    assert said(list(read.facts)) == BOTH
    assert (read.title, read.headings) == ("FAQ", (("FAQ",),))


def test_a_plain_text_and_a_word_document_may_ask_too():
    text = f"FAQ\n\nQ: {JOIN}\nA: {FORM}\n\n{DROP_IN}\n\n{MONDAYS}\n"
    word = docx.Document()
    word.add_heading("FAQ", level=1)
    word.add_paragraph(JOIN, style="List Number")
    word.add_paragraph(FORM)
    word.add_heading(DROP_IN, level=2)
    word.add_paragraph(MONDAYS)
    out = io.BytesIO()
    word.save(out)

    assert said(facts("faq.txt", text)) == BOTH
    assert said(facts("faq.docx", out.getvalue())) == BOTH


def test_an_answer_has_all_that_is_said_to_the_question():
    text = f"## {DROP_IN}\n\n{MONDAYS}\n\n- 9 to 12\n- 13 to 15\n\nNote: bring your card.\n"

    assert said(facts("faq.md", text)) == [
        (DROP_IN, f"{MONDAYS}\n- 9 to 12\n- 13 to 15\n\nNote: bring your card.")
    ]


def test_a_question_is_of_the_chapter_above_it():
    text = f"# Help\n\n## Cards\n\nThey last.\n\n## {JOIN}\n\n{FORM}\n\n**{DROP_IN}**\n\nYes.\n"

    assert [fact.headings for fact in document("a.md", text).facts] == [
        ("Help", "Cards"),
        ("Help",),
        ("Help",),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"# {JOIN}\n\n{FORM}\n\n## Fees\n\nIt costs 36 euros.\n",
        f"# Help\n\n## {JOIN}\n\n" + f"{FORM}\n\n" * 60,
        "# Help\n\nBefore you call, check:\n\n- Is it plugged in? Look behind it.\n- Is it on? See the light.\n",
        f"# Help\n\n{FORM}\n\nWas this page helpful?\n\nYes or no.\n",
        "# Help\n\nIt costs 36 euros a year. Who pays that?\n\nThe landlord does.\n",
        "# Year\n\nQ1: revenue grew.\n\nIt was a good start.\n\nQ2: it fell.\n\nSo it goes.\n",
        f"# Help\n\n{JOIN}\n\n-\n",
    ],
    ids=[
        "chapters below it",
        "much below it",
        "a list that is led to",
        "of the page",
        "a sentence before it",
        "quarters of a year",
        "nothing said",
    ],
)
def test_what_only_looks_like_a_question_leads_as_before(text):
    assert not any(fact.question for fact in document("a.md", text).facts)


def test_a_page_that_answers_one_question_is_called_by_it():
    read = document("a.md", f"# {JOIN}\n\n{FORM}\n")

    assert (read.title, read.headings) == (JOIN, ())
    assert said(list(read.facts)) == [(JOIN, FORM)]


LINES = st.sampled_from(
    [
        "# Cards", "## Where is it kept?", "Q: How do I join?", "A: By mail.",
        "What does it cost?", "It costs 36 euros.", "- Who pays? The landlord pays.",
        "- one item", "1. How do I leave?", "Before you call:", "Note: never by phone.",
        "| Card | Fee |\n|---|---|\n| Gold | 72 |", "-", "Q:", "Was this page helpful?",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\n\n"])), min_size=1))
def test_no_word_of_a_text_is_lost(parts):
    text = "".join(f"{line}{end}" for line, end in parts)

    read = document("a.md", text)

    kept = " ".join(
        [
            *(f"{fact.question} {fact.text}" for fact in (*read.facts, *read.left_out)),
            *(heading for path in read.headings for heading in path),
        ]
    )
    words = set(re.findall(r"\w{2,}", text))
    assert words <= set(re.findall(r"\w{2,}", kept))


def test_menus_sidebars_and_footers_are_known_by_their_names_where_no_element_says_it():
    page = """<body><div id="top-nav"><ul><li><a href="/">Home</a></li></ul></div>
<div class="sidebar"><h3>More</h3><a href="/x">Membership</a> <a href="/y">Rooms</a></div>
<div class="menu"><p>On Fridays there is fish, from the lake.</p></div>
<div class="content"><h2>Can I pay by card?</h2><p>Yes, from 5 euros.</p></div>
<div class="site-footer"><a href="/imprint">Imprint</a> of the library</div></body>"""

    read = document("fees.html", page)

    assert [fact.text for fact in read.facts] == [
        "On Fridays there is fish, from the lake.",
        "Yes, from 5 euros.",
    ]
    assert [fact.text for fact in read.left_out] == [
        "- Home",
        "Membership Rooms",
        "Imprint of the library",
    ]
