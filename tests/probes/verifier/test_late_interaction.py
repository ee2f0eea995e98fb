"""How well a question's tokens are found in an entry: against a plain loop, and fitted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probes.verifier.fitting import Example, VerifierSettings, fit_late_interaction
from probes.verifier.late_interaction import LateInteraction
from probes.verifier.network import Interaction, Members, Tuned
from probes.verifier.reading import TEXT, Tokens, side_of

WIDTH, VOCABULARY = 6, 40
WEIGHTS = torch.from_numpy(np.random.default_rng(0).uniform(0.1, 3, VOCABULARY)).float()


def tokens(length: int, seed: int) -> Tokens:
    chance = np.random.default_rng(seed)
    return Tokens(
        chance.normal(size=(length, WIDTH)).astype(np.float16),
        chance.integers(0, VOCABULARY, length).astype(np.int32),
        np.full(length, TEXT, np.int8),
        np.zeros((2, WIDTH), np.float16),
    )


def fitted(seed: int = 0) -> LateInteraction:
    """One with weights as if fitted."""
    found = LateInteraction(WIDTH)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        for each in (found.sought.weight, found.factor.weight):
            each.add_(torch.randn_like(each) * 0.3)
    return found.eval()


@torch.inference_mode()
def likeness(question, windows, by=None):
    return (by or LateInteraction(WIDTH)).likeness(question, windows, WEIGHTS)


def one_by_one(question: Tokens, window: Tokens, by: LateInteraction) -> float:
    sought = by.sought.weight.detach().double().numpy()
    factor = by.factor.weight.detach().double().numpy()[0]
    total, weight = 0.0, 0.0
    for at in range(1, len(question) - 1):
        state = question.states[at].astype(float)
        own = sought @ state
        best = max(
            float(own @ other / np.linalg.norm(own) / np.linalg.norm(other))
            for other in window.states[1:-1].astype(float)
        )
        telling = float(WEIGHTS[question.ids[at]] * np.exp(factor @ state))
        total, weight = total + telling * best, weight + telling
    return total / weight


@given(st.integers(3, 9), st.lists(st.integers(3, 12), min_size=1, max_size=5))
def test_it_is_the_weighted_mean_of_the_best_cosines(length, lengths):
    question = tokens(length, 1)
    windows = [tokens(each, seed) for seed, each in enumerate(lengths, start=2)]

    by = fitted()

    found = likeness(question, windows, by)

    wanted = [one_by_one(question, window, by) for window in windows]
    assert found == pytest.approx(wanted, abs=1e-5)


@given(st.lists(st.integers(3, 12), min_size=1, max_size=5))
def test_it_is_fitted_as_it_is_used(lengths):
    question = tokens(6, 1)
    windows = [tokens(each, seed) for seed, each in enumerate(lengths, start=2)]
    by = fitted()
    with torch.inference_mode():
        logits = by(side_of([question] * len(windows)), side_of(windows), WEIGHTS)
        wanted = logits / by.sharpness.exp()
    assert likeness(question, windows, by) == pytest.approx(wanted.numpy(), abs=1e-5)


def test_a_text_is_most_like_itself():
    question = tokens(7, 1)
    found = likeness(question, [tokens(9, 2), question, tokens(9, 3)])
    assert found[1] == pytest.approx(1.0, abs=1e-6)
    assert found.argmax() == 1


def test_without_tokens_of_their_own_nothing_is_alike():
    text, empty = tokens(5, 1), tokens(2, 2)
    assert likeness(text, []).tolist() == []
    assert likeness(empty, [text, empty]).tolist() == [0.0, 0.0]
    assert likeness(text, [empty]).tolist() == [0.0]
    beside = likeness(text, [empty, text])
    assert beside == pytest.approx([0.0, 1.0], abs=1e-6)


def turned(text: Tokens) -> Tokens:
    """A text with each state's numbers in another order."""
    return replace(text, states=np.roll(text.states, 2, axis=1))


def test_a_fit_learns_what_a_token_looks_for_and_changes_nothing_else():
    """Here the state that answers a token's is another one than its own."""
    asked = [tokens(5, seed) for seed in range(60)]
    examples = [
        Example(
            each, (turned(each),), tuple(tokens(5, 100 + 4 * at + k) for k in range(4))
        )
        for at, each in enumerate(asked)
    ] + [Example(asked[0], (), (asked[1],))]
    nets = Members([Interaction(WIDTH, VOCABULARY)])
    network = Tuned(torch.nn.ModuleList(), nets, LateInteraction(WIDTH))
    before = {name: each.clone() for name, each in nets.state_dict().items()}

    def first(example: Example) -> bool:
        windows = [*example.positives, *example.negatives]
        found = likeness(example.question, windows, network.late_interaction)
        return bool(found.argmax() == 0)

    assert np.mean([first(each) for each in examples[:60]]) < 0.5
    settings = VerifierSettings(epochs=30, batch=20, learning_rate=0.03, weight_decay=0)
    fit_late_interaction(network, examples, settings)

    assert np.mean([first(each) for each in examples[:60]]) > 0.9
    after = nets.state_dict()
    assert all(torch.equal(after[name], each) for name, each in before.items())
