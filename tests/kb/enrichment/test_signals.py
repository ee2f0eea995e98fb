"""What is held against the confidence that a model states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.enrichment.agents import (
    MAX_UNREVIEWED_CONFIDENCE,
    MIN_CONFIDENCE,
    Signals,
    is_faithful,
    measure_agreement,
    token_likelihood,
    unreviewed_confidence,
)

shares = st.floats(0, 1)
HERE, NEAR = np.array([1.0, 0.0]), np.array([0.6, 0.8])


def test_the_same_words_agree_and_other_words_by_their_meaning():
    found = measure_agreement("In Lima.", ["in lima", "In Peru."], [HERE, NEAR, NEAR])

    assert found == pytest.approx((1 + 0.6) / 2)


@pytest.mark.parametrize(
    ("answer", "sample"),
    [
        ("In 1945.", "In 1946."),
        ("It is poisonous.", "It is not poisonous."),
        ("Yes, they do.", "No, they don't."),
        ("In Lima.", None),
    ],
)
def test_other_numbers_a_denial_and_nonsense_agree_with_nothing(answer, sample):
    assert measure_agreement(answer, [sample], [HERE, HERE]) == 0


def test_without_samples_nothing_agrees():
    assert measure_agreement("In Lima.", [], [HERE]) == 0


def test_likelihood_is_a_mean_probability():
    assert token_likelihood(None) is None
    assert token_likelihood(0.0) == 1
    assert token_likelihood(-1.0) == pytest.approx(0.3679, abs=1e-4)


@given(shares, shares, st.none() | shares)
def test_before_any_review_no_signal_can_make_up_for_another(
    stated, agreement, likelihood
):
    found = unreviewed_confidence(Signals(stated, agreement, likelihood))

    known = [stated, agreement] + ([] if likelihood is None else [likelihood])
    assert MIN_CONFIDENCE <= found <= MAX_UNREVIEWED_CONFIDENCE < 1
    assert found <= max(MIN_CONFIDENCE, min(known))


@pytest.mark.parametrize(
    ("sentence", "is_right"),
    [
        ("The capital of Peru is Lima.", True),
        ("The capital of Peru is not Lima.", False),
        ("Lima has 10 million people.", False),
        ("Peru is famous for mountains and old temples.", False),
        ("The capital.", False),
    ],
)
def test_a_sentence_says_what_the_answer_does_and_no_more(sentence, is_right):
    question = "What is the capital of Peru?"

    assert is_faithful(sentence, question, "Lima") is is_right
