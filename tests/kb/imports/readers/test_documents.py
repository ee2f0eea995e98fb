"""Documents of every format: their headings, their facts, and where these stand."""

import io
import sys
from contextlib import suppress

import pytest

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
        ("You need:\n- a passport\n  - or an ID\n- a photo", "line 8", ("Cards",)),
        ("Card | Fee\nGold | 72", "line 16", ("Cards", "Fees")),
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
        ("Card | Fee\nGold | 72", "line 5"),
    ]


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


def test_a_pdf_is_read_page_by_page_under_its_outline():
    read = document(
        "cards.pdf",
        make_pdf("A replacement card costs 12 euros.", "A card lasts for four years."),
    )

    assert [(fact.text, fact.place, fact.headings) for fact in read.facts] == [
        ("A replacement card costs 12 euros.", "page 1, line 1", ("Chapter 1",)),
        ("A card lasts for four years.", "page 2, line 1", ("Chapter 2",)),
    ]


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
        ("a.xlsx", b"PK", "is not read"),
        ("a.docx", b"no archive", "by its content"),
        ("a.md", make_docx(), "by its content, but DOCX"),
        ("a.csv", make_pdf("x"), "by its content, but PDF"),
        ("a.txt", b"\x7fELF\x00\x00", "no text"),
        ("a.txt", b"", "empty"),
        ("a.pdf", b"%PDF-1.7 and no more", "cannot be read"),
        ("a.pdf", make_pdf(""), "no text"),
        ("a.docx", make_archive(other_xml=b"x"), "no DOCX"),
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


def test_every_piece_of_a_long_table_has_its_lead_and_its_headings():
    rows = "\n".join(f"| Kind {n} | {n} days, {'and so on ' * 20}|" for n in range(40))
    text = f"# Periods\n\nThe periods are:\n\n| Kind | Period |\n|---|---|\n{rows}\n"

    pieces = document("a.md", text).facts

    assert len(pieces) > 1
    for fact in pieces:
        assert fact.text.startswith("The periods are:\nKind | Period\nKind ")


def test_what_a_document_says_of_itself_is_no_fact():
    text = """# Handbook

Version 7, for searchroom and enquiry staff. Maintained by the Reader Services Manager.

Last updated: 12 March 2025

Revision 3.2 of 12.3.2025

Version 7 of the catalogue needs a new ticket.

Page 3 of 9

Maintained by volunteers.

Copyright law protects the photographs. Reviewed on 3 May 2026.

© 2026 County Record Office. All rights reserved.
"""

    read = document("handbook.md", text)

    assert [fact.text for fact in read.facts] == [
        "Version 7 of the catalogue needs a new ticket.",
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
