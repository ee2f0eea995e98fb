"""On the bundled model and real text: activations do not depend on how they are read."""

import numpy as np
import pytest
import torch

from probes.language_model.second_pass import Passing
from probes.taps import Part, Tap
from qa.inference.grounded import GroundedLanguageModel
from qa.inference.grounded_form import answer_passing, prompt_ids
from qa.pipeline.language_model import Capture, Prompt
from qa.training.labels import piece_of

pytestmark = pytest.mark.slow

TEXTS = (
    "Oxygen is a chemical element with symbol O and atomic number 8.",
    "It is a member of the chalcogen group on the periodic table and is a highly "
    "reactive nonmetal and oxidizing agent that readily forms compounds, notably "
    "oxides, with most elements.",
    "By mass, oxygen is the third-most abundant element in the universe, after "
    "hydrogen and helium.",
    "At standard temperature and pressure, two atoms of the element bind to form "
    "dioxygen, a colorless and odorless diatomic gas.",
)
QUESTIONS = (
    "What is the atomic number of oxygen?",
    "Which two elements are more abundant in the universe than oxygen, by mass?",
    "What colour has the gas?",
)
# Of unequal length: one piece of evidence, two, all of them.
PROMPTS = tuple(
    Prompt(question, tuple(piece_of("", text) for text in TEXTS[:count]), "en")
    for question, count in zip(QUESTIONS, (1, 4, 2), strict=True)
)
PLACES = (Tap(14), Tap(14, Part.FFN), Tap(29))
# The largest distance of two vectors of one position, as a share of their length: sums
# of bfloat16, which keeps 8 bits, come out otherwise in another order.
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05}


def assert_alike(one, other, dtype):
    assert one.shape == other.shape
    distances = np.linalg.norm(one - other, axis=-1) / np.linalg.norm(other, axis=-1)
    assert distances.max() < TOLERANCE[dtype]


@pytest.mark.parametrize("prompt", PROMPTS, ids=["one", "four", "two"])
def test_what_is_kept_while_writing_is_what_a_second_pass_reads(bundled_model, prompt):
    grounded = GroundedLanguageModel(bundled_model)

    made = grounded.generate(prompt, Capture(answer=PLACES, prompt=PLACES))

    assert made.trace is not None
    model, before = bundled_model, prompt_ids(bundled_model.tokens, prompt)
    ids = model.tokens.encode_text("".join(made.tokens))
    assert len(ids) == made.answer_tokens > 0
    text = (*before, *ids)
    passings = [
        Passing(text, len(before), len(text)),
        Passing(text, len(before) - 1, len(before)),
    ]
    written, asked = model.read_activations(passings, PLACES)
    for place in PLACES:
        assert_alike(made.trace.answer[place], written[place], model.dtype)
        assert_alike(made.trace.prompt[place][None], asked[place], model.dtype)


def test_a_batch_of_unequal_lengths_reads_what_each_text_reads_alone(bundled_model):
    taps = PLACES
    passings = [
        answer_passing(bundled_model.tokens, prompt, answer)
        for prompt, answer in zip(
            PROMPTS, ("8", "hydrogen and helium", "none"), strict=True
        )
    ]
    assert len({len(passing.ids) for passing in passings}) == 3

    together = bundled_model.read_activations(passings, taps)

    for passing, found in zip(passings, together, strict=True):
        (alone,) = bundled_model.read_activations([passing], taps)
        for one in taps:
            assert_alike(found[one], alone[one], bundled_model.dtype)


def test_ending_at_the_middle_block_reads_what_the_whole_pass_reads(bundled_model):
    passing = answer_passing(bundled_model.tokens, PROMPTS[1], "hydrogen and helium")

    (ended,) = bundled_model.read_activations([passing], [Tap(14)])
    (whole,) = bundled_model.read_activations([passing], [Tap(14), Tap(29)])

    np.testing.assert_array_equal(ended[Tap(14)], whole[Tap(14)])
