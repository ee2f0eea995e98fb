"""What the benchmark of deciding asks is what serves."""

from benchmarks.decision_cost import GivenHistory, asked
from qa.inference.by_history import EXAMPLES_SHOWN
from qa.pipeline.values import Question


def test_as_many_past_questions_stand_before_it_as_before_one_that_is_served():
    (question,) = asked(1)

    past = GivenHistory().known(Question(question), own_model="", limit=EXAMPLES_SHOWN)

    assert len({each.question for each in past} - {question}) == EXAMPLES_SHOWN
