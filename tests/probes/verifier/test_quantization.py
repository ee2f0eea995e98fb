"""Linear layers in int8, against the same in float32."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from probes.verifier import cross_encoder
from probes.verifier.card import BUNDLED, base_directory
from probes.verifier.cross_encoder import CrossEncoder, encoder_in_use
from probes.verifier.quantization import QuantizedLinear, can_compute, quantize
from probes.verifier.reading import Reader
from probes.verifier.scoring import load_network
from qa.inference.verifier import load_local_verifier

pytestmark = [
    pytest.mark.skipif(
        not can_compute(),
        reason="this processor or build of torch has no eight-bit product",
    ),
    pytest.mark.slow,
]


def layer(inputs: int, outputs: int, seed: int) -> tuple[nn.Linear, torch.Generator]:
    chance = torch.Generator().manual_seed(seed)
    plain = nn.Linear(inputs, outputs)
    plain.weight.data = torch.randn(outputs, inputs, generator=chance)
    plain.bias.data = torch.randn(outputs, generator=chance)
    return plain, chance


@given(st.integers(1, 70), st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**31))
def test_a_product_is_off_by_no_more_than_the_steps(inputs, outputs, tokens, seed):
    plain, chance = layer(inputs, outputs, seed)
    x = torch.randn(2, tokens, inputs, generator=chance)
    x *= 10 ** torch.randint(-3, 4, (2, tokens, 1), generator=chance)
    with torch.inference_mode():
        off = (QuantizedLinear(plain)(x) - plain(x)).abs()
    # Half a step of each factor times the other: an input's step is at most 2/255 of the
    # token's largest number, a weight's 1/63 of the output's largest.
    largest, heaviest = x.abs().amax(-1)[..., None], plain.weight.abs().amax(1)
    step_in, step_out = largest * 2 / 255, heaviest / 63
    bound = (
        step_in / 2 * plain.weight.abs().sum(1)
        + step_out / 2 * x.abs().sum(-1, keepdim=True)
        + inputs * step_in * step_out / 4
    )
    assert (off <= 1.01 * bound + 1e-4 * largest * heaviest).all()


def test_numbers_at_the_ends_of_their_range_do_not_overflow():
    """Pairs of products are added in sixteen bits."""
    plain, _ = layer(512, 8, seed=0)
    plain.weight.data = torch.ones(8, 512)
    with torch.inference_mode():
        assert QuantizedLinear(plain)(torch.ones(1, 512)) == pytest.approx(
            (512 + plain.bias.detach())[None], rel=0.01
        )


def test_one_channel_as_large_as_a_hundred_others_costs_other_tokens_nothing():
    plain, chance = layer(64, 32, seed=1)
    x = torch.randn(5, 64, generator=chance)
    rounded = QuantizedLinear(plain)
    with torch.inference_mode():
        before = rounded(x)
        x[0, 3] = 1_000.0
        moved = (rounded(x) - before)[1:]
    # The ends of the range may move, and with them a number by a step.
    step = x[1:].abs().amax(-1, keepdim=True) * 2 / 255
    assert (moved.abs() <= step * plain.weight.abs().sum(1)).all()


def test_a_token_of_zeros_becomes_the_bias():
    plain, _ = layer(16, 4, seed=2)
    with torch.inference_mode():
        assert torch.allclose(QuantizedLinear(plain)(torch.zeros(2, 16)), plain.bias)


def test_every_linear_layer_inside_is_rounded():
    network = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.GELU(), nn.Linear(4, 2)))
    quantize(network)
    assert not [each for each in network.modules() if type(each) is nn.Linear]


@pytest.mark.parametrize(
    ("precision", "is_rounded"), [("auto", True), ("float32", False)]
)
def test_a_cross_encoder_is_rounded_unless_full_precision_is_asked_for(
    precision, is_rounded, settings, monkeypatch
):
    settings.MODEL_PRECISION = precision
    if precision == "auto":
        monkeypatch.setattr(cross_encoder, "choose_dtype", lambda _: torch.float32)
    reader = Reader(base_directory())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        kept = CrossEncoder.to_fit(base_directory(), reader).kept()
    found = CrossEncoder.in_use(base_directory(), reader, kept)
    layers = [each for each in found.encoder.modules() if type(each) is QuantizedLinear]
    assert bool(layers) is is_rounded


@pytest.mark.verifier
def test_the_shipped_cross_encoder_tells_apart_what_it_did_in_full_precision(
    settings, monkeypatch
):
    questions = [
        "What does a replacement card cost?",
        "How do I set a new PIN?",
        "Is the branch open on Sunday?",
        "Who wrote Hamlet?",
    ]
    texts = [
        "A replacement card costs 10 euros.",
        "A replacement card comes within five days.",
        "You change your PIN at a cash machine.",
        "Never tell anybody your PIN.",
        "Branches open Monday to Friday.",
        "A lost card is blocked by the hotline.",
    ]
    card, _, kept = load_network(BUNDLED)
    reader = load_local_verifier()._reader

    def logits(precision: str) -> np.ndarray:
        settings.MODEL_PRECISION = precision
        cross = CrossEncoder.in_use(encoder_in_use()[0], reader, kept)
        is_rounded = any(type(each) is QuantizedLinear for each in cross.modules())
        assert is_rounded is (precision == "auto")
        with torch.inference_mode():
            read = reader.read([reader.windows("", "", text)[0] for text in texts])
            pairs = list(product(map(reader.question, questions), read))
            return cross.logits(pairs).double().numpy()

    assert card.encoder_sha256
    monkeypatch.setattr(cross_encoder, "choose_dtype", lambda _: torch.float32)
    rounded, full = logits("auto"), logits("float32")
    # Of one pair the rounding may move it by 2, one way or the other.
    assert np.abs(rounded - full).mean() < 0.1 * full.std()
    assert np.corrcoef(rounded, full)[0, 1] > 0.99
