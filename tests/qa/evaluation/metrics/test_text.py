"""Texts beside right ones, against rouge-score and SQuAD's rules worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from qa.evaluation.metrics.text import (
    contains_gold,
    exact_match,
    normalised,
    rouge_l,
    token_f1,
)

_texts = st.lists(
    st.sampled_from(["the", "fee", "Card", "12", "a", "is", "is.", "é", "-"]),
    max_size=8,
).map(" ".join)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Card-fee, a (yearly) one!", "cardfee yearly one"),
        ("another theatre", "another theatre"),
        ("An", ""),
    ],
)
def test_texts_are_normalised_as_squad_does(text, plain):
    assert normalised(text) == plain


@pytest.mark.parametrize(
    ("answer", "golds", "match", "f1"),
    [
        ("The 12 euros.", ["13 euros", "12 euros"], 1, 1),
        ("12 euros a year", ["12 euros"], 0, 0.8),  # 2 common of 3 and of 2 words
        ("fee fee", ["fee"], 0, 2 / 3),  # a word counts as often as in both
        ("none", ["12 euros"], 0, 0),
        ("", [], 1, 1),
        ("something", [], 0, 0),
        ("the", ["a"], 1, 1),
    ],
)
def test_match_and_f1_are_those_worked_out_by_hand(answer, golds, match, f1):
    assert exact_match(answer, golds) == match
    assert token_f1(answer, golds) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "golds", "contained"),
    [
        ("It is the 12 euros.", ["12 Euros"], 1),
        ("A party of ten", ["art"], 0),
        ("12 or 13 euros", ["12 euros"], 0),
        ("anything", ["the"], 0),
        ("anything", [], 0),
    ],
)
def test_a_right_answer_is_contained_as_whole_words(answer, golds, contained):
    assert contains_gold(answer, golds) == contained


@given(_texts, _texts)
def test_rouge_l_is_rouge_scores(answer, gold):
    reference = RougeScorer(["rougeL"], use_stemmer=False).score(gold, answer)

    assert rouge_l(answer, [gold]) == pytest.approx(reference["rougeL"].fmeasure)


@given(_texts, st.lists(_texts, max_size=3))
def test_measures_stay_in_their_bounds_and_more_golds_never_hurt(answer, golds):
    for measure in (exact_match, token_f1, rouge_l, contains_gold):
        assert 0 <= measure(answer, golds) <= 1
        if any(map(normalised, golds)):
            assert measure(answer, [*golds, "fee"]) >= measure(answer, golds)
    assert exact_match(answer, golds) <= token_f1(answer, golds)
