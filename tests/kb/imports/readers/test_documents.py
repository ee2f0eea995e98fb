"""Documents of every format: their headings, their facts, and where these stand."""

import io
import sys
from collections.abc import Sequence
from contextlib import suppress

import docx
import pytest
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn

from kb.imports.readers import ImportFileError, Limits, detect_format
from kb.imports.readers.pdf import read_pdf
from tests.kb.imports.readers.files import (
    LIMITS,
    document,
    facts,
    items,
    make_archive,
    make_docx,
    make_merged_docx,
    make_pdf,
)

MARKDOWN = """---
title: left out
---
# Cards

A replacement card costs 12 euros. A card lasts for four years. It is sent by letter.

You need:

1. a passport
   - or an ID
2. a photo

## Fees

| Card | Fee |
|------|-----|
| Gold | 72  |
"""


def test_markdown_keeps_headings_lists_and_tables():
    read = document("cards.md", MARKDOWN)

    assert read.title == "Cards"
    assert read.headings == (("Cards",), ("Cards", "Fees"))
    assert [(fact.text, fact.place, fact.headings) for fact in read.facts] == [
        (
            "A replacement card costs 12 euros. A card lasts for four years. It is sent by "
            "letter.",
            "line 6",
            ("Cards",),
        ),
        ("You need:\n1. a passport\n  - or an ID\n2. a photo", "line 8", ("Cards",)),
        ("Card | Fee\n--- | ---\nGold | 72", "line 16", ("Cards", "Fees")),
    ]


def test_html_is_read_as_it_is_seen():
    page = """<html><head><title>Help</title><script>no()</script></head><body>
<nav>Home</nav><h2>Fees</h2>
<div>A <b>gold</b> card costs 72 euros a year.<p>A PIN letter costs 5 euros.</p></div>
<p>You need:</p><ul><li>a passport<ul><li>or an ID</li></ul></li><li>a photo</li></ul>
<table><tr><th>Card</th><th>Fee</th></tr><tr><td>Gold</td><td>72</td></tr></table>
</body></html>"""

    read = document("help.html", page)

    assert (read.title, read.headings) == ("Help", (("Fees",),))
    assert [(fact.text, fact.place) for fact in read.facts] == [
        ("A gold card costs 72 euros a year.", "line 3"),
        ("A PIN letter costs 5 euros.", "line 3"),
        ("You need:\n- a passport\n  - or an ID\n- a photo", "line 4"),
        ("Card | Fee\n--- | ---\nGold | 72", "line 5"),
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "Do this:\n\n3. Open it.\n   1. Look.\n   - Or not.\n4. Close it."),
        ("a.html", "<p>Do this:</p><ol start=3><li>Open it.<ol><li>Look.</ol><ul><li>"
                   "Or not.</ul><li>Close it.</ol>"),
    ],
)  # fmt: skip
def test_steps_keep_their_numbers(name, content):
    assert [fact.text for fact in facts(name, content)] == [
        "Do this:\n3. Open it.\n  1. Look.\n  - Or not.\n4. Close it."
    ]


def test_steps_of_a_text_keep_their_numbers():
    (fact,) = facts("a.txt", "Do this:\n\n1) Open it.\n2) Close it.\n")
    assert fact.text == "Do this:\n1. Open it.\n2. Close it."


def test_a_command_stands_below_what_leads_to_it():
    (fact,) = facts("a.md", "Inside the network:\n\n```\nset proxy\nrun\n```\n")
    assert fact.text == "Inside the network:\nset proxy\nrun"


def test_numbered_clauses_stand_apart_below_their_headings():
    text = """2. RECEPTION

2.1 Answering calls
    Calls are answered within
    2.50 minutes by everybody who is there.

2.2 Care navigation
    2.2.1 Ask the reason for the request.
    2.2.2 These go to the pharmacist:
        (a) sore throat, age 5 and over
        (b) earache
    2.2.3 Dental pain goes to the dental line
    2.2.4 Nobody is alone after 7.00pm.
"""

    read = [(fact.headings[1:], fact.text) for fact in facts("a.txt", text)]

    assert read == [
        (
            ("2.1 Answering calls",),
            "Calls are answered within 2.50 minutes by everybody who is there.",
        ),
        (("2.2 Care navigation",), "2.2.1 Ask the reason for the request."),
        (
            ("2.2 Care navigation",),
            "2.2.2 These go to the pharmacist:\n- (a) sore throat, age 5 and over\n"
            "- (b) earache",
        ),
        (("2.2 Care navigation",), "2.2.3 Dental pain goes to the dental line"),
        (("2.2 Care navigation",), "2.2.4 Nobody is alone after 7.00pm."),
    ]


