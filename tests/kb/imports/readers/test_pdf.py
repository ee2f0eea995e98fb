"""PDFs: headings, tables, columns and furniture by where letters and rules stand."""

from contextlib import suppress

import pytest

from kb.imports.readers import ImportFileError, SourceDocument
from tests.kb.imports.readers.files import document, items, make_pdf, rules, text_at

HEADINGS = ("Code", "Visit", "Price (euros)")
VISITS = [("C1", "First visit", "95"), ("C2", "Follow-up", "58"), ("C3", "Scan", "120")]
LEFTS = (50, 120, 300, 400)


def read(*pages: str) -> SourceDocument:
    return document("a.pdf", make_pdf(*pages, bookmarks=False))


def said(found: SourceDocument) -> list[tuple[str, tuple[str, ...]]]:
    return [(fact.text, fact.headings) for fact in found.facts]


def cells(y: float, *rows: tuple[str, ...], bold: int = 0, pitch: float = 20) -> str:
    return "".join(
        text_at(x + 4, y - at * pitch, cell, bold=at < bold)
        for at, row in enumerate(rows)
        for x, cell in zip(LEFTS, row, strict=False)
    )


def ruled(y: float, *rows: tuple[str, ...]) -> str:
    return cells(y, *rows) + rules(
        LEFTS, [y + 14 - 20 * at for at in range(len(rows) + 1)]
    )


def test_headings_are_lines_of_larger_or_bolder_letters_anywhere_on_a_page():
    page = (
        text_at(50, 750, "Price booklet", size=20, bold=True)
        + text_at(50, 720, "Procedures", size=14, bold=True)
        + text_at(50, 700, "Colonoscopy", bold=True)
        + text_at(
            50,
            686,
            "You start the diet three days before. Iron tablets",
            "are stopped.",
        )
        + text_at(50, 650, "Cataract", bold=True)
        + text_at(50, 636, "Do not swim for four weeks.")
        + text_at(50, 600, "Refunds", size=14, bold=True)
        + text_at(50, 580, "Not included.", bold=True)
        + text_at(126, 580, "Rides are not part of the price.")
    )

    assert said(read(page)) == [
        (
            "You start the diet three days before. Iron tablets are stopped.",
            ("Price booklet", "Procedures", "Colonoscopy"),
        ),
        ("Do not swim for four weeks.", ("Price booklet", "Procedures", "Cataract")),
        (
            "Not included. Rides are not part of the price.",
            ("Price booklet", "Refunds"),
        ),
    ]


def test_numbers_say_which_headings_of_one_look_are_below_others():
    page = (
        text_at(50, 750, "3 Fees", bold=True)
        + text_at(50, 730, "All fees are in euros.")
        + text_at(50, 700, "3.2   Cancelling")
        + text_at(50, 670, "Cancel a day before.")
        + text_at(50, 640, "4 Visits", bold=True)
        + text_at(50, 620, "Visits take an hour.")
    )

    assert [fact.headings for fact in read(page).facts] == [
        ("3 Fees",),
        ("3 Fees", "3.2 Cancelling"),
        ("4 Visits",),
    ]


def test_a_line_within_a_paragraph_is_no_heading():
    page = text_at(50, 750, "The stitches of a wound are") + text_at(
        50, 736.8, "never taken out early", bold=True
    ) + text_at(50, 723.6, "by anybody at home.")  # fmt: skip

    assert said(read(page)) == [
        ("The stitches of a wound are never taken out early by anybody at home.", ())
    ]


def test_bookmarks_name_headings_that_look_like_text():
    page = text_at(50, 750, "Chapter 1") + text_at(50, 720, "A card costs 12 euros.")

    found = document("a.pdf", make_pdf(page))

    assert said(found) == [("A card costs 12 euros.", ("Chapter 1",))]


def test_a_ruled_table_goes_on_over_pages_under_its_headings():
    first = text_at(50, 750, "These are the prices:") + ruled(120, HEADINGS, VISITS[0])
    second = ruled(750, HEADINGS, *VISITS[1:])

    (fact,) = read(first, second).facts

    assert fact.text.splitlines() == [
        "These are the prices:",
        "Code | Visit | Price (euros)",
        "C1 | First visit | 95",
        "C2 | Follow-up | 58",
        "C3 | Scan | 120",
    ]


