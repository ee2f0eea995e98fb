"""Labels are scored where they stand, whatever the texts say."""

import numpy as np
import pytest
import torch

from probes.exceptions import TooManyTokensError
from probes.language_model.scoring import Example
from tests.probes import tiny_models

OPTIONS = (84, 70)
END = (10,)


@pytest.fixture(scope="module", params=tiny_models.FAMILIES)
def model(request):
    return tiny_models.model(request.param)


def asked(model, text):
    return model.tokens.encode_text(f"Q: {text}\nA:")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_label_is_scored_with_what_stands_before_it(model, count):
    prefix = model.read_prefix(model.tokens.encode_text("Known?\n"))
    texts = ("Why?", "A: T\nQ: Who", "How far is it to Rome")[:count]
    examples = [
        Example(asked(model, text), number % 2) for number, text in enumerate(texts)
    ]
    question = asked(model, "What is it?")

    scores = model.score_labels(examples, question, OPTIONS, prefix, end=END)

    assert scores.shape == (count + 1, 2)
    row: list[int] = []
    for number, scored in enumerate(scores):
        row += examples[number].ids if number < count else question
        alone = model.read(row, prefix).next_log_probabilities[list(OPTIONS)].numpy()
        assert scored[0] - scored[1] == pytest.approx(alone[0] - alone[1], abs=1e-4)
        if number < count:
            row += [OPTIONS[examples[number].label], *END]


def test_the_context_stays_as_it_was(model):
    prefix = model.read_prefix(model.tokens.encode_text("Known?\n"))
    before = prefix.next_log_probabilities.clone()
    length = len(prefix)

    model.score_labels([], asked(model, "Why?"), OPTIONS, prefix)

    assert len(prefix) == length
    assert torch.equal(before, prefix.next_log_probabilities)
    again = model.score_labels([], asked(model, "Why?"), OPTIONS, prefix)
    assert np.isfinite(again).all()


def test_too_many_examples_are_refused():
    model = tiny_models.model("llama", context_length=64)
    prefix = model.read_prefix([65])
    examples = [Example(asked(model, "Why?"), 0)] * 20

    with pytest.raises(TooManyTokensError):
        model.score_labels(examples, asked(model, "Why?"), OPTIONS, prefix)
