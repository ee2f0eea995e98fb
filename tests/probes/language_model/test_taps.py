"""Activations are the network's own, of the asked blocks alone, and nothing is left."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from probes.exceptions import LayerError, TooManyTokensError
from probes.language_model.network import Network
from probes.language_model.second_pass import Passing, read_activations
from probes.language_model.taps import PassStopped, decoder_blocks, tapped
from probes.language_model.tokens import Tokens
from probes.taps import Part, Tap
from tests.probes import tiny_models

ROW = tuple(range(40, 75))
LAYERS = 3


@pytest.fixture(params=tiny_models.FAMILIES)
def network(request) -> Network:
    tokens = Tokens(tiny_models.tokenizer())
    return Network(tiny_models.network(request.param), tokens, name=request.param)


def hidden_states(network: Network, ids) -> list[np.ndarray]:
    """The library's own record: of each block its output, (len(ids), width)."""
    with torch.inference_mode():
        out = network.module(
            input_ids=torch.tensor([list(ids)]),
            output_hidden_states=True,
            use_cache=False,
        )
    # The last one is after the final norm, which is no block's output.
    return [state[0].float().numpy() for state in out.hidden_states[1:-1]]


def _remember(reached: list[int], index: int, *_given: object) -> None:
    reached.append(index)


def run(network: Network, ids=ROW) -> None:
    with torch.inference_mode():
        network.module(input_ids=torch.tensor([list(ids)]), use_cache=False)


def test_a_block_tap_reads_what_the_library_records(network):
    taps = [Tap(layer) for layer in range(LAYERS - 1)]

    with tapped(network.module, taps) as flow:
        run(network)

    for tap, expected in zip(taps, hidden_states(network, ROW), strict=True):
        np.testing.assert_allclose(flow.row(tap, 0, slice(None)), expected, atol=1e-5)


def test_the_last_blocks_output_is_before_the_final_norm(network):
    last = Tap(LAYERS - 1)
    with tapped(network.module, [last]) as flow:
        run(network)
    before = torch.tensor(flow.row(last, 0, slice(None)))[None]

    norm = next(
        part
        for name, part in network.module.base_model.named_children()
        if name in ("norm", "ln_f")
    )
    with torch.inference_mode():
        logits = network.module(input_ids=torch.tensor([list(ROW)])).logits
        again = network.module.lm_head(norm(before))
        cap = getattr(network.configuration, "final_logit_softcapping", None)
        again = torch.tanh(again / cap) * cap if cap else again
    np.testing.assert_allclose(again, logits, atol=1e-4)


def test_an_ffn_tap_reads_what_the_down_projection_is_given(network):
    tap = Tap(1, Part.FFN)
    mlp: Any = decoder_blocks(network.module)[1].mlp
    given: list[torch.Tensor] = []
    handle = mlp.register_forward_pre_hook(lambda _m, args: given.append(args[0]))

    with tapped(network.module, [tap]) as flow:
        run(network)
    handle.remove()

    if hasattr(mlp, "gate_proj"):
        with torch.inference_mode():
            inside = mlp.act_fn(mlp.gate_proj(given[0])) * mlp.up_proj(given[0])
    else:
        with torch.inference_mode():
            inside = mlp.act(mlp.c_fc(given[0]))
    np.testing.assert_allclose(flow.row(tap, 0, slice(None)), inside[0], atol=1e-5)


def test_a_truncated_pass_computes_nothing_behind_its_deepest_tap(network):
    reached: list[int] = []
    blocks = decoder_blocks(network.module)
    handles = [
        block.register_forward_pre_hook(partial(_remember, reached, i))
        for i, block in enumerate(blocks)
    ]

    with (
        tapped(network.module, [Tap(0), Tap(1)], truncate=True) as flow,
        pytest.raises(PassStopped),
    ):
        run(network)

    assert reached == [0, 1]
    assert flow.is_stopped
    assert set(flow.at) == {Tap(0), Tap(1)}
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_watcher_decides_in_mid_pass_whether_it_goes_on(
    network: Network, goes_on: bool
) -> None:
    seen: list[torch.Size] = []

    def watch(_tap: Tap, values: torch.Tensor) -> bool:
        seen.append(values.shape)
        return goes_on

    with tapped(network.module, [Tap(1)], watch=watch) as flow:
        if goes_on:
            run(network)
        else:
            with pytest.raises(PassStopped):
                run(network)

    assert flow.is_stopped is not goes_on
    assert seen == [torch.Size([1, len(ROW), 32])]


def test_steering_moves_every_position_of_its_block_and_ends_with_the_context(network):
    direction = torch.linspace(-1, 1, 32)
    before = hidden_states(network, ROW)[0]

    with tapped(network.module, [Tap(0)], steering={0: direction}) as flow:
        run(network)
    steered = flow.row(Tap(0), 0, slice(None))

    np.testing.assert_allclose(steered - before, np.tile(direction, (len(ROW), 1)), atol=1e-5)  # fmt: skip
    np.testing.assert_array_equal(hidden_states(network, ROW)[0], before)