def test_a_table_whose_headings_are_not_repeated_goes_on_too():
    found = read(ruled(120, HEADINGS, VISITS[0]), ruled(750, *VISITS[1:]))

    assert len(found.facts) == 1
    assert found.facts[0].place == "pages 1 to 2, table"
    assert found.facts[0].text.splitlines()[2:] == [
        "C2 | Follow-up | 58",
        "C3 | Scan | 120",
    ]


def test_a_table_is_known_by_its_columns_without_rules():
    page = cells(750, HEADINGS, *VISITS) + text_at(50, 600, "Prices include tax.")

    assert said(read(page)) == [
        (
            "Code | Visit | Price (euros)\nC1 | First visit | 95\nC2 | Follow-up | 58\n"
            "C3 | Scan | 120",
            (),
        ),
        ("Prices include tax.", ()),
    ]


def test_words_that_wrap_within_a_cell_stay_in_its_row():
    page = (
        cells(750, HEADINGS, ("C1", "First visit with", "95"))
        + text_at(124, 718, "a report")
        + cells(690, ("C2", "Follow-up", "58"), ("C3", "Scan", "120"))
    )

    (fact,) = read(page).facts

    assert fact.text.splitlines()[1:] == [
        "C1 | First visit with a report | 95",
        "C2 | Follow-up | 58",
        "C3 | Scan | 120",
    ]


def test_a_heading_over_two_columns_is_said_of_both():
    lefts, heights = (50, 120, 200, 300), (764, 744, 724, 704)
    page = (
        rules(lefts, heights[1:])
        + rules((50, 120, 300), heights[:2])
        + text_at(124, 750, "Saturday")
        + text_at(54, 730, "Site")
        + text_at(124, 730, "Shop")
        + text_at(204, 730, "Till")
        + text_at(54, 710, "North")
        + text_at(124, 710, "8-16")
        + text_at(204, 710, "9-15")
    )

    assert (
        read(page).facts[0].text
        == "Site | Saturday Shop | Saturday Till\nNorth | 8-16 | 9-15"
    )


def test_pairs_without_headings_are_no_table_whose_first_row_names_columns():
    page = cells(
        750, ("Gold card", "72 euros"), ("Silver", "50 euros"), ("Blue", "0 euros")
    )

    assert read(page).facts[0].text == (
        "- Gold card: 72 euros\n- Silver: 50 euros\n- Blue: 0 euros"
    )


def test_what_recurs_at_the_edges_of_pages_is_left_out():
    found = read(
        *(
            text_at(50, 780, "Larkmoor Clinics")
            + text_at(50, 720, f"Rule {number} holds for the fee of {number}2 euros.")
            + text_at(250, 30, f"Status: May 2026 - Page {number} of 3")
            for number in (1, 2, 3)
        )
    )

    assert [fact.text for fact in found.facts] == [
        f"Rule {number} holds for the fee of {number}2 euros." for number in (1, 2, 3)
    ]
    assert [fact.text for fact in found.left_out] == [
        "Larkmoor Clinics",
        "Status: May 2026 - Page 1 of 3",
    ]


def test_lines_that_recur_with_other_numbers_are_no_furniture():
    found = read(*(text_at(50, 780, f"The fee is {fee} euros.") for fee in (9, 40, 12)))

    assert len(found.facts) == 3


def test_a_table_of_contents_is_left_out_where_its_entries_are_headings():
    contents = text_at(50, 750, "Fees .......... 2", "A coffee .......... 3")
    fees = text_at(50, 750, "Fees", size=16) + text_at(
        50, 720, "A card costs 12 euros."
    )

    assert said(read(contents, fees)) == [
        ("A coffee .......... 3", ()),
        ("A card costs 12 euros.", ("Fees",)),
    ]


