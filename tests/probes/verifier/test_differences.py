"""Fitted layers as files: what is kept of a difference, and what of all else."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from probes.verifier.differences import packed, unpacked


@given(st.integers(0, 2**32 - 1), st.floats(1e-4, 0.1))
def test_sixteen_steps_a_row_keep_nearly_all_of_a_change(seed, size):
    draw = torch.Generator().manual_seed(seed)
    base = {"layer.weight": torch.randn(24, 32, generator=draw)}
    change = size * torch.randn(24, 32, generator=draw)
    own = {
        "layer.weight": base["layer.weight"] + change,
        "layer.bias": torch.randn(24, generator=draw),
        "head.weight": torch.randn(3, 24, generator=draw),
    }
    kept = packed(own, base)
    assert kept["layer.weight.difference"].shape == (24, 16)
    found = unpacked(kept, base)
    assert found.keys() == own.keys()
    lost = (found["layer.weight"] - own["layer.weight"]).norm() / change.norm()
    assert lost < 0.2  # 4 % of its energy at worst
    for name in ("layer.bias", "head.weight"):
        assert torch.equal(found[name], own[name].half().float())
    # What was read and is written again is the same.
    again = unpacked(packed(found, base), base)
    assert all(torch.allclose(again[name], found[name], atol=1e-6) for name in own)


def test_rows_that_did_not_change_stay_as_they_are():
    base = {"layer.weight": torch.randn(4, 8)}
    assert torch.equal(
        unpacked(packed(base, base), base)["layer.weight"], base["layer.weight"]
    )
