"""What the comparison asks, and what it retrieves from."""

import pytest

from qa.evaluation.metrics.text import normalised
from qa.exceptions import EvaluationDataError
from studies.cbdr.timing.knowledge import protocol_of, sources_of
from studies.cbdr.timing.questions import SETS, TEACHING, Part, Sizes, select
from tests.studies.cbdr.timing.small_sets import TOWNS, write_all

SIZES = Sizes(asked=6, teaching=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("sets"))


@pytest.fixture(scope="module")
def selected(data):
    return select(data, SETS, SIZES)


def test_half_of_each_set_is_tested_and_thresholds_come_from_the_other(selected):
    for name in SETS:
        own = [one for one in selected.of(Part.TEST) if one.data_set == name]
        other = [one for one in selected.of(Part.CALIBRATION) if one.data_set == name]
        assert (len(own), len(other)) == (3, 3)


def test_the_first_of_every_set_and_part_are_among_all(selected):
    some = selected.of(Part.TEST, Part.CALIBRATION, first=1)

    assert len(some) == 2 * len(SETS)
    assert {one.data_set for one in some} == set(SETS)
    assert set(some) < set(selected.of(Part.TEST, Part.CALIBRATION))


def test_what_teaches_is_asked_nowhere_else(selected):
    asked = selected.of(Part.TEST, Part.CALIBRATION)
    taught = selected.of(Part.TEACHING)

    assert {one.data_set for one in taught} == set(TEACHING)
    assert len(taught) == len(TEACHING) * SIZES.teaching
    said = {normalised(one.case.question) for one in asked}
    assert said.isdisjoint(normalised(one.case.question) for one in taught)


def test_the_same_seed_draws_the_same_questions_and_another_others(data, selected):
    assert select(data, SETS, SIZES) == selected
    other = select(data, SETS, Sizes(asked=6, teaching=2, seed=1))
    assert {q.case.id for q in other.questions} != {
        q.case.id for q in selected.questions
    }


def test_half_of_the_answerable_questions_have_an_entry_and_no_other(selected, data):
    for name in SETS:
        rows = [o for o in selected.of(Part.TEST) if o.data_set == name]
        answerable = [one for one in rows if one.case.is_answerable]
        helped = [one for one in answerable if one.has_entry]
        assert len(helped) == round(len(answerable) / 2)
        assert not any(one.has_entry for one in rows if not one.case.is_answerable)
    sources = sources_of(data, selected.questions)
    entries = {f.question: f.text for s in sources for f in s.facts if f.question}
    assert entries == {
        one.case.question: one.case.references[0]
        for one in selected.questions
        if one.has_entry
    }


def test_texts_are_true_passages_of_bounded_length(selected, data):
    sources = sources_of(data, selected.questions)
    texts = [f.text for s in sources for f in s.facts if not f.question]

    assert any(TOWNS[0] in text for text in texts)
    assert not any("is a river" in text for text in texts)
    assert max(len(text.split()) for text in texts) <= 100
    said = protocol_of(sources, selected.questions)
    assert f"{len(texts)} passages" in said


def test_truthfulqa_is_judged_by_what_an_answer_is_nearer_to(selected):
    one = next(q for q in selected.questions if q.data_set == "truthfulqa")
    town = one.case.references[-1]

    assert one.is_right(f"it is {town}")
    assert not one.is_right("it has no name at all")


def test_other_sets_by_the_reference_and_unanswerable_questions_never(selected):
    one = next(q for q in selected.questions if q.data_set == "freshqa")
    none = next(q for q in selected.questions if q.case.is_answerable is False)

    assert one.is_right(f"That is {one.case.references[0]}, I think.")
    assert not one.is_right("That is elsewhere.")
    assert not none.is_right("A dream.")


def test_a_set_without_its_file_and_an_unknown_one_are_named(data, tmp_path):
    with pytest.raises(EvaluationDataError, match="no set 'hotpotqa'"):
        select(data, ["hotpotqa"], SIZES)
    with pytest.raises(EvaluationDataError, match="freshqa"):
        select(tmp_path, ["freshqa"], SIZES)


def test_a_reference_that_says_nothing_is_none(data, tmp_path):
    write_all(tmp_path)
    file = tmp_path / "nq_open/NQ-open.dev.jsonl"
    file.write_text(
        '{"question": "who?", "answer": ["...", "Ann"]}\n'
        '{"question": "what?", "answer": ["?!"]}\n'
    )

    found = select(tmp_path, ["nq-open"], Sizes(asked=10, teaching=0)).questions

    assert [one.case.references for one in found] == [("Ann",)]