def test_a_box_with_a_telephone_number_beside_a_page_is_read():
    page = """<html><body><main><h1>Bins</h1><p>Bins are emptied on Mondays.</p>
<p>Page last updated: 14 March 2025</p></main><aside><section><h2>Contact</h2><p>Waste team
<a href="tel:01632960210">01632 960210</a></p></section><ul><li><a href="/x">Recycling</a></li>
</ul></aside></body></html>"""

    read = document("bins.html", page)

    assert [(fact.headings, fact.text) for fact in read.facts] == [
        (("Bins",), "Bins are emptied on Mondays."),
        (("Bins", "Contact"), "Waste team 01632 960210"),
    ]
    assert {fact.text for fact in read.left_out} == {
        "Page last updated: 14 March 2025", "- Recycling",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("about:blank", "Fees"),
        ("Untitled document", "Fees"),
        ("", "Fees"),
        ("Documents", "Documents"),
    ],
)
def test_a_title_that_a_program_made_up_is_none(title, shown):
    page = f"<title>{title}</title><h1>Fees</h1><p>A card costs 12 euros.</p>"
    assert document("a.html", page).title == shown


def test_what_is_hidden_on_a_page_is_read_nowhere():
    page = """<p>Cards.</p>
<ul><li>Gold: 5 euros<span hidden> (old: 9 euros)</span></li><li hidden>Secret</li></ul>
<table><tr><th>Card</th><th>Fee</th></tr><tr><td>Gold</td><td>5<span aria-hidden="true">99</span>
</td></tr><tr hidden><td>Secret</td><td>1</td></tr></table>"""

    assert [fact.text for fact in document("a.html", page).facts] == [
        "Cards.",
        "- Gold: 5 euros",
        "Card | Fee\n--- | ---\nGold | 5",
    ]


def test_a_line_break_of_html_in_markdown_parts_words():
    page = (
        "| Card | Fee |\n|---|---|\n| Gold | 10<br>20 |\n\n500<br/>700 euros are due.\n"
    )

    assert [fact.text for fact in document("a.md", page).facts] == [
        "Card | Fee\n--- | ---\nGold | 10 20",
        "500 700 euros are due.",
    ]


def test_a_question_that_opens_its_answer_is_one_fact():
    page = """<h2>Account</h2>
<details><summary>How do I open one?</summary><div><p>Choose Register.</p>
<p>You need:</p><ul><li>a phone</li><li>a code</li></ul></div></details>
<h3><button aria-expanded="false" aria-controls="a1">Does it cost anything?</button></h3>
<div id="a1" role="region" hidden><p>No, it is free.</p></div>
<ul><li><button aria-expanded="false" aria-controls="a2">May I close it?</button>
<div id="a2" aria-hidden="true">Yes, at any moment.</div></li></ul>
<button aria-expanded="false" aria-controls="a3">Show more</button>
<div id="a3">Accounts are kept for 10 years.</div>
<details><summary>How do I open one?</summary>Ask at the desk.</details>
<details><summary>How does it all work?</summary><h4>At home</h4><p>By the app, which is free.
</p></details><p>The desk is open until 6 pm.</p>"""

    read = document("help.html", page).facts

    assert [(fact.question, fact.text) for fact in read] == [
        ("How do I open one?", "Choose Register.\n\nYou need:\n- a phone\n- a code"),
        ("Does it cost anything?", "No, it is free."),
        ("May I close it?", "Yes, at any moment."),
        ("", "Accounts are kept for 10 years."),
        ("", "How do I open one?\nAsk at the desk."),
        ("", "By the app, which is free."),
        ("", "The desk is open until 6 pm."),
    ]
    assert read[5].headings == ("Account", "How does it all work?", "At home")
    assert read[6].headings == ("Account",)


