"""What of a text stands by itself, and a table written out for who reads no columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.layout import Kind, blocks_of, is_row, parts_of, written_out
from kb.text.words import sentences

TABLE = (
    "The usual periods are:\n"
    "Record | Closed for | Who may open it\n"
    "Patient files | 100 years | The health trust\n"
    "Police books | | The chief constable\n"
    "Adoption files | 100 years. | The court only"
)
LIST = (
    "Open all day. The following are allowed:\n"
    "- pencils (no pens)\n"
    "- a laptop. Its case stays outside.\n"
    "- loose notes\n"
    "Nothing else is."
)

LINES = st.lists(
    st.sampled_from(
        ["", "A sentence. And another.", "These:", "- an item", "1. a step", "a | b",
         "c | d", "one | two | three", " | ", "|", "- x | y", "Yes - no.",
         "  - below:", "    - deeper", "  2. a step"]
    ),
    max_size=8,
)  # fmt: skip


def test_a_row_is_read_with_its_headings_and_the_line_above_the_table():
    rows = parts_of(TABLE)

    assert [row.read for row in rows] == [
        "The usual periods are: Patient files. Closed for: 100 years. Who may open it: The health trust.",
        "The usual periods are: Police books. Who may open it: The chief constable.",
        "The usual periods are: Adoption files. Closed for: 100 years. Who may open it: The court only.",
    ]  # fmt: skip
    assert rows[1].span.within(TABLE) == "Police books | | The chief constable"


def test_an_item_is_read_whole_with_the_line_above_the_list():
    parts = parts_of(LIST)

    assert [part.read for part in parts] == [
        "Open all day.",
        "The following are allowed: pencils (no pens)",
        "The following are allowed: a laptop. Its case stays outside.",
        "The following are allowed: loose notes",
        "Nothing else is.",
    ]
    assert parts[2].span.within(LIST) == "a laptop. Its case stays outside."


def test_an_item_below_another_is_read_with_it():
    text = (
        "You can book these yourself:\n- blood tests, except:\n"
        "  - glucose tests\n  - tests for children\n"
        "- Millfield.\n    1. on weekdays\n    2. at weekends\nAll others by telephone."
    )

    parts = parts_of(text)

    assert [part.read for part in parts] == [
        "You can book these yourself: blood tests, except: glucose tests",
        "You can book these yourself: blood tests, except: tests for children",
        "You can book these yourself: Millfield.",
        "You can book these yourself: Millfield: on weekdays",
        "You can book these yourself: Millfield: at weekends",
        "All others by telephone.",
    ]
    assert parts[0].span.within(text) == "glucose tests"


def test_numbers_go_on_around_what_is_below_one():
    text = (
        "1. Eat nothing.\n2. Tell us of:\n  - insulin\n3. Come.\n5. May is a holiday."
    )

    assert [part.read for part in parts_of(text)] == [
        "Eat nothing.", "Tell us of: insulin", "Come.", "5. May is a holiday.",
    ]  # fmt: skip


def test_a_table_is_written_out_and_what_is_around_it_stays():
    assert written_out(f"First.\n{TABLE}\nLast.").split("\n") == [
        "First.",
        "The usual periods are:",
        "Patient files. Closed for: 100 years. Who may open it: The health trust.",
        "Police books. Who may open it: The chief constable.",
        "Adoption files. Closed for: 100 years. Who may open it: The court only.",
        "Last.",
    ]


def test_a_column_without_a_heading_has_none_before_it():
    assert written_out("Fee | \nCard | 5 euros") == "Card. 5 euros."


def test_a_table_may_be_typed_with_bars_around_it_and_a_rule():
    typed = (
        "| Kind | Price |\n|------|:-----:|\n| Print | 2 euros |\n| Scan | 5 euros |"
    )

    assert written_out(typed) == "Print. Price: 2 euros.\nScan. Price: 5 euros."


@pytest.mark.parametrize(
    "table",
    [
        "Refund within 14 days | full price\nRefund after 14 days | half price",
        "Dose for adults | 40 mg twice a day\nDose for children | 5 mg once a day",
        "Monday | closed\nTuesday | open\nWednesday | closed",
        "Perch card | 72 euros a year\nTarn card | 31 euros a year",
    ],
)
def test_a_table_without_headings_is_read_row_by_row(table):
    rows = table.split("\n")

    assert [part.read for part in parts_of(table)] == [
        f"{row.replace(' | ', '. ')}." for row in rows
    ]


@pytest.mark.parametrize(
    "table",
    [
        "Type of ticket | Price\nDay ticket | full price\nWeek ticket | 20 euros",
        "Parcel | Up to 5 kg | Up to 20 kg\nInland | 4 euros | 9 euros",
        "Site | Contact\nOak Hill | Ms Berger",
        "Year | 2025 | 2026\nFee | 10 euros | 12 euros",
    ],
)
def test_a_first_row_unlike_the_others_holds_the_headings(table):
    first, *rows = table.split("\n")

    assert len(parts_of(table)) == len(rows)
    assert f"{first.split(' | ')[1]}: {rows[0].split(' | ')[1]}" in written_out(table)


def test_what_introduces_a_list_is_read_up_to_its_length_with_each_item():
    text = f"{'word ' * 1600}end:\n" + "\n".join(f"- item {n}" for n in range(31))

    assert sum(len(part.read) for part in parts_of(text)) < len(text)


def test_many_rules_are_looked_at_once():
    text = "\n".join(["| -"] * 4000)

    assert [kind for kind, _ in blocks_of(text)] == [Kind.TEXT]


def test_one_line_makes_no_table_and_no_list():
    for text in ("Choose a | b.", "- alone", "3. May is a holiday. So is 1 May."):
        assert written_out(text) == text
        assert [part.read for part in parts_of(text)] == [*sentences(text)]


@given(LINES)
def test_parts_follow_each_other_in_the_text(lines):
    text = "\n".join(lines)

    end = 0
    for part in parts_of(text):
        assert end <= part.span.start < part.span.end <= len(text)
        assert part.span.within(text).strip()
        end = part.span.end


@given(st.text(alphabet="aB .!?|-1\n", max_size=40))
def test_any_text_is_read_and_plain_text_by_its_sentences(text):
    parts = parts_of(text)
    written = written_out(text)

    if "|" not in text and "-" not in text and "1" not in text:
        assert [part.read for part in parts] == [*sentences(text)]
        assert written == text


@given(st.data(), st.integers(2, 4))
def test_writing_out_a_table_keeps_every_cell_behind_its_heading(data, width):
    word = st.sampled_from(["Fee", "9 euros", "x-ray"])
    rest = st.lists(word | st.just(""), min_size=width - 1, max_size=width - 1)
    row = st.builds(lambda first, others: [first, *others], word, rest)
    headings, *rows = data.draw(st.lists(row, min_size=2, max_size=4))
    table = [headings, ["---"] * width, *rows]

    written = written_out("\n".join(" | ".join(each) for each in table))

    for cells, line in zip(rows, written.split("\n"), strict=True):
        said = [
            f"{head}: {cell}" if head else cell
            for head, cell in zip(headings[1:], cells[1:], strict=True)
            if cell
        ]
        assert line == " ".join(f"{each}." for each in [cells[0], *said] if each)


def test_a_wide_row_by_itself_is_read_cell_by_cell():
    row = "Eskby | Station Road 5 | 0700 2310 | 8:30 | 13:00"
    table = f"Offices:\nOffice | Address | Phone | Mon | Tue\n--- | ---\n{row}"

    parts = parts_of(table)

    assert [part.read for part in parts] == [
        "Offices: Eskby. Address: Station Road 5.",
        "Offices: Eskby. Phone: 0700 2310.",
        "Offices: Eskby. Mon: 8:30.",
        "Offices: Eskby. Tue: 13:00.",
    ]
    assert [part.span.within(table).strip() for part in parts] == row.split(" | ")[1:]
    assert len(parts_of(f"{table}\n{row}")) == 2


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Item | Fee\n--- | ---\nCard | 12 euros", True),
        ("Fees from April:\nItem | Fee\n--- | ---\nCard | 12 euros", True),
        ("Item | Fee\n--- | ---\nCard | 12 euros\nPIN | 1 euro", False),
        ("Phone | 01234\nEmail | help@example.org", False),
        ("The fee is due. It is paid once.\nItem | Fee\n--- | ---\nCard | 12", False),
        ("A card costs 12 euros.", False),
        ("", False),
    ],
)
def test_a_single_row_is_told_from_a_table_and_a_text(text, is_one):
    assert is_row(text) is is_one
