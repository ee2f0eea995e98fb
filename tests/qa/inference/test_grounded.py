import numpy as np
import pytest

from probes.language_model.second_pass import Passing
from probes.taps import Part, Tap
from qa.inference.grounded import GroundedLanguageModel
from qa.inference.grounded_form import answer_ids, prompt_ids
from qa.pipeline.language_model import Capture, Prompt
from tests.probes import tiny_models
from tests.qa.inference.test_server_reply import HOSTILE
from tests.qa.pipeline.values import make_evidence

FEES = (
    make_evidence("The Classic card has no annual fee."),
    make_evidence(
        "The Gold card costs 72 euros a year. It is charged in January.", entry_id=2
    ),
)
PROMPT = Prompt("What does the Gold card cost?", FEES, "en")
MIDDLE, LAST, INNER = Tap(1), Tap(2), Tap(1, Part.FFN)


@pytest.fixture(scope="module")
def grounded():
    return GroundedLanguageModel(tiny_models.model("llama", 2_048))


def test_what_is_written_stands_in_an_entry_whatever_the_weights(grounded):
    generation = grounded.generate(PROMPT)

    (number,) = generation.cited
    text = FEES[number - 1].text
    assert generation.short_answer in generation.answer
    assert generation.answer in text
    assert generation.quotes == ((number, generation.answer),)
    assert "".join(generation.tokens).strip() == generation.short_answer
    assert len(generation.tokens) == generation.answer_tokens
    assert 0 < generation.verdict_probability < 1
    assert generation.can_answer is (generation.verdict_probability >= 0.5)
    assert generation.least_log_probability <= generation.log_probability < 0
    assert 0 < generation.entropy <= np.log(320)


def test_willingness_is_what_is_given_to_a_first_word(grounded):
    model = grounded.model
    context = model.read(prompt_ids(model.tokens, PROMPT))
    ends = sorted(model.tokens.end_ids)
    expected = 1 - float(context.next_log_probabilities[ends].exp().sum())

    assert grounded.generate(PROMPT).willingness == pytest.approx(expected, abs=1e-5)


def test_what_is_kept_on_the_way_equals_a_second_pass(grounded):
    model = grounded.model
    capture = Capture(answer=(MIDDLE, LAST, INNER), prompt=(MIDDLE,))

    generation = grounded.generate(PROMPT, capture)

    trace, before = generation.trace, prompt_ids(model.tokens, PROMPT)
    ids = model.tokens.encode_text("".join(generation.tokens))
    passings = [
        Passing((*before, *ids), len(before), len(before) + len(ids)),
        Passing.of_last(prompt_ids(model.tokens, PROMPT)),
    ]
    taps = [MIDDLE, LAST, INNER]
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