def test_a_term_and_what_is_said_to_it_are_one_fact():
    page = """<dl><dt>Pending:</dt><dd>We have your request.</dd><div><dt>Released</dt>
<dt>Open</dt><dd>You may book it.</dd><dd>It stays so for 5 days.</dd></div>
<dt>Who may book?</dt><dd>Everybody.</dd><dt>Papers</dt><dd><ul><li>a pass</li></ul></dd>
<dt>Alone</dt></dl>"""

    assert [(fact.question, fact.text) for fact in facts("a.html", page)] == [
        ("", "Pending: We have your request."),
        ("", "Released, Open: You may book it.\n\nIt stays so for 5 days."),
        ("Who may book?", "Everybody."),
        ("", "Papers:\n- a pass"),
        ("", "Alone"),
    ]


def test_what_stands_beside_the_text_of_a_page_is_no_fact():
    page = """<body><div id="cookie-banner" role="dialog"><p>We use cookies.</p></div>
<header><a href="/">Card bank</a></header><ol class="breadcrumb"><li>Home</li></ol>
<main><header><h1>Fees</h1></header><p>A card costs 12 euros.</p>
<aside class="note">The PIN letter is free of charge.</aside><p hidden>Soon it costs 13.</p>
<section id="feedback"><h2>Feedback</h2><p>Tell us at the desk what you think.</p></section>
<aside><h3>Related</h3><ul><li>Prices</li></ul></aside>
<p>Last updated: 3 February 2026 | Page owner: Web team</p></main>
<div class="panel"><p>Was this page helpful?</p></div><footer>Imprint</footer></body>"""

    read = document("fees.html", page)

    assert [fact.text for fact in read.facts] == [
        "A card costs 12 euros.",
        "The PIN letter is free of charge.",
        "Tell us at the desk what you think.",
    ]
    assert [fact.text for fact in read.left_out] == [
        "We use cookies.",
        "Card bank",
        "Home",
        "- Prices",
        "Last updated: 3 February 2026 | Page owner: Web team",
        "Was this page helpful?",
    ]


def test_a_page_that_calls_a_small_part_its_main_content_is_read_as_a_whole():
    page = f"<main><p>Fees</p></main><div><p>{'A card costs 12 euros. ' * 3}</p></div>"

    assert len(facts("a.html", page)) == 2


def test_a_page_of_endless_nesting_is_refused_or_read():
    page = "<details><summary>Why?</summary>" * 200 + "So."

    assert items("a.html", page.encode())


def test_a_merged_cell_stands_in_each_of_its_columns_and_rows():
    page = """<p>Table 2: Opening hours</p><table><caption>In summer</caption>
<tr><th rowspan="2">Site</th><th colspan="2">Monday to Friday</th><th>Saturday</th></tr>
<tr><th>Desk</th><th>Lab</th><th>Desk</th></tr>
<tr><td>Harbour</td><td>7 to 19</td><td rowspan="2">7 to 12</td><td>8 to 13</td></tr>
<tr><td>Millfield</td><td>8 to 18</td><td>closed</td></tr>
<tr><td colspan="4">Holidays</td></tr>
<tr><td>Oak Hill</td><td colspan="3">closed</td></tr></table>"""

    assert [fact.text for fact in facts("a.html", page)] == [
        "Table 2: Opening hours",
        "In summer:\n"
        "Site | Monday to Friday Desk | Monday to Friday Lab | Saturday Desk\n--- | ---\n"
        "Harbour | 7 to 19 | 7 to 12 | 8 to 13\n"
        "Millfield | 8 to 18 | 7 to 12 | closed\n"
        "Holidays |  |  | \n"
        "Oak Hill | closed | closed | closed",
    ]


def test_a_first_row_that_spans_columns_takes_no_row_of_data_for_headings():
    page = """<table><tr><th>Name</th><th colspan="2">Contact</th></tr>
<tr><td>Ann</td><td>room 3</td><td>ann@example.org</td></tr></table>"""

    assert [fact.text for fact in facts("a.html", page)] == [
        "Name | Contact | Contact\n--- | ---\nAnn | room 3 | ann@example.org"
    ]


