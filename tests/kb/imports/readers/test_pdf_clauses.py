"""Numbered clauses and tables of contents of PDFs, in several lay-outs."""

import pytest

from kb.imports.readers import SourceDocument
from tests.kb.imports.readers.files import document, make_pdf, rules, text_at


def read(*pages: str) -> SourceDocument:
    return document("a.pdf", make_pdf(*pages, bookmarks=False))


def said(found: SourceDocument) -> list[tuple[str, tuple[str, ...]]]:
    return [(fact.text, fact.headings) for fact in found.facts]


def hanging(y: float, number: str, *lines: str, gap: float = 30) -> str:
    """Return what writes a clause whose lines begin to the right of its number."""
    return text_at(50, y, number) + text_at(50 + gap, y, *lines)


def columns(y: float, *rows: tuple[str, str], right: float = 500) -> str:
    """Return what writes titles at the left and their pages at the right."""
    return "".join(
        text_at(50, y - 20 * at, title) + text_at(right, y - 20 * at, page)
        for at, (title, page) in enumerate(rows)
    )


def test_a_clause_whose_first_line_is_full_is_a_paragraph_below_its_section():
    page = (
        text_at(50, 750, "Section 1. Cover", size=14, bold=True)
        + text_at(
            50,
            720,
            "1.1 We issue this policy at three levels of cover: Essential for third parties, fire",
        )
        + text_at(
            80,
            706.8,
            "and theft, Standard and Premier. Your schedule tells you which.",
        )
        + text_at(
            50,
            688,
            "1.2 New car replacement applies to a car that has been registered in the name of",
        )
        + text_at(80, 674.8, "Harrowgate customers for less than 24 months.")
        + text_at(50, 656, "1.3 Glass is insured.")
        + text_at(80, 642.8, "This holds at every level.")
    )

    section = ("Section 1. Cover",)
    assert said(read(page)) == [
        (
            "1.1 We issue this policy at three levels of cover: Essential for third "
            "parties, fire and theft, Standard and Premier. Your schedule tells you which.",
            section,
        ),
        (
            "1.2 New car replacement applies to a car that has been registered in the "
            "name of Harrowgate customers for less than 24 months.",
            section,
        ),
        ("1.3 Glass is insured. This holds at every level.", section),
    ]


def test_clauses_without_space_between_them_are_entries_of_their_own():
    page = text_at(50, 750, "4 Tenancy", size=13, bold=True) + text_at(
        50,
        730,
        "4.1 Rent is due on the first day of each month, by standing order, and is paid",
        "to the housing association.",
        "4.2 You may keep one pet, except under the rules of section",
        "4.7 Pets in flats without a garden need a letter from us",
        "4.3 Subletting is not allowed.",
    )

    assert [fact.text for fact in read(page).facts] == [
        "4.1 Rent is due on the first day of each month, by standing order, and is paid "
        "to the housing association.",
        "4.2 You may keep one pet, except under the rules of section 4.7 Pets in flats "
        "without a garden need a letter from us",
        "4.3 Subletting is not allowed.",
    ]


def test_a_number_that_stands_apart_from_its_clause_makes_no_table():
    page = (
        text_at(50, 750, "Definitions", size=14, bold=True)
        + hanging(720, "2.1", "\\252Excess\\272 means the part that you pay.", "It is taken off.")
        + hanging(690, "2.2", "\\252Track\\272 means any circuit or airfield,", "timed or not.")
        + hanging(660, "2.3", "\\252Partner\\272 means your husband or wife.")
    )  # fmt: skip

    assert said(read(page)) == [
        ("2.1 \u201cExcess\u201d means the part that you pay. It is taken off.", ("Definitions",)),
        ("2.2 \u201cTrack\u201d means any circuit or airfield, timed or not.", ("Definitions",)),
        ("2.3 \u201cPartner\u201d means your husband or wife.", ("Definitions",)),
    ]  # fmt: skip


def test_a_clause_goes_on_over_a_page_in_the_line_of_its_text():
    first = hanging(
        300, "6.6", "You keep your bonus where another driver is", "to blame for it."
    )
    second = text_at(80, 750, "Tell us his name.") + hanging(
        720, "6.7", "Pets are insured."
    )

    assert [fact.text for fact in read(first, second).facts] == [
        "6.6 You keep your bonus where another driver is to blame for it. Tell us his name.",
        "6.7 Pets are insured.",
    ]


