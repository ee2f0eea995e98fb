import itertools
import os
from pathlib import Path

import pytest

from qa.exceptions import EvaluationDataError
from studies.l2r.knowledge import gold_subset
from studies.l2r.questions import (
    ChoiceQuestion,
    read_commonsenseqa,
    read_medqa,
    read_truthfulqa,
    shuffled,
)
from tests.studies.l2r.data_files import (
    TRUTHFULQA,
    write_commonsenseqa,
    write_medqa,
    write_truthfulqa,
)


def _many(count: int = 400, options: int = 4) -> list[ChoiceQuestion]:
    """Return questions whose data set names the right option first, always."""
    made = []
    for number in range(count):
        name, texts = f"q{number}", [f"{number} {index}" for index in range(options)]
        shown = shuffled(texts, question_id=name, seed=0)
        correct = (shown.index(texts[0]),)
        made.append(ChoiceQuestion(name, "", name, shown, correct, False, shown))
    return made


def test_always_choosing_the_first_option_scores_at_chance():
    questions = _many()

    first = sum(question.correct == (0,) for question in questions) / len(questions)

    assert 0.25 - 0.065 < first < 0.25 + 0.065  # three standard errors


def test_the_order_of_options_is_the_questions_own():
    options = ["one", "two", "three", "four"]
    order = shuffled(options, question_id="a", seed=1)

    assert shuffled(options[::-1], question_id="a", seed=1) == order
    others = {shuffled(options, question_id=str(n), seed=1) for n in range(20)}
    assert len(others) > 5
    assert {shuffled(options, question_id="a", seed=n) for n in range(20)} != {order}


def test_a_missing_question_shifts_no_other(tmp_path):
    whole = read_truthfulqa(write_truthfulqa(tmp_path / "a"), several=True, seed=3)
    less = read_truthfulqa(
        write_truthfulqa(tmp_path / "b", TRUTHFULQA[1:][::-1]), several=True, seed=3
    )

    by_id = {question.id: question for question in whole.questions}
    assert len(less.questions) == len(TRUTHFULQA) - 1
    assert all(by_id[question.id] == question for question in less.questions)
    assert whole.digest != less.digest


def test_truthfulqa_is_read_with_its_categories_and_both_tasks(tmp_path):
    data = write_truthfulqa(tmp_path)
    one = read_truthfulqa(data, several=False, seed=0).questions[0]
    several = read_truthfulqa(data, several=True, seed=0).questions[0]

    assert one.group == several.group == "Nature"
    assert one.id == several.id
    assert one.scored == several.scored
    assert [one.options[index] for index in one.correct] == ["A spider has eight legs"]
    assert {several.options[index] for index in several.correct} == {
        "A spider has eight legs",
        "Spiders walk on eight legs",
    }


def test_each_option_counts_with_its_own_question(tmp_path):
    question = read_truthfulqa(
        write_truthfulqa(tmp_path), several=True, seed=0
    ).questions[0]
    wrong = tuple(set(range(4)) - set(question.correct))

    assert question.share_right(question.correct) == 1.0
    assert question.share_right(question.correct[:1]) == 0.75
    assert question.share_right(()) == 0.5
    assert question.share_right(wrong) == 0.0


def test_labels_are_looked_up_and_not_counted(tmp_path):
    write_commonsenseqa(tmp_path)
    write_medqa(tmp_path)
    whale = read_commonsenseqa(tmp_path, seed=0).questions[0]
    runner = read_medqa(tmp_path, seed=0).questions[0]

    assert whale.options[whale.correct[0]] == "ocean"
    assert (whale.id, whale.group) == ("c1", "whale")
    assert runner.options[runner.correct[0]] == "rest"


@pytest.mark.parametrize(
    "targets",
    [{"a": 0, "b": 0}, {"a": 1, "b": 1}],
)
def test_a_question_without_one_right_option_is_refused(tmp_path, targets):
    row = {"question": "Which?", "mc1_targets": targets, "mc2_targets": targets}
    data = write_truthfulqa(tmp_path, [row])

    with pytest.raises(EvaluationDataError, match="one right option"):
        read_truthfulqa(data, several=False, seed=0)


def test_a_question_that_stands_twice_is_refused(tmp_path):
    data = write_truthfulqa(tmp_path, [TRUTHFULQA[0], TRUTHFULQA[0]])

    with pytest.raises(EvaluationDataError, match="twice"):
        read_truthfulqa(data, several=False, seed=0)


def test_another_layout_is_refused(tmp_path):
    data = write_truthfulqa(tmp_path, [{"question": "Which?"}])

    with pytest.raises(EvaluationDataError, match="not laid out"):
        read_truthfulqa(data, several=False, seed=0)


def test_a_larger_share_of_gold_knowledge_holds_every_smaller_one():
    questions = _many(101)
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    subsets = [{q.id for q in gold_subset(questions, share)} for share in shares]

    assert [len(subset) for subset in subsets] == [0, 25, 50, 76, 101]
    assert all(a < b for a, b in itertools.pairwise(subsets))
    assert {q.id for q in gold_subset(questions[::-1], 0.5)} == subsets[2]


@pytest.mark.skipif(
    "NESCIO_EVALUATION_DATA" not in os.environ,
    reason="NESCIO_EVALUATION_DATA names no directory of public data",
)
def test_the_public_files_are_read_whole():
    data = Path(os.environ["NESCIO_EVALUATION_DATA"])
    one = read_truthfulqa(data, several=False, seed=0).questions
    several = read_truthfulqa(data, several=True, seed=0).questions

    assert len(one) == len(several) == 817
    assert len(read_commonsenseqa(data, seed=0).questions) == 1221
    assert len(read_medqa(data, seed=0).questions) == 1273
    assert sum(bool(question.group) for question in one) >= 816
    first = sum(question.correct == (0,) for question in one) / len(one)
    assert abs(first - 0.2225) < 0.045  # chance, and three standard errors