def test_a_caption_above_a_table_introduces_it_in_any_format():
    text = (
        "Table 1. Fees\n\n| Card | Fee |\n|---|---|\n| Gold | 72 |\n\nTable 2 is old."
    )

    assert [fact.text for fact in facts("a.md", text)] == [
        "Table 1. Fees:\nCard | Fee\n--- | ---\nGold | 72",
        "Table 2 is old.",
    ]


@pytest.mark.parametrize("behind", ["", "\n\nAsk at the desk."])
def test_captions_that_stand_below_their_tables_introduce_these(behind):
    fees = "| Card | Fee |\n|---|---|\n| Gold | 72 |\n\nTable 1: fees"
    limits = "| Card | Limit |\n|---|---|\n| Gold | 9 |\n\nTable 2: limits"

    found = facts("a.md", f"{fees}\n\n{limits}{behind}")

    assert [fact.text for fact in found][:2] == [
        "Table 1: fees:\nCard | Fee\n--- | ---\nGold | 72",
        "Table 2: limits:\nCard | Limit\n--- | ---\nGold | 9",
    ]
    about = "| Card | Fee |\n|---|---|\n| Gold | 72 |\n\nTable 1 is old."
    assert len(facts("a.md", about)) == 2


def test_a_table_of_contents_is_no_fact():
    text = """# Guide

Contents

Your tenancy

Paying your rent .......... 4

Moving in ... 7

## Your tenancy

Pets allowed:

- Dogs
- Cats

## Paying your rent

Contents of the home are not insured.

## Moving in

Paying your rent

### Dogs

Two at most.

### Cats

Three at most.
"""

    read = document("guide.md", text)

    assert [fact.text for fact in read.facts] == [
        "Pets allowed:\n- Dogs\n- Cats",
        "Contents of the home are not insured.",
        "Paying your rent",
        "Two at most.",
        "Three at most.",
    ]
    assert [fact.text for fact in read.left_out][:2] == ["Contents", "Your tenancy"]


@pytest.mark.parametrize(
    "line",
    [
        "Created by Ann Lee, last modified by Bo Ray on Jan 29, 2025",
        "Created by Ann Lee on Nov 25, 2024",
        "Home &gt; Help &gt; Water leaks",
        "Home &rsaquo; Help &rsaquo; Water leaks",
    ],
)
def test_where_a_page_stands_and_who_wrote_it_is_no_fact(line):
    page = f"<h1>Leaks</h1><p>{line}</p><p>A leak is repaired in 7 days.</p>"

    read = document("leaks.html", page)

    assert [fact.text for fact in read.facts] == ["A leak is repaired in 7 days."]
    assert len(read.left_out) == 1


