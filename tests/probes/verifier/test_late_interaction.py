"""How well a question's tokens are found in an entry, against a plain loop."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probes.verifier.late_interaction import likeness
from probes.verifier.reading import TEXT, Tokens

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


def one_by_one(question: Tokens, window: Tokens) -> float:
    total, weight = 0.0, 0.0
    for at in range(1, len(question) - 1):
        own = question.states[at].astype(float)
        best = max(
            float(own @ other / np.linalg.norm(own) / np.linalg.norm(other))
            for other in window.states[1:-1].astype(float)
        )
        telling = float(WEIGHTS[question.ids[at]])
        total, weight = total + telling * best, weight + telling
    return total / weight


@given(st.integers(3, 9), st.lists(st.integers(3, 12), min_size=1, max_size=5))
def test_it_is_the_weighted_mean_of_the_best_cosines(length, lengths):
    question = tokens(length, 1)
    windows = [tokens(each, seed) for seed, each in enumerate(lengths, start=2)]

    found = likeness(question, windows, WEIGHTS)

    wanted = [one_by_one(question, window) for window in windows]
    assert found == pytest.approx(wanted, abs=1e-5)


def test_a_text_is_most_like_itself():
    question = tokens(7, 1)
    found = likeness(question, [tokens(9, 2), question, tokens(9, 3)], WEIGHTS)
    assert found[1] == pytest.approx(1.0, abs=1e-6)
    assert found.argmax() == 1


def test_without_tokens_of_their_own_nothing_is_alike():
    text, empty = tokens(5, 1), tokens(2, 2)
    assert likeness(text, [], WEIGHTS).tolist() == []
    assert likeness(empty, [text, empty], WEIGHTS).tolist() == [0.0, 0.0]
    assert likeness(text, [empty], WEIGHTS).tolist() == [0.0]
    beside = likeness(text, [empty, text], WEIGHTS)
    assert beside == pytest.approx([0.0, 1.0], abs=1e-6)
