"""Sheets of Excel on which several tables stand, with headings of two rows and notes."""

import io
from collections.abc import Sequence
from zipfile import ZipFile

import openpyxl
import pytest
from openpyxl.styles import Font

from kb.imports.readers import BadRow, Fact, UnreadColumns

from .files import facts, items, make_excel

Rows = Sequence[Sequence[object]]

SCHEDULE: Rows = [
    ["Bank - fees from 1 October 2026"],
    [],
    ["Table 1. Accounts"],
    ["Service", "Adults", None, "Young people", None, "Charged"],
    [None, "Basic", "Plus", "Student", "Junior", None],
    ["Monthly fee", "free", "£12.50 ¹", "free", "free", "monthly"],
    ["Paper statement", "£1", "free", "£1", "n/a", "per item ²"],
    [],
    [],
    ["Table 2. Boxes"],
    ["Size", "Rent"],
    ["Small", "£140"],
    ["Large", "£330 ³"],
    [],
    ["¹ £9.50 if £3,000 is paid in."],
    ["² At most three."],
    ["³ Waiting list."],
    ["⁴ Nothing refers to it"],
]
MERGED = ("A1:F1", "A3:F3", "A4:A5", "B4:C4", "D4:E4", "F4:F5", "A10:B10")


def make_merged(rows: Rows, *areas: str, bold: tuple[int, ...] = ()) -> bytes:
    book = openpyxl.load_workbook(io.BytesIO(make_excel(A=rows)))
    for area in areas:
        book["A"].merge_cells(area)
    for number in bold:
        for cell in book["A"][number]:
            cell.font = Font(bold=True)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def texts_of(rows: Rows) -> list[str]:
    """Return the facts in short: what they stand under, and their last lines."""
    return [
        " / ".join([*fact.headings, *fact.text.split("--- | ---\n")[-1].split("\n")])
        for fact in facts("a.xlsx", make_excel(A=rows))
    ]


@pytest.mark.parametrize("areas", [MERGED, ()])
def test_tables_below_each_other_are_read_each_with_its_headings(areas):
    read = items("a.xlsx", make_merged(SCHEDULE, *areas))

    found = [each for each in read if isinstance(each, Fact)]
    first = (
        "Bank - fees from 1 October 2026: Table 1. Accounts:\nService | Adults Basic | "
        "Adults Plus | Young people Student | Young people Junior | Charged\n--- | ---\n"
    )
    second = (
        "Bank - fees from 1 October 2026: Table 2. Boxes:\nSize | Rent\n--- | ---\n"
    )
    assert [fact.text for fact in found] == [
        f"{first}Monthly fee | free | £12.50 ¹ | free | free | monthly\n"
        "¹ £9.50 if £3,000 is paid in.",
        f"{first}Paper statement | £1 | free | £1 | n/a | per item ²\n² At most three.",
        f"{second}Small | £140",
        f"{second}Large | £330 ³\n³ Waiting list.",
        "⁴ Nothing refers to it",
    ]
    assert [(fact.headings, fact.place) for fact in found] == [
        *[(("Table 1. Accounts",), f"A, row {row}") for row in (6, 7)],
        *[(("Table 2. Boxes",), f"A, row {row}") for row in (12, 13)],
        ((), "A, row 18"),
    ]
    assert len([each for each in read if isinstance(each, UnreadColumns)]) == 2


def test_a_row_keeps_its_key_when_its_fee_and_the_sheets_title_change():
    later: list[Sequence[object]] = [["Bank - fees from 1 May 2027"], *SCHEDULE[1:]]
    later[11] = ["Small", "£150"]

    before, after = (facts("a.xlsx", make_excel(A=rows)) for rows in (SCHEDULE, later))

    assert [fact.key for fact in before] == [fact.key for fact in after]
    assert len({fact.key for fact in before}) == len(before)


SAVINGS: Rows = [["Product", "Rate"], ["Instant", "1.5%"], ["Fixed", "3%"]]
LOANS: Rows = [["Product", "Term"], ["Car", "5 years"], ["Home", "30 years"]]
BOXES: Rows = [["Size", "Rent"], ["Small", "£140"], ["Large", "£330"]]
ALL = ["Instant | 1.5%", "Fixed | 3%", "Car | 5 years", "Home | 30 years"]