def test_an_entity_of_a_page_is_not_expanded(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    page = (
        f'<!DOCTYPE html [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
        "<p>What it says is: &e; and nothing else.</p>"
    )

    assert not any("the secret" in fact.text for fact in facts("a.html", page))


def test_plain_text_knows_headings_by_lines_that_end_on_purpose():
    text = """1. How to pay
Pay by card or in cash at every counter of the bank, whenever it is open.
A fee of 2 euros is charged for cash.

A paragraph whose lines are wrapped by a program that
breaks them where they are full is no heading at all.

You need:
- a passport
- a photo
"""

    read = document("pay.txt", text)

    assert read.headings == (("1. How to pay",),)
    assert [(fact.text, fact.place) for fact in read.facts] == [
        (
            "Pay by card or in cash at every counter of the bank, whenever it is open. A "
            "fee of 2 euros is charged for cash.",
            "line 1",
        ),
        (
            "A paragraph whose lines are wrapped by a program that breaks them where "
            "they are full is no heading at all.",
            "line 5",
        ),
        ("You need:\n- a passport\n- a photo", "line 8"),
    ]


def test_a_word_document_keeps_headings_lists_and_tables():
    read = document("cards.docx", make_docx())

    assert read.title == "Cards"
    assert read.headings == (("Fees",), ("Fees", "Abroad"))
    assert [(fact.text, fact.place) for fact in read.facts] == [
        (
            "A replacement card costs 12 euros. A PIN letter costs 5 euros.",
            "paragraph 2",
        ),
        ("You need:\n- a passport\n- a photo", "paragraph 4"),
        ("Card | Fee\nGold | 72", "paragraph 7"),
    ]


def test_a_word_document_is_read_as_if_its_changes_were_accepted():
    body = f"""<w:body {nsdecls("w")}>
<w:p><w:r><w:t xml:space="preserve">The fee is </w:t></w:r>
<w:del><w:r><w:delText>10</w:delText></w:r></w:del><w:ins><w:r><w:t>25</w:t></w:r></w:ins>
<w:smartTag><w:r><w:t xml:space="preserve"> euros a year.</w:t></w:r></w:smartTag></w:p>
<w:sdt><w:sdtPr/><w:sdtContent><w:p><w:r><w:t>A card lasts for four years.</w:t></w:r></w:p>
</w:sdtContent></w:sdt></w:body>"""
    word = docx.Document()
    for part in reversed(parse_xml(body)):
        word.element.body.insert(0, part)
    out = io.BytesIO()
    word.save(out)

    assert [fact.text for fact in facts("a.docx", out.getvalue())] == [
        "The fee is 25 euros a year.",
        "A card lasts for four years.",
    ]


def test_lists_of_a_word_document_keep_their_levels_and_numbers():
    word = docx.Document()
    word.add_heading("1.2 Before the visit", level=1)
    for text, style in [
        ("Eat nothing.", "List Number"),
        ("Tell us if you take:", "List Number"),
        ("blood thinners", "List Bullet 2"),
        ("insulin", "List Bullet 2"),
        ("Come on time.", "List Number"),
        ("The desk is open all day.", "Normal"),
        ("a pass", "List Bullet"),
    ]:
        word.add_paragraph(text, style=style)
    inner = word.add_paragraph("also a copy", style="List Bullet")
    properties = inner._p.get_or_add_pPr().get_or_add_numPr()
    properties.get_or_add_ilvl().val = 1
    properties.get_or_add_numId().val = 1
    out = io.BytesIO()
    word.save(out)

    assert [fact.text for fact in facts("a.docx", out.getvalue())] == [
        "Before the visit:\n1. Eat nothing.\n2. Tell us if you take:\n"
        "  - blood thinners\n  - insulin\n3. Come on time.",
        "The desk is open all day.",
        "- a pass\n  - also a copy",
    ]


def test_a_word_table_of_two_rows_of_headings_has_one_and_its_caption():
    word = docx.Document()
    word.add_paragraph("Opening hours", style="Caption")
    table = word.add_table(rows=3, cols=3)
    table.cell(0, 0).merge(table.cell(1, 0)).text = "Site"
    table.cell(0, 1).merge(table.cell(0, 2)).text = "Saturday"
    for column, texts in enumerate(
        [("Harbour",), ("Desk", "8 to 13"), ("Lab", "closed")]
    ):
        for row, text in zip(range(3 - len(texts), 3), texts, strict=True):
            table.cell(row, column).text = text
    word.add_paragraph("A note", style="Caption")
    out = io.BytesIO()
    word.save(out)

    assert [fact.text for fact in facts("a.docx", out.getvalue())] == [
        "Opening hours:\nSite | Saturday Desk | Saturday Lab\nHarbour | 8 to 13 | closed",
        "A note",
    ]


def test_a_pdf_is_read_page_by_page_under_its_outline():
    read = document(
        "cards.pdf",
        make_pdf("A replacement card costs 12 euros.", "A card lasts for four years."),
    )

    assert [(fact.text, fact.place, fact.headings) for fact in read.facts] == [
        ("A replacement card costs 12 euros.", "page 1, paragraph 1", ("Chapter 1",)),
        ("A card lasts for four years.", "page 2, paragraph 1", ("Chapter 2",)),
    ]


@pytest.mark.slow
def test_a_cell_merged_over_many_rows_is_read_or_refused():
    content, limit = make_merged_docx(300), sys.getrecursionlimit()
    sys.setrecursionlimit(300)  # the library looks at each row from within the last
    try:
        with suppress(ImportFileError):
            document("a.docx", content)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.xls", b"PK", "is not read"),
        ("a.xlsx", b"no archive", "content of 'a.xlsx' is not Excel"),
        ("a.xlsx", make_docx(), "a valid Excel workbook"),
        ("a.xlsx", make_archive(xl__workbook_xml=b"<x"), "cannot be read"),
        ("a.xlsx", make_archive(xl__workbook_xml=b" " * 3_000_000), "unpacks to"),
        ("a.docx", b"no archive", "content of 'a.docx' is not DOCX"),
        ("a.md", make_docx(), "is not Markdown but an archive"),
        ("a.csv", make_pdf("x"), "is not CSV but PDF"),
        ("a.txt", b"\x7fELF\x00\x00", "not text"),
        ("a.txt", b"", "empty"),
        ("a.pdf", b"%PDF-1.7 and no more", "cannot be read"),
        ("a.pdf", make_pdf(""), "no text"),
        ("a.docx", make_archive(other_xml=b"x"), "a valid DOCX"),
        ("a.docx", make_archive(word__document_xml=b"<x"), "cannot be read"),
        ("a.docx", make_archive(word__document_xml=b" " * 3_000_000), "unpacks to"),
        ("a.txt", b"x" * 1_000_001, "may have 1,000,000"),
    ],
)
def test_what_can_not_be_read_is_refused_with_the_reason(name, content, why):
    with pytest.raises(ImportFileError, match=why):
        items(name, content)


