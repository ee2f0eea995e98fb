"""What a draft is and when it is right by references."""

import pytest

from qa.evaluation.cases import Case
from qa.evaluation.judging import Draft, by_references, draft_of
from qa.pipeline.language_model import Confidence, NoProbes
from qa.pipeline.values import Outcome
from tests.qa.pipeline.values import (
    GivenModel,
    GivenProbes,
    GivenRetriever,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    run_pipeline,
)

_SENTENCE = "The duchy was founded in 911 by Rollo, a Viking leader."
_CASE = Case(
    id="q",
    question="Who founded the duchy?",
    is_answerable=True,
    gate=None,
    reason=None,
    evidence=(),
    answer_contains=(),
    asker=(),
    references=("Rollo", "the Viking Rollo"),
)


def drafted(generation, *, probes=None, **policy):
    *_, outcome = run_pipeline(
        "What does a card cost?",
        retriever=GivenRetriever(make_retrieval(make_evidence(distance=0.4))),
        language_model=lambda: GivenModel(generation),
        probes=lambda _model: probes or NoProbes(),
        policy=make_policy(**policy),
    )
    assert isinstance(outcome, Outcome)
    return draft_of(outcome, str)


@pytest.mark.parametrize(
    ("text", "short", "is_correct"),
    [
        (_SENTENCE, "", True),
        (_SENTENCE, "Rollo", True),
        (_SENTENCE, "Rollo, a Viking leader", True),
        (_SENTENCE, "911", False),
        ("It was founded in 911.", "911", False),
        ("It was founded in 911.", "Rollo", False),
    ],
)
def test_a_reference_stands_in_the_answer_and_the_marked_words_share_one_of_its(
    text, short, is_correct
):
    assert by_references(_CASE, Draft(text, (), short)).is_correct is is_correct


def test_texts_are_measured_on_the_words_that_answer_where_they_are_marked():
    whole = by_references(_CASE, Draft(_SENTENCE, ())).measures
    short = by_references(_CASE, Draft(_SENTENCE, (), "Rollo")).measures

    assert short == {"exact_match": 1.0, "f1": 1.0, "rouge_l": 1.0}
    assert whole["exact_match"] == 0.0
    assert 0 < whole["f1"] < 1
    assert 0 < whole["rouge_l"] < 1


def test_a_draft_carries_the_words_that_its_model_marked():
    marked = make_generation("It costs 12 euros.", short_answer="12 euros ")

    draft = drafted(marked)

    assert draft == Draft("It costs 12 euros.", ("1",), "12 euros")


def test_an_answer_that_was_ended_before_it_began_is_no_draft():
    probes = GivenProbes(Confidence(early=0.1))
    least = {"abstention": True, "min_early_confidence": 0.5}

    assert drafted(make_generation(), probes=probes, **least) is None
