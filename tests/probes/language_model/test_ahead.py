"""Guesses that are read along change how long writing takes, and nothing else."""

import json

import numpy as np
import pytest
import torch

from probes.language_model import Tokens
from probes.language_model.ahead import continuation
from probes.language_model.writing import JsonValues
from probes.taps import Tap
from tests.probes import tiny_models

ROW = (10, 20, 30, 40)
WRITTEN = (50, 60, 70, 80, 90, 50, 60, 70, 80, 91)
TAPS = (Tap(1), Tap(2))


def write(model, forced=None):
    return model.generate(
        model.read(ROW),
        max_tokens=len(WRITTEN),
        allowed=lambda ids: [WRITTEN[len(ids)]],
        forced=forced,
        taps=TAPS,
    )


def right(ids):
    return WRITTEN[len(ids) : len(ids) + 3]


def half_right(ids):
    return [*right(ids)[:1], 99, 99]


def wrong(_ids):
    return [99] * 5


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
@pytest.mark.parametrize("forced", [right, half_right, wrong, lambda _ids: ()])
def test_what_is_written_is_the_same_whatever_was_guessed(family, forced):
    model = tiny_models.model(family)

    plain, guessed = write(model), write(model, forced)

    assert guessed.ids == plain.ids == WRITTEN
    np.testing.assert_allclose(
        guessed.log_probabilities, plain.log_probabilities, atol=1e-4
    )
    np.testing.assert_allclose(guessed.entropies, plain.entropies, atol=1e-4)
    for tap in TAPS:
        np.testing.assert_allclose(
            guessed.activations[tap], plain.activations[tap], atol=1e-4
        )


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_what_comes_after_never_sees_a_guess_that_was_wrong(family):
    model = tiny_models.model(family)

    after = write(model, wrong).context

    assert after.ids == (*ROW, *WRITTEN)
    read = model.read((7, 8), after)
    whole = model.read((*ROW, *WRITTEN, 7, 8))
    assert torch.allclose(
        read.next_log_probabilities, whole.next_log_probabilities, atol=1e-4
    )


def test_right_guesses_save_passes():
    model = tiny_models.model("llama")

    def passes(forced):
        prompt = model.read(ROW)
        with model.metered() as meter:
            model.generate(
                prompt,
                max_tokens=len(WRITTEN),
                allowed=lambda ids: [WRITTEN[len(ids)]],
                forced=forced,
            )
        return meter.steps + meter.prompt_passes

    assert passes(None) == len(WRITTEN)
    assert passes(right) == 3
    # The second run of the same words is found without a grammar that forces them.
    assert passes(lambda _ids: ()) == len(WRITTEN) - 3


def test_a_guess_never_exceeds_the_models_context():
    model = tiny_models.model("llama", len(ROW) + len(WRITTEN))

    assert write(model, lambda _ids: [99] * 40).ids == WRITTEN


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((1, 2, 3, 4, 5, 1, 2, 3), (4, 5, 1, 2, 3)),
        ((9, 3, 7, 1, 2, 3, 4, 2, 3), (4, 2, 3)),
        ((1, 2, 3), ()),
        ((1,), ()),
        ((), ()),
    ],
)
def test_the_longest_and_latest_likeness_is_continued(ids, expected):
    assert tuple(continuation(ids)) == expected


def test_what_a_schema_forces_is_known_ahead():
    tokens = Tokens(tiny_models.tokenizer())
    value = JsonValues(tokens).value(
        {
            "type": "object",
            "properties": {"piece": {"enum": [1, 2]}},
            "required": ["piece"],
            "additionalProperties": False,
        }
    )

    assert tokens.decode(value.forced(())) == ' {"piece": '
    ids = tokens.encode_text(' {"piece": 2')
    assert tokens.decode(value.forced(ids)) == "}"
    closed = (*ids, *tokens.encode_text("}"))
    assert value.forced(closed) == ()
    assert set(value.allowed(closed)) == tokens.end_ids


def test_what_is_forced_is_allowed():
    tokens = Tokens(tiny_models.tokenizer())
    value = JsonValues(tokens).value({"const": ["a", {"b": 1}]})
    ids: list[int] = []
    while forced := value.forced(ids):
        assert forced[0] in value.allowed(ids)
        ids.append(forced[0])
    assert json.loads(tokens.decode(ids)) == ["a", {"b": 1}]
