"""Abstention, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from qa.evaluation.metrics.selective import TwoByTwo, abstention_f1, two_by_two

_questions = st.lists(
    st.tuples(st.none() | st.booleans(), st.booleans()), min_size=1, max_size=30
)


@pytest.mark.slow
@given(_questions)
def test_precision_recall_and_f1_of_refusing_are_scikit_learns(questions):
    should_answer, answered = zip(*questions, strict=True)
    known = [(due, shown) for due, shown in questions if due is not None]
    truth = [not due for due, _ in known]
    refused = [not shown for _, shown in known]

    table = two_by_two(should_answer, answered)
    f1 = abstention_f1(should_answer, answered)(np.ones((1, len(questions))))[0]

    if any(refused):
        assert table.precision == pytest.approx(precision_score(truth, refused))
    else:
        assert table.precision is None
    if any(truth):
        assert table.recall == pytest.approx(recall_score(truth, refused))
    else:
        assert table.recall is None
    if any(truth) or any(refused):
        assert table.f1 == pytest.approx(f1_score(truth, refused))
        assert f1 == pytest.approx(table.f1)
    else:
        assert table.f1 is None
        assert np.isnan(f1)


def test_questions_that_may_go_either_way_are_in_no_cell():
    assert two_by_two([None, None], [True, False]) == TwoByTwo(0, 0, 0, 0)
