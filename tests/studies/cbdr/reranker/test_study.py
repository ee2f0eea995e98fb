"""The parts of the study: who is asked what, what orders are worth, what is gained."""

import json

import numpy as np
import pytest

from kb.embedding.embedder import load_embedder
from qa.evaluation.metrics.intervals import mcnemar
from qa.exceptions import EvaluationDataError
from studies.cbdr.reranker import study as module
from studies.cbdr.reranker.command import NOTES
from studies.cbdr.reranker.questions import Part, Sizes, parted_questions
from studies.cbdr.reranker.ranking import Ordered, compared
from studies.cbdr.reranker.study import FOUND, TUNED, Answers

from .small_squad import write_squad


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    directory = tmp_path_factory.mktemp("squad")
    others = directory / "others.jsonl"
    rows = [{"question": f"other {n}?", "answers": ["x"]} for n in range(60)]
    others.write_text("\n".join(map(json.dumps, rows)))
    return parted_questions(
        write_squad(directory),
        [others],
        Sizes(40, 3),
        embedder=load_embedder("bundled"),
    )


def test_no_article_and_no_question_is_in_two_parts(parted):
    groups = [{row.group for row in parted.of_texts[part]} for part in Part]
    others = [{row.question for row in parted.of_others[part]} for part in Part]

    for sets in (groups, others):
        assert len(set.union(*sets)) == sum(map(len, sets))
    assert [len(parted.of_texts[part]) for part in Part] == [16, 10, 4, 10]
    assert [len(parted.of_others[part]) for part in Part] == [16, 0, 4, 10]


@pytest.mark.slow
def test_notes_are_sentences_of_the_parts_own_articles_the_nearest_first(parted):
    for part in Part:
        own = {row.group.removeprefix("Article_") for row in parted.of_texts[part]}
        for row in parted.all_of(part):
            assert len(set(row.notes)) == 3
            assert all(
                note.split("thing")[1].split("x")[0] in own for note in row.notes
            )
    answering = [
        row.references[0] in row.notes[0] for row in parted.of_texts[Part.TEST]
    ]
    assert np.mean(answering) > 0.5


def test_too_few_articles_are_refused(tmp_path):
    file = write_squad(tmp_path, articles=5)

    with pytest.raises(EvaluationDataError, match="5 articles"):
        parted_questions(file, [], Sizes(10, 3), embedder=load_embedder("bundled"))


def test_orders_are_compared_question_by_question():
    first = {"found": ["a", "b", "c"], "other": ["b", "a", "c"]}
    second = {"found": ["d", "e", "f"], "other": ["d", "f", "e"]}
    questions = [Ordered("one", ("b",), first), Ordered("two", ("d", "f"), second)]

    found = {
        one.measure: one.difference
        for one in compared(questions, np.array([0, 1]), first="found")
    }

    assert (found["P@1"].first, found["P@1"].second) == (0.5, 1.0)
    assert found["MRR@1"].first == 0.5
    assert found["MRR@3"].first == pytest.approx((1 / 2 + 1) / 2)
    assert found["R@1"].second == pytest.approx((1 + 1 / 2) / 2)
    assert found["R@3"].value == 0
    assert found["P@3"].first == pytest.approx((1 / 3 + 2 / 3) / 2)


GIVEN = Answers(
    groups=[("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")],
    known_probability=[0.9, 0.8, 0.2, 0.1],
    alone=[True, True, False, False],
    noted={FOUND: [False, True, True, False], TUNED: [True, False, True, True]},
)


def test_each_gain_is_told_apart_from_always_retrieving_as_found():
    ways = {way.name: way for way in module._ways(GIVEN, {FOUND: 0.5, TUNED: None})}

    assert [*ways] == [
        "always retrieve, as found", "always retrieve, reranked",
        "gate, as found", "gate, reranked", "never retrieve",
    ]  # fmt: skip
    accuracy = {name: way.accuracy.second for name, way in ways.items()}
    assert [*accuracy.values()] == [0.5, 0.75, 0.75, 0.75, 0.5]
    rates = [way.retrieval_rate for way in ways.values()]
    assert rates == [1.0, 1.0, 0.5, 1.0, 0.0]
    assert ways["gate, as found"].accuracy.value == 0.25
    expected = mcnemar(GIVEN.noted[FOUND], [True, True, True, False])
    assert ways["gate, as found"].mcnemar == expected


def test_the_threshold_is_the_best_and_of_equal_ones_retrieves_least():
    found = module._threshold(GIVEN.known_probability, GIVEN.alone, GIVEN.noted[FOUND])

    # At 0.2 one question retrieves and none is gained; above, one is.
    assert found == 0.8


def test_the_notes_say_what_p_and_the_interval_are_over():
    (said,) = [note for note in NOTES if note.startswith("p is that of McNemar's")]

    assert "treats questions as independent" in said
    assert "interval resamples articles" in said