def test_no_hook_is_left_even_when_the_pass_fails(network):
    def hooks() -> int:
        return sum(
            len(part._forward_hooks) + len(part._forward_pre_hooks)
            for part in network.module.modules()
        )

    before = hooks()
    with pytest.raises(IndexError), tapped(network.module, [Tap(0), Tap(1, Part.FFN)]):
        run(network, [10**6])

    assert hooks() == before


@pytest.mark.parametrize("layer", [-1, LAYERS])
def test_a_block_that_does_not_exist_is_refused(network, layer):
    with (
        pytest.raises(LayerError, match=f"Layer {layer} does not exist"),
        tapped(network.module, [Tap(layer)]),
    ):
        pass


def test_a_batch_of_mixed_lengths_reads_what_each_text_reads_alone(network):
    texts = [
        Passing(ROW, 20, 35),
        Passing(ROW[:7], 2, 7),
        Passing(ROW[5:20], 0, 1),
        Passing(ROW[3:], 31, 32),
    ]
    taps = [Tap(1), Tap(0, Part.FFN)]

    together = dict(enumerate(read_activations(network, texts, taps)))

    assert sorted(together) == [0, 1, 2, 3]
    for index, text in enumerate(texts):
        (alone,) = read_activations(network, [text], taps)
        expected = hidden_states(network, text.ids)[1][text.start : text.end]
        np.testing.assert_allclose(together[index][Tap(1)], expected, atol=1e-4)
        for tap in taps:
            np.testing.assert_allclose(together[index][tap], alone[tap], atol=1e-4)


def test_texts_that_do_not_fit_one_pass_are_read_in_several(network, monkeypatch):
    monkeypatch.setattr("probes.language_model.second_pass._POSITIONS_AT_ONCE", 40)
    texts = [Passing(ROW[:length], 0, length) for length in (35, 3, 20, 20, 1)]

    found = dict(enumerate(read_activations(network, texts, [Tap(1)])))

    assert [len(found[index][Tap(1)]) for index in range(5)] == [35, 3, 20, 20, 1]


def test_a_text_longer_than_the_context_is_refused(network):
    long = Passing((5,) * (network.context_length + 1), 0, 1)
    with pytest.raises(TooManyTokensError, match="fit"):
        read_activations(network, [long], [Tap(0)])


def test_no_text_gives_nothing(network):
    assert read_activations(network, [], [Tap(0)]) == []


@pytest.mark.parametrize(("start", "end"), [(3, 3), (-1, 2), (0, 9)])
def test_an_impossible_span_is_refused(start, end):
    with pytest.raises(ValueError, match="positions"):
        Passing((1, 2, 3), start, end)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
@pytest.mark.parametrize("ends", [True, False])
def test_activations_kept_while_writing_are_those_of_a_second_pass(family, ends):
    model = tiny_models.model(family)
    prompt, end = model.read(ROW), min(model.tokens.end_ids)
    taps = [Tap(1), Tap(2), Tap(0, Part.FFN)]
    script = [50, 60, 70, 80, end]

    written = model.generate(
        prompt,
        max_tokens=5 if ends else 4,
        allowed=lambda ids: [script[len(ids)]],
        taps=taps,
        with_end=True,
    )

    answer = tuple(script) if ends else tuple(script[:4])
    text = Passing((*ROW, *answer), len(ROW), len(ROW) + len(answer))
    (second,) = read_activations(model._network, [text], taps)
    assert (written.ids, written.finished) == ((50, 60, 70, 80), ends)
    for tap in taps:
        np.testing.assert_allclose(written.activations[tap], second[tap][:4], atol=1e-4)
    assert set(written.end) == (set(taps) if ends else set())
    for tap, end_of in written.end.items():
        np.testing.assert_allclose(end_of, second[tap][4:], atol=1e-4)


def test_an_end_that_is_not_asked_for_is_not_read(monkeypatch):
    model, passes = tiny_models.model("llama"), []
    own = Network.after

    def counted(self, rows, context, *, keep):
        passes.append(len(rows[0]))
        return own(self, rows, context, keep=keep)

    prompt, end = model.read(ROW), min(model.tokens.end_ids)
    monkeypatch.setattr(Network, "after", counted)
    written = model.generate(
        prompt, max_tokens=5, allowed=lambda ids: [[50, end][len(ids)]], taps=[Tap(1)]
    )

    assert (written.ids, written.finished, written.end) == ((50,), True, {})
    assert written.activations[Tap(1)].shape[0] == 1
    assert passes == [1]


def test_nothing_is_kept_while_writing_without_taps():
    model = tiny_models.model("llama")
    assert model.generate(model.read(ROW), max_tokens=3).activations == {}