@pytest.mark.parametrize("is_by_rows", [True, False])
def test_columns_are_read_one_after_the_other_however_they_were_written(is_by_rows):
    left = [
        "The deposit is due when you",
        "book a procedure. It is paid",
        "back if you cancel.",
    ]
    right = [
        "Bills are due within three",
        "weeks. After that we send a",
        "reminder for 5 euros.",
    ]
    rows = [
        (text_at(50, 700 - 13.2 * at, a), text_at(320, 700 - 13.2 * at, b))
        for at, (a, b) in enumerate(zip(left, right, strict=True))
    ]
    columns = zip(*rows, strict=True)
    page = "".join("".join(part) for part in (rows if is_by_rows else columns))

    assert [fact.text for fact in read(page).facts] == [" ".join(left), " ".join(right)]


def test_words_cut_at_the_end_of_a_line_become_whole():
    page = text_at(
        50,
        750,
        "The surgeon looks at the treat-",
        "ment plan in each follow-",
        "up visit.",
    ) + text_at(50, 700, "A follow-up is free.")

    assert [fact.text for fact in read(page).facts] == [
        "The surgeon looks at the treatment plan in each follow-up visit.",
        "A follow-up is free.",
    ]


def test_a_paragraph_goes_on_over_a_page():
    found = read(
        text_at(50, 700, "The deposit is paid back in full if you cancel"),
        text_at(50, 700, "five days ahead."),
    )

    assert [(fact.text, fact.place) for fact in found.facts] == [
        (
            "The deposit is paid back in full if you cancel five days ahead.",
            "page 1, paragraph 1",
        )
    ]


def test_items_within_items_are_further_in():
    page = (
        text_at(50, 750, "You can book:")
        + text_at(60, 730, "-   blood tests, except:")
        + text_at(80, 716, "-   glucose tests")
        + text_at(60, 702, "-   scans")
    )

    assert read(page).facts[0].text == (
        "You can book:\n- blood tests, except:\n  - glucose tests\n- scans"
    )


def test_a_bullet_may_be_painted():
    dots = "".join(f"60 {y} 3 3 re f\n" for y in (733, 713))
    page = dots + text_at(70, 730, "blood tests") + text_at(70, 710, "scans")

    assert read(page).facts[0].text == "- blood tests\n- scans"


def test_a_page_written_across_is_turned():
    lines = ["A card costs 12 euros.", "It lasts for four years."]
    page = "".join(
        f"BT /F1 11 Tf 0 1 -1 0 {100 + 13 * at} 50 Tm ({line}) Tj ET\n"
        for at, line in enumerate(lines)
    )

    assert [fact.text for fact in read(page).facts] == [" ".join(lines)]


def test_letters_in_other_forms_become_plain_ones():
    text = "Mill\ufb01eld: \ufb01bre, o\ufb03ce, \uff21\uff14; 20 m\u00b2, \u00bd litre, extra\u00adordinary."

    (fact,) = document("a.txt", text).facts

    assert (
        fact.text
        == "Millfield: fibre, office, A4; 20 m\u00b2, \u00bd litre, extraordinary."
    )


def test_no_word_is_lost_whatever_stands_where():
    words = [f"word{number}" for number in range(400)]
    scattered = "".join(
        text_at(
            40 + number * 37 % 500, 40 + number * 91 % 720, word, bold=number % 7 == 0
        )
        for number, word in enumerate(words)
    )
    page = scattered + rules((40, 90, 300, 560), (760, 500, 480, 100))

    found = read(page)

    kept = [fact.text for fact in found.facts] + [
        " ".join(path) for path in found.headings
    ]
    assert set(words) <= set(
        " ".join(kept).replace("|", " ").replace(":", " ").replace(",", " ").split()
    )


@pytest.mark.parametrize(
    "content", [b"/X Do", b"q " * 5000 + b"BT (a) Tj", b"\x00" * 99]
)
def test_a_page_of_nonsense_is_refused_or_read(content):
    raw = make_pdf(content.decode("latin-1") + " Tj")

    with suppress(ImportFileError):
        items("a.pdf", raw)
