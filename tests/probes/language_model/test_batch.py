"""Rows written side by side say what each would alone."""

import pytest
import torch
from scipy.special import softmax

from probes.exceptions import LayerError, TooManyTokensError
from probes.language_model import Tokens, WhiteBoxModel
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_rows_are_read_as_each_alone_in_any_precision_and_place(family, device, dtype):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("There is no CUDA here.")
    network = tiny_models.network(family).to(device=device, dtype=dtype)  # type: ignore[call-arg]  # a decorator hides the real signature
    model = WhiteBoxModel(
        network, Tokens(tiny_models.tokenizer()), name=family, fingerprint="0" * 64
    )
    prefix, taps, options = prefix_of(model), [Tap(1)], [65, 66, 67]

    found = model.look_each(rows_of(model), prefix, taps=taps)
    shares = model.weigh_each(rows_of(model), options, prefix)
    written = model.write_each(rows_of(model), prefix, max_tokens=4)

    near = 1e-3 if dtype is torch.float32 else 0.1
    for row, states, weighed in zip(rows_of(model), found, shares, strict=True):
        alone = model.look(row, prefix, taps=taps).states
        assert states[taps[0]] == pytest.approx(alone[taps[0]], abs=near)
        after = model.read(row, prefix)
        totals = [one.total for one in model.score_all([[n] for n in options], after)]
        assert weighed == pytest.approx(softmax(totals), abs=near)
    assert all(len(one.log_probabilities) >= 4 for one in written)


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