@pytest.mark.parametrize(
    "between",
    [
        [[], ["Loans"]],
        [["Loans"]],
        [[], []],
        [[], ["Loans"], []],
        [[], ["Loans"], ["for private customers"]],
    ],
)
def test_a_heading_that_stands_again_begins_a_table(between):
    rows: Rows = [["Savings"], *SAVINGS, *between, *LOANS]

    found = facts("a.xlsx", make_excel(A=rows))

    assert [fact.text.splitlines()[-1] for fact in found] == ALL
    name = " ".join(str(row[0]) for row in between if row)
    assert "Product | Term" in found[2].text
    assert found[2].headings == ((name,) if name else ())


@pytest.mark.parametrize(
    ("rows", "bold"),
    [
        ([["Savings"], *SAVINGS, [], ["Boxes"], *BOXES], ()),
        ([*SAVINGS, [], *BOXES], (1, 5)),
        ([*SAVINGS, ["Boxes"], *BOXES], (1, 5)),
        ([*SAVINGS, ["Table 2: boxes"], *BOXES], ()),
    ],
)
def test_headings_are_known_by_their_looks_and_the_numbers_below(rows, bold):
    found = facts("a.xlsx", make_merged(rows, bold=bold))

    assert len(found) == 4
    assert "Size | Rent\n--- | ---\nSmall | £140" in found[2].text


@pytest.mark.parametrize(
    "more",
    [
        [["Others"], ["Junior", "free"], ["Senior", "2%"], ["Staff", "4%"]],
        [[], ["Others"], ["Junior", "free"], ["Senior", "2%"], ["Staff", "4%"]],
        [[], ["Others"], ["Junior", "3%"], ["Senior", "2%"]],
        [[], ["Table 1 (continued)"], ["Junior", "3%"], ["Senior", "2%"]],
        [[], ["Junior", "on request"], ["Senior", "2%"], ["Staff", "4%"]],
    ],
)
def test_groups_and_empty_rows_part_no_table(more):
    rows: Rows = [["Product", "Rate", "Note"], *SAVINGS[1:], *more]

    found = [x for x in items("a.xlsx", make_excel(A=rows)) if isinstance(x, Fact)]

    assert len(found) == len([row for row in rows[1:] if len(row) > 1])
    assert all("Product | Rate | Note" in fact.text for fact in found)
    assert not any(fact.headings for fact in found)


def test_notes_below_each_table_are_its_own():
    rows: Rows = [
        *[["Table 1"], ["Product", "Rate"], ["Instant*", "1.5%"], ["Fixed", "3% 1)"]],
        *[["* New customers."], ["1) Variable."], []],
        *[["Table 2"], ["Size", "Rent"], ["Small*", "£140"], ["Room of 9 m²", "£9"]],
        *[[], ["Notes:"], ["* From May."], ["² Not of an area."]],
    ]

    assert texts_of(rows) == [
        "Table 1 / Instant* | 1.5% / * New customers.",
        "Table 1 / Fixed | 3% 1) / 1) Variable.",
        "Table 2 / Small* | £140 / * From May.",
        "Table 2 / Room of 9 m² | £9",
        "² Not of an area.",
    ]


def test_a_headings_note_stands_behind_each_row_and_an_answers_behind_it():
    rows: Rows = [["Product", "Rate †"], *SAVINGS[1:], ["†", "Per year"]]
    assert texts_of(rows) == ["Instant | 1.5% / † Per year", "Fixed | 3% / † Per year"]
    rows = [["Question", "Answer"], ["How much?", "£5 ¹, £9 ²"], ["¹ Now.\n² Later."]]
    (fact,) = facts("a.xlsx", make_excel(A=rows))
    assert fact.text == "£5 ¹, £9 ²\n¹ Now.\n² Later."


def test_what_is_said_last_of_a_table_in_few_words_is_not_lost():
    rows: Rows = [["Product", "Rate", "Note"], ["Fixed", "3%", ""], ["With VAT"]]
    assert texts_of(rows) == ["Fixed | 3% |", "With VAT"]


def test_a_table_that_is_not_understood_says_where_and_the_others_are_read():
    rows: Rows = [
        *[["Table 1"], *SAVINGS, []],
        *[["Table 2"], ["Size", "Rent", "Rent"], ["Small", "£140", "£9"], []],
        *[["Table 3"], ["Size", "", "Rent"], ["Small", "x", "£140"], []],
        *[["Table 4"], *LOANS, ["Boat", "9 years", "new"]],
    ]

    read = items("a.xlsx", make_excel(A=rows))

    said = [x.text.splitlines()[-1] for x in read if isinstance(x, Fact)]
    assert said == ALL
    bad = {each.place: each.reason for each in read if isinstance(each, BadRow)}
    assert [*bad] == ["A, row 18", "A, row 7", "A, row 11"]
    assert "beyond the 2 columns" in bad["A, row 18"]
    assert "rent appear twice" in bad["A, row 7"]
    assert "Column B has no heading" in bad["A, row 11"]
    assert "rows below it that are not read: 1" in bad["A, row 11"]


