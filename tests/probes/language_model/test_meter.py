"""What a piece of work costs a model."""

import pytest
import torch

from probes.language_model.taps import metered
from tests.probes.tiny_models import model


def test_prompts_are_passes_and_written_tokens_steps():
    tiny = model("llama")

    with tiny.metered() as meter:
        context = tiny.read([1, 2, 3, 4])
        tiny.read([5, 6], context)
        written = tiny.generate(context, max_tokens=3)

    assert (meter.prompt_passes, meter.prompt_tokens) == (2, 6)
    assert meter.steps == len(written.ids)


def test_every_row_of_a_batch_counts():
    tiny = model("llama")
    context = tiny.read([1, 2])

    with tiny.metered() as meter:
        tiny.score_all([[1, 2, 3], [4, 5, 6]], context)

    assert (meter.prompt_passes, meter.prompt_tokens) == (1, 6)


def test_nothing_is_counted_before_and_after():
    tiny = model("llama")
    context = tiny.read([1, 2])

    with tiny.metered() as meter:
        pass
    tiny.read([3, 4], context)

    assert (meter.prompt_passes, meter.prompt_tokens, meter.steps) == (0, 0, 0)


def test_a_pass_without_numbers_of_tokens_is_refused():
    linear = torch.nn.Identity()

    with metered(linear), pytest.raises(TypeError, match="can't be counted"):
        linear(input_ids="text")
