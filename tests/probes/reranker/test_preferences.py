"""The file of preferences: read as it was written, or refused with the line."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.exceptions import PreferenceFileError
from probes.reranker.preferences import (
    Preference,
    digest_of,
    parted_by_query,
    read_preferences,
    write_preferences,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
lists = st.lists(texts, min_size=1, max_size=4).map(tuple)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.builds(Preference, texts, lists, lists, texts), max_size=5))
def test_preferences_are_read_as_they_were_written(rows, tmp_path_factory):
    file = tmp_path_factory.mktemp("p") / "preferences.jsonl"

    write_preferences(file, rows)

    assert read_preferences(file) == rows
    assert digest_of(rows) == digest_of(rows[::-1])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query": "q", "pos": ["a"]}, "neg"),
        ({"query": "q", "pos": [], "neg": ["b"]}, "pos is \\[\\]"),
        ({"query": " ", "pos": ["a"], "neg": ["b"]}, "query holds"),
        ({"query": "q", "pos": ["a"], "neg": "b"}, "neg is 'b'"),
        ({"query": "q", "pos": ["a"], "neg": ["b"], "prompt": 3}, "prompt is 3"),
        (["q"], "not an object"),
    ],
)
def test_a_line_that_is_no_preference_is_named(row, said, tmp_path):
    file = tmp_path / "preferences.jsonl"
    file.write_text(f"\n{json.dumps(row)}\n")

    with pytest.raises(PreferenceFileError, match=f"line 2.*{said}"):
        read_preferences(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PreferenceFileError, match=r"nothing\.jsonl"):
        read_preferences(tmp_path / "nothing.jsonl")


def test_lines_of_one_question_are_never_parted():
    rows = [
        Preference(f"q{number}", (f"a{line}",), ("b",))
        for line in range(3)
        for number in range(10)
    ]

    kept, apart = parted_by_query(rows, 4)

    assert {row.query for row in apart} == {"q0", "q4", "q8"}
    assert not {row.query for row in kept} & {row.query for row in apart}
    assert (len(kept), len(apart)) == (21, 9)
    assert sorted(map(rows.index, kept + apart)) == list(range(30))
