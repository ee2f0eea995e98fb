"""Texts as paragraphs, lists and tables: what makes them, and that nothing is lost or let out."""

import re
from html.parser import HTMLParser

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from kb.text.layout import Kind
from qa.answers.layout import Block, Piece, followed_by, laid_out

PRICES = """\
Prices:
Copy | Price
A4 paper print | £0.60 per page
Digital image, 600 dpi | £14 per image"""

# Lines that are items and rows, or nearly, with what a browser would read as markup.
_WORDS = st.sampled_from(
    ["a", "£5", "<b>", "</td>", "&lt;", '"', "'><script>", "{{ x }}"]
)
_LINES = st.one_of(
    st.tuples(
        st.sampled_from(["- ", "* ", "  - ", "-", "1. ", "2. ", "3.", ""]), _WORDS
    ),
    st.tuples(_WORDS, st.sampled_from([" | ", "|", " |", "| ", " || "]), _WORDS),
    st.tuples(_WORDS, st.just(" | "), _WORDS, st.just(" | "), _WORDS),
    st.tuples(st.sampled_from(["", " ", "| |", "-", "1."])),
).map("".join)
TEXTS = st.lists(_LINES, max_size=12).map("\n".join)
PIECES = st.lists(
    st.one_of(
        st.builds(Piece, TEXTS, st.none(), st.booleans()),
        st.builds(Piece, st.just("[1]"), st.integers(1, 9)),
    ),
    max_size=5,
)


def kinds_of(text: str) -> list[str]:
    return [block.kind for block in laid_out(text)]


def said(cell) -> str:
    return "".join(piece.text for piece in cell if piece.citation is None).strip()


def rows_of(text: str) -> list[list[list[str]]]:
    return [
        [[said(cell) for cell in row] for row in each.rows] for each in laid_out(text)
    ]


def cells_of(block: Block):
    """Yield the cells of a block in the text's order."""
    for number, row in enumerate(block.rows):
        yield from row
        for below in block.below[number : number + 1]:
            for each in below:
                yield from cells_of(each)


def rendered(said) -> str:
    context = {"blocks": laid_out(said), "look": "card-text", "language": "en"}
    return render_to_string("qa/_said.html", context)


def test_rows_become_a_table_below_the_sentence_that_leads_to_it():
    assert kinds_of(PRICES) == ["text", "table"]
    assert rows_of(PRICES) == [
        [["Prices:"]],
        [
            ["Copy", "Price"],
            ["A4 paper print", "£0.60 per page"],
            ["Digital image, 600 dpi", "£14 per image"],
        ],
    ]
    html = rendered(PRICES)
    assert '<thead><tr><th scope="col">Copy ' in html
    assert html.count("<td>") == 4


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("- one\n- two", ["bullets"]),
        ("Bring:\n* one\n  * two\nThen come.", ["text", "bullets", "text"]),
        ("1. Open it.\n2. Close it.", ["numbers"]),
        ("| Price\nA4 |\nA3 | 2", ["table"]),
        ("a | b\n\n- c\n- d\n\ne | f\ng | h", ["text", "bullets", "table"]),
    ],
)
def test_lines_of_one_shape_become_lists_and_tables(text, kinds):
    assert kinds_of(text) == kinds


@pytest.mark.parametrize(
    "text",
    [
        "3. Oktober ist frei.\nWir öffnen am 4.",
        "2. May\n2. June",
        "* without VAT",
        "- one\n* two",
        "-5 degrees\n-6 degrees",
        "Use a|b or a||b.\nOr a|c.",
        "Copy | Price",
        "Copy | Price\nA4 | 1 | 2",
        "**bold** <b>bold</b> [x](http://example.org)\n# Heading",
    ],
)
def test_what_is_not_surely_a_list_or_table_stays_a_paragraph(text):
    (block,) = laid_out(text)

    assert block.kind is Kind.TEXT
    assert said(block.cells[0]) == text