def test_tables_of_questions_stand_below_their_titles():
    asked: Rows = [["Question", "Answer"], ["How much?", "5."]]
    rows: Rows = [["Cards"], *asked, [], ["Loans"], *asked]

    found = facts("a.xlsx", make_excel(A=rows))

    assert [(fact.headings, fact.text) for fact in found] == [
        (("Cards",), "5."),
        (("Loans",), "5."),
    ]


def test_a_long_sheet_is_one_table():
    rows: Rows = [["Product", "Rate"], *([f"P{at}", f"{at}%"] for at in range(2_000))]

    found = facts("a.xlsx", make_excel(A=[*rows, [], ["Table 2"], ["Last", "1%"]]))

    assert len(found) == 2_002
    assert found[-1].text == "Product | Rate\n--- | ---\nLast | 1%"


RATES: Rows = [
    ["Region", "Tariff", "Domestic", "Business", "When it applies"],
    ["North", "Standard", "28.4p", "30.1p", "always"],
    [None, "Night saver", "14p", None, "midnight to seven"],
    ["SOUTH AND ISLANDS"],
    ["South", "Standard", "none", None, "never"],
    [None, None, "12p", "13p", "in a pilot"],
]


def test_what_a_merged_cell_says_stands_in_every_row_and_column_that_it_covers():
    areas = ("A2:A3", "C3:D3", "A4:E4", "A5:A6", "B5:B6", "C5:D5")

    found = facts("a.xlsx", make_merged(RATES, *areas))

    assert [fact.text.splitlines()[0].rpartition(":")[0] for fact in found[2:]] == [
        "SOUTH AND ISLANDS",
        "SOUTH AND ISLANDS",
    ]
    assert [fact.text.splitlines()[-1] for fact in found] == [
        "North | Standard | 28.4p | 30.1p | always",
        "North | Night saver | 14p | 14p | midnight to seven",
        "South | Standard | none | none | never",
        "South | Standard | 12p | 13p | in a pilot",
    ]


def test_an_area_that_reaches_over_all_rows_of_excel_costs_no_more_than_the_sheet():
    made = make_merged(RATES[:3], "A2:A3", "E2:E3")
    out = io.BytesIO()
    with ZipFile(io.BytesIO(made)) as read, ZipFile(out, "w") as written:
        for name in read.namelist():
            part = read.read(name).replace(b':A3"', b':A1048576"')
            written.writestr(name, part.replace(b':E3"', b':E900000"'))

    found = facts("a.xlsx", out.getvalue())

    assert [fact.text.splitlines()[-1] for fact in found] == [
        "North | Standard | 28.4p | 30.1p | always",
        "North | Night saver | 14p |  | always",
    ]


_TITLE = "Fees 2026/27"
_MORE = "Charges of all services of the town, valid from 1 April 2026 (VAT included)"
_RULE = "Bins at the kerb by 6:30."
_INSTANT, _FIXED = (f"Product | Rate\n--- | ---\n{row}" for row in ALL[:2])


@pytest.mark.parametrize(
    ("others", "begin"),
    [
        (
            {"Loans": LOANS},
            [
                _MORE,
                _RULE,
                f"Fees: {_TITLE}:\n{_INSTANT}",
                f"Fees: {_TITLE}:\n{_FIXED}",
            ],
        ),
        (
            {},
            [
                f"{_TITLE} {_MORE} {_RULE.rstrip('.')}:\n{_INSTANT}",
                f"{_TITLE} {_MORE} {_RULE.rstrip('.')}:\n{_FIXED}",
            ],
        ),
    ],
)
def test_what_stands_above_a_named_sheets_table_leads_it_if_it_is_a_name(others, begin):
    sheets: dict[str, Rows] = {"Fees": [[_TITLE], [_MORE], [_RULE], [], *SAVINGS]}

    found = facts("a.xlsx", make_excel(**sheets, **others))

    assert [fact.text for fact in found][: len(begin)] == begin