class CountedReads(io.BytesIO):
    """A stream that knows how much of it was read."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.taken += len(found)
        return found


def test_an_upload_is_judged_by_its_first_bytes_alone():
    members = {f"part{n}": b"" for n in range(2_000)}
    upload = CountedReads(make_archive(**members))

    assert detect_format("a.docx", upload, LIMITS) == "docx"

    assert 0 < upload.taken <= 4096 < len(upload.getvalue())


def test_an_entity_of_a_word_document_is_not_expanded():
    bomb = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:body><w:p><w:r><w:t>&b;</w:t></w:r></w:p></w:body></w:document>"""
    original = io.BytesIO(make_docx())
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(original) as source, zipfile.ZipFile(out, "w") as archive:
        for member in source.namelist():
            content = bomb if member == "word/document.xml" else source.read(member)
            archive.writestr(member, content)

    read = document("a.docx", out.getvalue())

    assert not any("haha" in fact.text for fact in read.facts)


def test_a_pdf_that_unpacks_to_too_much_is_refused():
    content = make_pdf("word " * 1000)
    small = Limits(file_bytes=1_000_000, unpacked_bytes=1000)

    assert detect_format("a.pdf", io.BytesIO(content), LIMITS)
    with pytest.raises(ImportFileError, match="more than 1,000 characters"):
        read_pdf(io.BytesIO(content), "en", small)


def test_a_long_list_is_cut_between_items_and_keeps_its_lead():
    text = "You may bring:\n\n" + "".join(
        f"- a thing of kind {n}\n" for n in range(400)
    )

    read = facts("a.md", text)

    assert len(read) > 1
    assert all(fact.text.startswith("You may bring:\n- a thing") for fact in read)
    assert sum(fact.text.count("- a thing") for fact in read) == 400


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "| Kind |\n|---|\n| Gold |\n"),
        ("a.html", "<table><tr><th>Kind</th></tr><tr><td>Gold</td></tr></table>"),
    ],
)
def test_a_table_of_one_column_has_no_line_below_its_heading(name, text):
    assert [fact.text for fact in facts(name, text)] == ["Kind\nGold"]


def test_every_piece_of_a_long_table_has_its_lead_and_its_headings():
    rows = "\n".join(f"| Kind {n} | {n} days, {'and so on ' * 20}|" for n in range(40))
    text = f"# Periods\n\nThe periods are:\n\n| Kind | Period |\n|---|---|\n{rows}\n"

    pieces = document("a.md", text).facts

    assert len(pieces) > 1
    for fact in pieces:
        assert fact.text.startswith("The periods are:\nKind | Period\n--- | ---\nKind ")


