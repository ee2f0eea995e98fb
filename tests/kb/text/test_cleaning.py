"""No cell runs in a spreadsheet, and every text comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.cleaning import inert, original

VISIBLE_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
SIGNS = VISIBLE_SIGNS + "\t\r\n"


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("rest", ["", "1+1", "cmd|'/C calc'!A0", " a list item"])
def test_a_formula_becomes_text(sign, rest):
    assert inert(sign + rest) == f"'{sign}{rest}"


@pytest.mark.parametrize(
    "text", ["", "12 euros", "'tis so", "a = b", "it's", "'", " x"]
)
def test_ordinary_text_stays_as_it_is(text):
    assert (inert(text), original(text)) == (text, text)


@given(
    st.one_of(
        st.text(),
        st.text(alphabet=SIGNS + "' ax\v\x85\u2003", max_size=6),
    )
)
def test_every_text_comes_back_and_none_begins_as_a_formula(text):
    cell = inert(text)

    assert original(cell) == text
    assert cell.strip()[:1] not in {*VISIBLE_SIGNS}
    assert cell[:1] not in {"\t", "\r", "\n"}


@given(st.text(), st.text())
def test_two_texts_never_become_one_cell(one, other):
    assert (inert(one) == inert(other)) == (one == other)
