"""Rows written side by side say what each would alone."""

import pytest
from scipy.special import softmax

from probes.exceptions import LayerError, TooManyTokensError
from probes.taps import Tap
from tests.probes import tiny_models

PREFIX = "Say something.\n"
ROWS = ("a", "What is it?", "It costs 12 euros a year, and then")


@pytest.fixture(scope="module", params=tiny_models.FAMILIES)
def model(request):
    return tiny_models.model(request.param)


def rows_of(model, texts=ROWS):
    return [model.tokens.encode_text(text) for text in texts]


def prefix_of(model):
    return model.read_prefix(model.tokens.encode_text(PREFIX))


def test_rows_of_different_lengths_say_what_each_says_alone(model):
    prefix = prefix_of(model)

    written = model.write_each(rows_of(model), prefix, max_tokens=12)

    for row, found in zip(rows_of(model), written, strict=True):
        alone = model.generate(model.read(row, prefix), max_tokens=12)
        assert found.text == alone.text
        assert found.finished == alone.finished
        own = found.log_probabilities[: len(alone.ids)]
        assert own == pytest.approx(alone.log_probabilities, abs=1e-4)


def test_tokens_are_weighed_as_after_each_row_alone(model):
    prefix, options = prefix_of(model), [65, 66, 67]

    shares = model.weigh_each(rows_of(model), options, prefix)

    for row, found in zip(rows_of(model), shares, strict=True):
        after = model.read(row, prefix)
        alone = model.score_all([[number] for number in options], after)
        totals = [scored.total for scored in alone]
        assert found == pytest.approx(softmax(totals), abs=1e-5)


def test_rows_are_looked_at_as_each_alone_no_further_than_the_deepest_tap(model):
    prefix, taps = prefix_of(model), [Tap(0), Tap(1)]

    with model.metered() as meter:
        found = model.look_each(rows_of(model), prefix, taps=taps)

    assert meter.prompt_passes <= len(ROWS)
    for row, states in zip(rows_of(model), found, strict=True):
        alone = model.look(row, prefix, taps=taps).states
        assert states.keys() == alone.keys()
        for tap in taps:
            assert states[tap] == pytest.approx(alone[tap], abs=1e-4)
    with pytest.raises(LayerError):
        model.look_each(rows_of(model), prefix, taps=[Tap(9)])


def test_the_same_seed_draws_the_same_words_and_another_seed_others():
    model = tiny_models.model("llama")
    rows, prefix = rows_of(model), prefix_of(model)

    def drawn(seed):
        written = model.write_each(
            rows, prefix, max_tokens=20, temperature=1.0, seed=seed
        )
        return [found.text for found in written]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_a_stop_ends_its_row_alone_and_is_not_part_of_it():
    model = tiny_models.model("llama")
    rows, prefix = rows_of(model), prefix_of(model)
    whole = [w.text for w in model.write_each(rows, prefix, max_tokens=12)]
    stop = whole[0][2]

    cut = model.write_each(rows, prefix, max_tokens=12, stop=[stop])

    assert cut[0].text == whole[0][: whole[0].index(stop)]
    assert cut[0].finished
    for found, text in zip(cut, whole, strict=True):
        assert found.text == text.partition(stop)[0]


def test_a_row_that_outgrows_the_context_is_refused():
    model = tiny_models.model("llama", context_length=20)

    with pytest.raises(TooManyTokensError):
        model.write_each([[65] * 10], model.read([65] * 5), max_tokens=30)