def test_what_a_document_says_of_itself_is_no_fact():
    text = """# Handbook

Version 7, for searchroom and enquiry staff. Maintained by the Reader Services Manager.

Last updated: 12 March 2025

Revision 3.2 of 12.3.2025

Version 7 of the catalogue needs a new ticket.

Page 3 of 9

Was this page helpful? Yes No

Was this page helpful to the committee? It said so.

Maintained by volunteers.

Copyright law protects the photographs. Reviewed on 3 May 2026.

© 2026 County Record Office. All rights reserved.
"""

    read = document("handbook.md", text)

    assert [fact.text for fact in read.facts] == [
        "Version 7 of the catalogue needs a new ticket.",
        "Was this page helpful to the committee? It said so.",
        "Maintained by volunteers.",
        "Copyright law protects the photographs.",
    ]
    assert [fact.text.splitlines() for fact in read.left_out] == [
        [
            "Version 7, for searchroom and enquiry staff.",
            "Maintained by the Reader Services Manager.",
        ],
        ["Last updated: 12 March 2025"],
        ["Revision 3.2 of 12.3.2025"],
        ["Page 3 of 9"],
        ["Was this page helpful? Yes No"],
        ["Reviewed on 3 May 2026."],
        ["© 2026 County Record Office. All rights reserved."],
    ]
    assert {fact.headings for fact in read.left_out} == {("Handbook",)}


@pytest.mark.parametrize(
    "said",
    [
        "Version 7 needs Android 12 or later.",
        "Updated cards are sent within 10 days.",
        "Reviewed contracts are signed by 2 people.",
        "Page 3 of the form must be signed.",
        "Copyright belongs to the photographer.",
        "Maintained by us, the lift is checked twice a year.",
        "Edition 4 costs 12 euros.",
        "Updated cards cost 12.",
        "Version 7 for desktops costs 12 euros.",
    ],
)
def test_what_only_begins_like_a_line_about_the_document_is_a_fact(said):
    assert [fact.text for fact in facts("a.md", said)] == [said]


def test_an_exception_stays_with_the_rule_that_it_is_of():
    rule = "Please cancel at least 24 hours before the visit, or we charge 25 euros."
    exception = "Exception: For day procedures the fee is 80 euros."
    text = (
        f"# Visits\n\nCome early.\n\n{rule}\n\n{exception}\n\n# Fees\n\nNote: In cash."
    )

    assert [fact.text for fact in document("visits.md", text).facts] == [
        "Come early.",
        f"{rule} {exception}",
        "Note: In cash.",
    ]


def with_notes(word: Document, texts: Sequence[str]) -> bytes:
    """Return a Word document with footnotes, each referred to where the text says "[n]"."""
    notes = "".join(
        f'<w:footnote w:id="{at}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:footnote>'
        for at, text in enumerate(texts, start=1)
    )
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    part = Part(
        PackURI("/word/footnotes.xml"),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml",
        f"<w:footnotes {space}>{notes}</w:footnotes>".encode(),
        word.part.package,
    )
    word.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    for text in [*word.element.body.iter(qn("w:t"))]:
        before, mark, number = (text.text or "").partition("[")
        if mark:
            text.text = before
            reference = OxmlElement("w:footnoteReference")
            reference.set(qn("w:id"), number.rstrip("]"))
            text.addnext(reference)
    out = io.BytesIO()
    word.save(out)
    return out.getvalue()


def test_a_footnote_stands_behind_what_refers_to_it():
    word = docx.Document()
    word.add_heading("Fees[1]", level=1)
    word.add_paragraph("A replacement card costs 12 euros.[2]")
    table = word.add_table(rows=2, cols=2)
    for cell, text in zip(
        [*table.rows[0].cells, *table.rows[1].cells],
        ["Card", "Fee", "Gold", "72[3]"],
        strict=True,
    ):
        cell.text = text

    read = facts(
        "a.docx", with_notes(word, ["From May.", "The first is free.", "a year"])
    )

    assert {fact.headings for fact in read} == {("Fees",)}
    assert [fact.text for fact in read] == [
        "From May.",
        "A replacement card costs 12 euros. The first is free.",
        "Card | Fee\nGold | 72 a year",
    ]
