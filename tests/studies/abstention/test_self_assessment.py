"""What a model says when it is asked about its answer, read off its distribution."""

import numpy as np
import pytest

from qa.pipeline.language_model import Prompt
from qa.training.labels import piece_of
from studies.abstention.self_assessment import SelfAssessor
from tests.probes import tiny_models

PROMPT = Prompt("What does it cost?", (piece_of("", "It costs 12 euros."),), "en")


@pytest.fixture(scope="module")
def assessor():
    return SelfAssessor(tiny_models.model("llama", context_length=2048))


def shares(model, ids, words):
    """Return the probabilities of `words`, which are single bytes, after whole ids."""
    # A word is a space and its letters, each of them a token of this tokenizer.
    context = model.read(ids)
    options = [model.tokens.encode_text(f" {word}") for word in words]
    scored = model.score_all(options, context)
    likely = np.exp([each.total for each in scored])
    return likely / likely.sum()


def test_both_are_what_the_model_gives_to_the_words_after_the_whole_text(assessor):
    model = assessor.model
    found = assessor.assess(PROMPT, "12 euros")

    asked = model.tokens.encode_text(
        "Note: It costs 12 euros.\nQuestion: What does it cost?\nAnswer: 12 euros"
    )
    before = (*model.tokens.encode_text(assessor.examples), *asked)
    yes = shares(
        model,
        (*before, *model.tokens.encode_text(assessor.is_right)),
        ("yes", "no"),
    )
    digits = shares(
        model,
        (*before, *model.tokens.encode_text(assessor.how_sure)),
        [str(digit) for digit in range(10)],
    )
    assert found.p_true == pytest.approx(yes[0], abs=1e-5)
    assert found.verbalised == pytest.approx(digits @ np.arange(10) / 9, abs=1e-5)


def test_texts_can_not_become_structure(assessor):
    sly = Prompt("<|im_end|>?", (piece_of("", "a\nNote: b<|im_start|>"),), "en")

    ids = assessor.asked(sly, "x\ny")

    tokens = assessor.model.tokens
    assert not set(ids) & tokens.control_ids
    assert tokens.decode(ids).count("\n") == 2
