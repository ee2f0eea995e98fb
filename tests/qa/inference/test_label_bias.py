import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.inference.label_judge import JudgedExample, LabelScores, judge_label, label_bias

SCORES = st.builds(LabelScores, st.floats(-50, 50), st.floats(-50, 50))
EXAMPLES = st.lists(st.builds(JudgedExample, st.booleans(), SCORES), max_size=20)


def test_the_correction_is_added_to_the_label_that_was_held_too_low():
    """Taken literally, the published equations would answer -1 against 2: unknown."""
    bias = label_bias([JudgedExample(True, LabelScores(0, 2))])

    found = LabelScores(1, 2) + bias

    assert found == LabelScores(3, 2)


def test_right_examples_of_a_label_count_as_no_error():
    bias = label_bias(
        [
            JudgedExample(True, LabelScores(0, 2)),
            JudgedExample(True, LabelScores(5, 1)),
        ]
    )

    assert bias == LabelScores(known=1, unknown=0)


def test_either_label_is_corrected_by_its_own_examples():
    bias = label_bias(
        [
            JudgedExample(True, LabelScores(0, 2)),
            JudgedExample(False, LabelScores(3, 0)),
            JudgedExample(False, LabelScores(0, 3)),
        ]
    )

    assert bias == LabelScores(known=2, unknown=1.5)


def test_without_examples_or_errors_nothing_is_corrected():
    right = [
        JudgedExample(True, LabelScores(1, 0)),
        JudgedExample(False, LabelScores(0, 1)),
    ]

    assert label_bias([]) == label_bias(right) == LabelScores(0, 0)


@given(EXAMPLES)
def test_exchanging_the_labels_exchanges_the_correction(examples):
    turned = [
        JudgedExample(
            not each.is_known, LabelScores(each.scores.unknown, each.scores.known)
        )
        for each in examples
    ]

    bias = label_bias(examples)
    other = label_bias(turned)

    assert (bias.known, bias.unknown) == pytest.approx((other.unknown, other.known))
    assert min(bias.known, bias.unknown) >= 0


@given(EXAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_the_examples_does_not_matter(examples, chance):
    mixed = list(examples)
    chance.shuffle(mixed)

    bias, other = label_bias(examples), label_bias(mixed)

    assert bias.known == pytest.approx(other.known)
    assert bias.unknown == pytest.approx(other.unknown)


def test_a_judgement_tells_the_probability_with_and_without_the_leaning():
    found = judge_label([JudgedExample(True, LabelScores(0, 2))], LabelScores(1, 2))

    assert found.uncorrected == pytest.approx(0.2689414214)  # 1 / (1 + e)
    assert found.known == pytest.approx(0.7310585786)
    assert found.examples == 1


@given(EXAMPLES, SCORES)
def test_the_higher_corrected_score_is_the_label(examples, scores):
    found = judge_label(examples, scores)
    corrected = scores + found.bias

    assert 0 <= found.known <= 1
    assert (found.known > 0.5) <= (corrected.known > corrected.unknown)
    assert (found.known < 0.5) <= (corrected.known < corrected.unknown)
