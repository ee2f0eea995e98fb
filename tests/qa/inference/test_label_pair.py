"""Labels are two different words that the model knows whole, or the setting is refused."""

import pytest

from probes.language_model import load_model
from qa.exceptions import LabelPairError
from qa.inference.label_judge import LabelPair, label_tokens, read_pair
from tests.probes import tiny_models


@pytest.fixture(scope="module")
def tokens():
    return load_model("bundled", adapter="none").tokens


@pytest.mark.parametrize("text", ["true/false", "yes/no", "A/B", "1/2", "good/bad"])
def test_usual_pairs_are_single_tokens_of_the_bundled_model(tokens, text):
    found = label_tokens(read_pair(text), tokens, model="bundled")

    said = [tokens.decode([number]).strip() for number in found[::-1]]
    assert "/".join(said) == text


def test_a_label_s_place_among_the_options_is_whether_it_is_known(tokens):
    found = label_tokens(LabelPair("true", "false"), tokens, model="bundled")

    assert found[True] == tokens.encode_text(" true")[0]
    assert found[False] == tokens.encode_text(" false")[0]


@pytest.mark.parametrize(
    "text", ["", "true", "true/", "/false", "true/true", "a/b/c", " / "]
)
def test_what_is_no_pair_is_refused_with_an_example(text):
    with pytest.raises(LabelPairError, match="true/false"):
        read_pair(text)


def test_labels_of_several_tokens_are_refused_with_the_remedy():
    tokens = tiny_models.model("llama").tokens

    with pytest.raises(LabelPairError, match=r"4 and 5 tokens.*NESCIO_HISTORY_LABELS"):
        label_tokens(read_pair("true/false"), tokens, model="tiny")


def test_a_word_that_is_whole_without_its_space_alone_is_taken_so():
    tokens = tiny_models.model("llama").tokens

    found = label_tokens(read_pair("A/B"), tokens, model="tiny")

    assert found == (ord("B") - 33, ord("A") - 33)
