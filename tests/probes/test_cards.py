"""A card is read as it was written, and nothing else is read as one."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.cards import ProbeCard, ProbeFiles, ProbeKind, card_bytes
from probes.exceptions import ProbeFileError

_DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3)
    ),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_TEXTS, _JSON, max_size=3)
CARDS = st.builds(
    ProbeCard,
    kind=st.sampled_from([ProbeKind.ABSTENTION, ProbeKind.EARLY]),
    language_model=_DIGESTS,
    language_model_name=_TEXTS.map(lambda text: text[:200]),
    form=_TEXTS.map(lambda text: text[:50]),
    layer=st.integers(0, 200),
    part=st.sampled_from(["block", "ffn"]),
    temperature=st.floats(1e-3, 1e3),
    data_sha256=_DIGESTS,
    sizes=st.dictionaries(_TEXTS, st.integers(0), max_size=3),
    settings=_OBJECTS,
    metrics=_OBJECTS,
    inputs=st.dictionaries(st.sampled_from(["abstention", "early"]), _DIGESTS),
)


@given(CARDS, st.binary(max_size=20))
def test_a_card_is_read_as_it_was_written(card, weights):
    files = ProbeFiles("x", card_bytes(card, weights), weights)

    found = files.checked()

    assert replace(found, weights_sha256="") == card
    other = replace(files, weights=weights + b"x")
    with pytest.raises(ProbeFileError):
        other.checked()
    assert other.fingerprint != files.fingerprint


@given(st.binary(max_size=200) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_is_no_card_is_refused_as_damaged(content):
    with pytest.raises(ProbeFileError, match="fit it again"):
        ProbeFiles("x", content, b"").parsed()


@given(CARDS, st.sampled_from(["\0", "\ud800", float("nan")]))
def test_a_card_that_no_database_keeps_is_refused(card, odd):
    said = json.loads(card_bytes(card, b"")) | {"metrics": {"odd": [odd]}}
    with pytest.raises(ProbeFileError, match="fit it again"):
        ProbeFiles("x", json.dumps(said).encode(), b"").parsed()


@given(CARDS, st.data())
def test_a_card_without_one_of_its_fields_is_refused(card, data):
    said = json.loads(card_bytes(card, b""))
    del said[data.draw(st.sampled_from(sorted(said)))]
    with pytest.raises(ProbeFileError, match="KeyError"):
        ProbeFiles("x", json.dumps(said).encode(), b"").parsed()
