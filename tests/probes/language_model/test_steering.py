"""Steering through the model's own ways in, and writing that ends when it is enough."""

import numpy as np
import pytest
import torch

from probes.exceptions import LayerError
from probes.language_model.second_pass import Passing
from probes.language_model.taps import tapped
from probes.taps import Tap
from tests.probes import tiny_models

ROW = tuple(range(40, 60))
DIRECTION = {1: torch.linspace(-4, 4, 32)}


@pytest.fixture(scope="module", params=tiny_models.FAMILIES)
def model(request):
    return tiny_models.model(request.param)


def test_a_steered_reading_is_what_a_steered_pass_computes(model):
    with tapped(model._network.module, steering=DIRECTION), torch.inference_mode():
        logits = model._network.module(torch.tensor([ROW])).logits[0, -1]

    read = model.read(ROW, steering=DIRECTION)

    expected = torch.log_softmax(logits.float(), -1)
    assert torch.allclose(read.next_log_probabilities, expected, atol=1e-4)
    assert not torch.allclose(
        model.read(ROW).next_log_probabilities, expected, atol=1e-2
    )


def test_options_are_scored_as_steered_writing_would_find_them(model):
    prompt = model.read(ROW)
    written = model.generate(prompt, max_tokens=4, steering=DIRECTION)

    (scored,) = model.score_all([written.ids], prompt, steering=DIRECTION)

    np.testing.assert_allclose(
        scored.log_probabilities, written.log_probabilities, atol=1e-3
    )


def test_taps_read_what_steering_has_made(model):
    prompt, tap = model.read(ROW), Tap(1)
    plain = model.generate(prompt, max_tokens=1, taps=[tap])

    moved = model.generate(prompt, max_tokens=1, taps=[tap], steering=DIRECTION)

    assert moved.ids == plain.ids
    np.testing.assert_allclose(
        moved.activations[tap][0] - plain.activations[tap][0], DIRECTION[1], atol=1e-4
    )


def test_no_steering_is_left_behind(model):
    before = model.read(ROW).next_log_probabilities
    model.generate(
        model.read(ROW, steering=DIRECTION), max_tokens=2, steering=DIRECTION
    )

    assert torch.equal(model.read(ROW).next_log_probabilities, before)


def test_a_block_that_does_not_exist_is_refused(model):
    with pytest.raises(LayerError, match="Layer 9 does not exist"):
        model.read(ROW, steering={9: DIRECTION[1]})


def test_monitoring_while_writing_reads_what_a_steered_second_pass_would(model):
    prompt, tap = model.read(ROW), Tap(2)

    written = model.generate(prompt, max_tokens=4, taps=[tap], steering=DIRECTION)

    with (
        tapped(model._network.module, [tap], steering=DIRECTION) as flow,
        torch.inference_mode(),
    ):
        model._network.read(written.ids, prompt)
    np.testing.assert_allclose(
        written.activations[tap], flow.row(tap, 0, slice(None)), atol=1e-4
    )


def test_writing_ends_when_it_is_enough(model):
    script = [72, 73, 46, 74, 75]

    written = model.generate(
        model.read(ROW),
        max_tokens=5,
        allowed=lambda ids: [script[len(ids)]],
        taps=[Tap(0)],
        enough=lambda text: len(text) >= 3,
    )

    assert len(written.ids) == 3
    assert not written.finished
    assert written.activations[Tap(0)].shape == (3, 32)
    assert Passing(written.context.ids, 0, 1).ids == (*ROW, *script[:3])
