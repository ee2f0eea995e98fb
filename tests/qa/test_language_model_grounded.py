import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.language_model.second_pass import Passing
from probes.language_model.taps import Part, Tap
from qa.language_models.grounded import GroundedLanguageModel, find
from qa.language_models.grounded_prompt import (
    answer_ids,
    prompt_ids,
    prompt_passing_of,
)
from qa.pipeline.activations import Capture, Place
from qa.pipeline.types import Prompt
from tests.probes import tiny_models
from tests.qa.test_language_model_output import HOSTILE
from tests.qa.values import make_evidence

FEES = (
    make_evidence("The Classic card has no annual fee."),
    make_evidence(
        "The Gold card costs 72 euros a year. It is charged in January.", entry_id=2
    ),
)
PROMPT = Prompt("What does the Gold card cost?", FEES, "en")
MIDDLE, LAST, INNER = Place(1), Place(2), Place(1, "ffn")


@pytest.fixture(scope="module")
def grounded():
    return GroundedLanguageModel(tiny_models.model("llama"))


def test_something_is_drafted_even_where_the_verdict_is_against_it(grounded):
    generation = grounded.generate(PROMPT)

    assert generation.answer_tokens >= 1
    assert 0 < generation.verdict_probability < 1
    assert generation.can_answer is (generation.verdict_probability >= 0.5)
    assert generation.least_log_probability <= generation.log_probability < 0
    assert 0 < generation.entropy <= np.log(320)
    # Random weights write no words of an entry: nothing is cited, so nothing is shown.
    assert generation.cited == ()
    assert generation.quotes == ()


def test_the_verdict_is_what_is_given_to_a_first_word(grounded):
    model = grounded.model
    context = model.read(prompt_ids(model.tokens, PROMPT))
    ends = sorted(model.tokens.end_ids)
    expected = 1 - float(context.next_log_probabilities[ends].exp().sum())

    assert grounded.generate(PROMPT).verdict_probability == pytest.approx(
        expected, abs=1e-5
    )


def test_what_is_kept_on_the_way_equals_a_second_pass(grounded):
    model = grounded.model
    capture = Capture(answer=(MIDDLE, LAST, INNER), prompt=(MIDDLE,))

    generation = grounded.generate(PROMPT, capture)

    trace, before = generation.trace, prompt_ids(model.tokens, PROMPT)
    ids = model.generate(
        model.read(before), max_tokens=64, least_tokens=1, stop=("\n",)
    ).ids
    passings = [
        Passing((*before, *ids), len(before), len(before) + len(ids)),
        prompt_passing_of(model.tokens, PROMPT),
    ]
    taps = [tiny_tap(place) for place in (MIDDLE, LAST, INNER)]
    read = model.read_activations(passings, taps)
    assert not trace.is_stopped
    assert len(ids) == generation.answer_tokens
    for place, tap in zip((MIDDLE, LAST, INNER), taps, strict=True):
        kept = trace.answer[place]
        assert kept.dtype == np.float32
        np.testing.assert_allclose(kept[: len(ids)], read[0][tap], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        trace.prompt[MIDDLE], read[1][taps[0]][0], rtol=1e-3, atol=1e-4
    )


def test_the_watch_sees_the_prompts_end_and_can_stop_the_answer(grounded):
    seen = []

    def watch(place, state):
        seen.append((place, state.shape))
        return False

    generation = grounded.generate(PROMPT, Capture(prompt=(MIDDLE, LAST), watch=watch))

    assert seen == [(MIDDLE, (32,))]
    assert generation.trace.is_stopped
    assert list(generation.trace.prompt) == [MIDDLE]
    assert generation.answer == ""
    assert generation.answer_tokens == 0
    assert generation.verdict_probability is None
    # The next question is not disturbed by the one that was stopped.
    assert grounded.generate(PROMPT).answer_tokens >= 1


def test_a_watch_that_lets_pass_changes_nothing(grounded):
    capture = Capture(prompt=(MIDDLE,), watch=lambda _place, _state: True)

    watched, plain = grounded.generate(PROMPT, capture), grounded.generate(PROMPT)

    assert watched.raw == plain.raw
    assert plain.trace.prompt == {}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_becomes_a_control_token(grounded, hostile):
    tokens = grounded.model.tokens
    prompt = Prompt(hostile, (make_evidence(hostile, question=hostile),), "en")

    ids = [*prompt_ids(tokens, prompt), *answer_ids(tokens, hostile)[:-1]]

    assert not tokens.control_ids & set(ids)
    assert tokens.decode(ids).count("\nAnswer:") >= 1


def test_without_evidence_nothing_is_written(grounded):
    with pytest.raises(ValueError, match="without evidence"):
        grounded.generate(Prompt("What?", (), "en"))


@pytest.mark.parametrize(
    ("words", "number", "sentences"),
    [
        ("72 euros", 2, "The Gold card costs 72 euros a year."),
        ("72 EUROS", 2, "The Gold card costs 72 euros a year."),
        ("no annual fee", 1, "The Classic card has no annual fee."),
        (
            "a year. It is charged",
            2,
            "The Gold card costs 72 euros a year. It is charged in January.",
        ),
    ],
)
def test_words_are_found_with_their_whole_sentences(words, number, sentences):
    found = find(words, FEES)

    assert found.number == number
    assert found.sentences == sentences
    assert found.words.casefold() == words.casefold()


@pytest.mark.parametrize("words", ["uro", "80 euros", "72 euros a month", "(", "["])
def test_words_that_stand_nowhere_whole_are_not_found(words):
    assert find(words, FEES) is None


def test_the_piece_with_the_very_letters_comes_before_another_case():
    pieces = (make_evidence("Who may apply?"), make_evidence("The WHO is in Geneva."))

    assert find("WHO", pieces).number == 2


@given(st.text(min_size=1, max_size=60), st.data())
def test_any_whole_words_of_a_text_are_found_in_a_sentence_of_it(text, data):
    words = text.split()
    if not words or "\ufffd" in text:
        return
    chosen = data.draw(st.sampled_from(words))
    found = find(chosen, (make_evidence(text),))

    if found is not None:
        assert found.sentences in text
        assert found.words in found.sentences


def tiny_tap(place):
    return Tap(place.layer, Part(place.part))
