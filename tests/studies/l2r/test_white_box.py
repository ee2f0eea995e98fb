import math
from dataclasses import replace

import pytest
import torch

from probes.language_model import WhiteBoxModel
from qa.inference.guided import GuidedLanguageModel
from studies.l2r.questions import ChoiceQuestion
from studies.l2r.white_box import WhiteBoxChoiceModel, choose_by
from tests.probes import tiny_models
from tests.qa.pipeline.values import make_evidence

OPTIONS = ("It has eight legs", "Six", "It has ten legs and a tail")
QUESTION = ChoiceQuestion(
    id="1",
    group="",
    question="How many legs?",
    options=OPTIONS,
    correct=(0,),
    several=False,
    scored=OPTIONS,
)
PIECE = make_evidence("A spider has eight legs.")


@pytest.fixture(scope="module")
def tiny() -> WhiteBoxModel:
    return tiny_models.model("llama", context_length=2048)


def _mean(model: WhiteBoxModel, before: str, option: str) -> float:
    """Score an option by one plain pass over the whole text, nothing cached."""
    head, own = model.tokens.encode_text(before), model.tokens.encode_text(f" {option}")
    network = model._network.module
    with torch.inference_mode():
        logits = network(torch.tensor([[*head, *own]])).logits[0].float()
    table = torch.log_softmax(logits, dim=-1)
    values = [
        float(table[len(head) + place - 1, token]) for place, token in enumerate(own)
    ]
    return math.fsum(values) / len(values)


def test_scores_are_those_of_a_plain_computation(tiny):
    guided = GuidedLanguageModel(tiny)
    choice = WhiteBoxChoiceModel(guided).choose(QUESTION, (PIECE,))

    note = f"{guided.examples}Note: {PIECE.text}\nQuestion: How many legs?\nAnswer:"
    for option, score in zip(OPTIONS, choice.scores, strict=True):
        wanted = _mean(tiny, note, option) - _mean(tiny, "Answer:", option)
        assert score == pytest.approx(wanted, abs=2e-3)
    assert choice.chosen == (choice.scores.index(max(choice.scores)),)
    assert choice.cited == (1,)


def test_closed_book_scores_are_those_of_a_plain_computation(tiny):
    choice = WhiteBoxChoiceModel(GuidedLanguageModel(tiny)).choose(QUESTION, ())

    before = "Question: How many legs?\nAnswer:"
    for option, score in zip(OPTIONS, choice.scores, strict=True):
        wanted = _mean(tiny, before, option) - _mean(tiny, "Answer:", option)
        assert score == pytest.approx(wanted, abs=2e-3)
    assert choice.verdict_probability is None
    assert choice.cited == ()


def test_an_option_scores_the_same_wherever_it_stands(tiny):
    model = WhiteBoxChoiceModel(GuidedLanguageModel(tiny))
    turned = replace(QUESTION, options=OPTIONS[::-1], correct=(2,))

    first, second = model.choose(QUESTION, (PIECE,)), model.choose(turned, (PIECE,))

    assert first.scores == second.scores[::-1]
    assert OPTIONS[first.chosen[0]] == OPTIONS[::-1][second.chosen[0]]


def test_what_was_scored_for_one_task_is_not_scored_again(tiny):
    model = WhiteBoxChoiceModel(GuidedLanguageModel(tiny))
    one = model.choose(QUESTION, (PIECE,))
    fewer = replace(QUESTION, options=OPTIONS[:2], several=True)

    again = model.choose(fewer, (PIECE,))

    assert again.scores == one.scores[:2]
    assert again.milliseconds < one.milliseconds / 5


def test_several_are_those_above_the_mean_of_their_question():
    assert choose_by((1.0, -1.0, 0.5, 0.1), several=True) == (0, 2)
    assert choose_by((0.5, 0.5), several=True) == (0, 1)
    assert choose_by((-3.0, -1.0, -2.0), several=False) == (1,)


@pytest.mark.slow
def test_the_bundled_model_finds_the_option_that_its_evidence_states(bundled_model):
    model = WhiteBoxChoiceModel(GuidedLanguageModel(bundled_model))
    evidence = (
        make_evidence("The library is closed on Mondays.", entry_id=1),
        make_evidence("The reading room opens at nine o'clock.", entry_id=2),
    )
    days = ("Mondays", "Fridays", "Sundays")
    options = tuple(f"The library is closed on {day}" for day in days)
    question = replace(
        QUESTION,
        question="On which day is the library closed?",
        options=options,
        scored=options,
    )

    choice = model.choose(question, evidence)

    assert choice.chosen == (0,)
    assert choice.cited == (1,)
    assert choice.verdict_probability is not None