def test_what_is_below_an_item_is_a_list_of_its_own_within_it():
    html = rendered(
        [
            Piece("1. Eat nothing\n2. Tell us of\n  - insulin\n  - "),
            Piece("iron", is_short=True),
            Piece("\n3. Come"),
        ]
    )

    assert html.removeprefix('<div class="card-text said" lang="en">') == (
        '<ol start="1"><li>Eat nothing</li><li>Tell us of<ul><li>insulin</li>'
        "<li><mark>iron</mark></li></ul></li><li>Come</li></ol></div>"
    )


def test_a_list_goes_on_with_its_own_numbers():
    assert '<ol start="3"><li>Open' in rendered("3. Open\n4. Close")


def test_a_mark_over_a_row_is_in_each_of_its_cells_and_in_no_other():
    before, row = PRICES.rsplit("\n", 1)

    html = rendered([Piece(f"{before}\n"), Piece(row, is_short=True)])

    assert re.findall("<mark>(.*?)</mark>", html) == ["Digital image, 600 dpi ", " £14 per image"]  # fmt: skip
    assert html.count("<td><mark>") == 2


def test_a_citation_stays_in_its_item():
    html = rendered(
        [Piece("- one "), Piece("[1]", 1), Piece("\n- two "), Piece("[2]", 2)]
    )

    assert re.fullmatch(r".*<li>one <a [^>]*>\[1\]</a></li><li>two <a.*", html)


def test_a_citation_behind_a_table_stays_in_its_last_cell():
    table = [Piece("Card | Fee\nGold | 72 "), Piece("[1]", 1)]

    html = rendered([*table, Piece("\n\nA card lasts. "), Piece("[2]", 2)])

    assert re.search(r"<td> 72 ?<a [^>]*>\[1\]</a></td>", html)
    assert "[2]" in html


def _letters(text: str) -> str:
    """Return a text without what may make a shape."""
    return re.sub(r"[\s|*.\-\d]", "", text)


@pytest.mark.parametrize(
    ("text", "last"),
    [("It costs 12.", "It costs 12. [1]"), (PRICES, "[1]"), ("", "[1]")],
)
def test_what_follows_a_text_is_in_no_cell_and_no_item(text, last):
    blocks = followed_by(laid_out(text), [Piece("[1]", 1)])

    (cell,) = blocks[-1].cells
    assert "".join(piece.text for piece in cell) == last
    assert followed_by(laid_out(text), []) == laid_out(text)


@given(TEXTS)
def test_nothing_is_lost_but_what_makes_the_shape(text):
    shown = "".join(said(cell) for block in laid_out(text) for cell in cells_of(block))

    assert _letters(shown) == _letters(text)


@given(PIECES)
def test_marks_stay_where_they_were_and_each_citation_once(pieces):
    blocks = laid_out(pieces)

    shown = [piece for b in blocks for cell in cells_of(b) for piece in cell]
    cited = [piece.citation for piece in shown if piece.citation]
    assert cited == [piece.citation for piece in pieces if piece.citation]
    for is_short in (True, False):
        before, after = (
            "".join(p.text for p in those if not p.citation and p.is_short is is_short)
            for those in (pieces, shown)
        )
        assert _letters(before) == _letters(after)


class Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.said: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.said.append(data)


@given(PIECES)
def test_only_the_elements_of_lists_and_tables_come_out_and_all_of_the_text(pieces):
    reader = Reader()
    reader.feed(rendered(pieces))

    assert reader.tags <= {
        "p", "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "mark", "a",
    }  # fmt: skip
    text = "".join(piece.text if not piece.citation else "[]" for piece in pieces)
    assert _letters("".join(reader.said)) == _letters(text)


def test_a_row_below_a_rule_alone_is_a_table_without_headings():
    (block,) = laid_out("--- | ---\nGold | 72")

    assert (block.kind, block.has_headings, len(block.rows)) == ("table", False, 1)


def test_a_table_without_headings_has_none():
    headed, headless = (
        laid_out(f"{first} | {second}\nTarn card | 31 euros a year")[0]
        for first, second in (("Card", "Fee"), ("Perch card", "72 euros a year"))
    )

    assert (headed.has_headings, headless.has_headings) == (True, False)
    shown = render_to_string("qa/_said.html", {"blocks": (headless,)})
    assert "<th" not in shown
    assert shown.count("<tr><td>") == 2
