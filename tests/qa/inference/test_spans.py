import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.language_model import Tokens
from qa.inference.evidence_text import flatten
from qa.inference.grounded_form import Spans
from tests.probes import tiny_models
from tests.qa.pipeline.values import make_evidence

TOKENS = Tokens(tiny_models.tokenizer())
END = min(TOKENS.end_ids)
FEES = (
    make_evidence("The Classic card (1990) has no annual fee."),
    make_evidence("The Gold card costs 1.50 euros a year. It is billed in May."),
)


def spans(*texts):
    pieces = [make_evidence(text) for text in texts] if texts else FEES
    return Spans(pieces, TOKENS, limit=512)


def follow(chosen, words):
    """Write `words` token by token, each of which has to be allowed."""
    ids = TOKENS.encode_text(words)
    for count, number in enumerate(ids):
        assert number in chosen.allowed(ids[:count]), TOKENS.decode(ids[: count + 1])
    return ids


@pytest.mark.parametrize(
    ("words", "number", "sentences"),
    [
        (" 1.50 euros", 2, "The Gold card costs 1.50 euros a year."),
        (" no annual fee", 1, "The Classic card (1990) has no annual fee."),
        ("1990", 1, "The Classic card (1990) has no annual fee."),
        (
            " a year. It is billed",
            2,
            "The Gold card costs 1.50 euros a year. It is billed in May.",
        ),
        (" The", 1, "The Classic card (1990) has no annual fee."),
    ],
)
def test_words_may_be_written_and_are_known_by_their_sentence(words, number, sentences):
    chosen = spans()

    found = chosen.span(follow(chosen, words))

    assert END in chosen.allowed(TOKENS.encode_text(words))
    assert (found.number, found.words, found.sentences) == (
        number, words.strip(), sentences,
    )  # fmt: skip


@pytest.mark.parametrize("words", [" 1", " 1.5", " Cla", " eur", " card (1990"])
def test_nothing_ends_in_the_middle_of_a_word(words):
    chosen, ids = spans(), TOKENS.encode_text(words)

    if words == " card (1990":
        assert END in chosen.allowed(ids)
    else:
        assert END not in chosen.allowed(ids)
        assert chosen.span(ids) is None


@pytest.mark.parametrize("words", [" uros", " 80", "old", ".", " fee. The"])
def test_what_does_not_stand_there_can_not_be_written(words):
    chosen, ids = spans(), TOKENS.encode_text(words)

    allowed = [ids[i] in chosen.allowed(ids[:i]) for i in range(len(ids))]
    assert not all(allowed) or chosen.span(ids) is None


def test_an_entry_without_any_words_leaves_nothing_to_write():
    assert list(spans("...").allowed(())) == [END]


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=3), st.data())
def test_whatever_is_written_stands_in_a_piece(texts, data):
    chosen = spans(*texts)
    ids: list[int] = []
    for _ in range(12):
        number = data.draw(st.sampled_from(sorted(chosen.allowed(ids))))
        if number == END:
            break
        ids.append(number)

    found = chosen.span(ids)

    if found is not None:
        text = texts[found.number - 1]
        assert found.words in text
        assert found.sentences in text
        assert found.words in found.sentences
        assert TOKENS.decode(ids).strip() == flatten(found.words).strip()