def test_a_clause_stands_below_no_heading_of_an_earlier_one():
    table = "".join(
        text_at(x, y, cell)
        for y, row in (
            (686, ("Claim", "Excess")),
            (666, ("Fire", "250")),
            (646, ("Keys", "50")),
        )
        for x, cell in zip((54, 204), row, strict=True)
    )
    page = (
        text_at(50, 750, "7 Excess", size=14, bold=True)
        + text_at(50, 720, "7.2 Table of excesses")
        + rules((50, 200, 300), (700, 680, 660, 640))
        + table
        + text_at(50, 610, "7.3 No excess applies to claims of others.")
    )

    assert [fact.headings for fact in read(page).facts] == [
        ("7 Excess", "7.2 Table of excesses"),
        ("7 Excess",),
    ]


def test_a_short_clause_above_the_next_one_is_text():
    page = (
        text_at(50, 750, "5 Services", size=14, bold=True)
        + text_at(50, 720, "5.1 Home visits")
        + text_at(50, 700, "5.2 Blood tests")
        + text_at(50, 680, "5.3 Scans of the knee")
        + text_at(50, 640, "6 Fees", size=14, bold=True)
        + text_at(50, 610, "Each costs 20 euros.")
    )

    assert said(read(page)) == [
        ("5.1 Home visits", ("5 Services",)),
        ("5.2 Blood tests", ("5 Services",)),
        ("5.3 Scans of the knee", ("5 Services",)),
        ("Each costs 20 euros.", ("6 Fees",)),
    ]


@pytest.mark.parametrize("end", ["", ":", ","])
def test_items_keep_the_sentence_that_leads_to_them(end):
    page = (
        text_at(50, 750, "Exclusions", size=14, bold=True)
        + text_at(
            50, 720, f"10.1 We do not insure loss or damage that was caused by{end}"
        )
        + hanging(704, "   (a)", "war or riot;", gap=40)
        + hanging(
            688, "   (b)", "wear and tear, or a breakdown of the", "engine.", gap=40
        )
        + text_at(50, 655, "10.2 Tyres are insured.")
    )

    assert said(read(page)) == [
        (
            "10.1 We do not insure loss or damage that was caused by:\n"
            "- (a) war or riot;\n- (b) wear and tear, or a breakdown of the engine.",
            ("Exclusions",),
        ),
        ("10.2 Tyres are insured.", ("Exclusions",)),
    ]


CHAPTERS = text_at(50, 750, "Fees", size=14) + text_at(
    50, 720, "A card costs 12 euros."
)
MORE = text_at(50, 750, "Loss and theft", size=14) + text_at(
    50, 720, "Call us at once."
)


@pytest.mark.parametrize(
    "entries",
    [
        text_at(50, 720, "Fees .......... 2", "Loss and theft .......... 3"),
        text_at(300, 720, ". . . . . . . 2")
        + columns(
            720, ("Fees", ""), ("Loss and theft of", ""), ("a card", ". . . . . 3")
        ),
        columns(720, ("Fees", "2"), ("Loss and theft", "3")),
        columns(720, ("Preface", ". . . . . ii"), ("Charges", ". . . . . . 2")),
    ],
)
@pytest.mark.parametrize("heading", ["Contents", "Inhaltsverzeichnis"])
def test_a_contents_page_is_left_out_and_leads_no_section(heading, entries):
    page = text_at(50, 750, heading, size=18, bold=True) + entries

    found = read(page, CHAPTERS, MORE)

    assert said(found) == [
        ("A card costs 12 euros.", ("Fees",)),
        ("Call us at once.", ("Loss and theft",)),
    ]
    assert found.left_out[0].text.startswith(heading)
    assert found.left_out[0].place == "page 1"


def test_prices_below_a_heading_contents_are_knowledge():
    page = text_at(50, 750, "Contents", size=18, bold=True) + text_at(
        50, 720, "Jewellery is insured up to .......... 1500", "Bicycles .......... 400"
    )

    (fact,) = read(page).facts

    assert "Jewellery" in fact.text
    assert "400" in fact.text
    assert fact.headings == ("Contents",)


def test_a_table_of_contents_may_stand_in_one_of_two_columns():
    left = text_at(50, 750, "Inhalt", bold=True) + columns(
        730, ("1 Sachen", "1"), ("2 Pflichten", "1"), right=250
    )
    left += text_at(50, 680, "1 Sachen", bold=True) + hanging(
        660, "1.1", "Versichert ist der gesamte Hausrat", "in der Wohnung."
    )
    right = text_at(320, 750, "2 Pflichten", bold=True) + text_at(320, 730, "2.1")
    right += text_at(
        350, 730, "Der Schaden ist an dem Tag, an", "dem er bemerkt wird, zu melden."
    )

    assert said(read(left + right)) == [
        ("1.1 Versichert ist der gesamte Hausrat in der Wohnung.", ("1 Sachen",)),
        (
            "2.1 Der Schaden ist an dem Tag, an dem er bemerkt wird, zu melden.",
            ("2 Pflichten",),
        ),
    ]
