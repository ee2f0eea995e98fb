"""Linear layers quantised to int8, for processors that do not compute in bfloat16.

Weights are scaled for each output and inputs for each token, by their largest number:
in some tokens a few channels of a layer's inputs are many times as large as the others,
and one step size for all would leave the rest a few bits. This is "per-token dynamic"
quantisation as in Yao et al., "ZeroQuant" (2022), without its distillation.
"""

import warnings
from typing import Final

import torch
from torch import nn

_ENGINE: Final = "fbgemm"
# AVX2 adds pairs of products in sixteen bits; with seven-bit weights none overflows:
# 2 * 255 * 63 < 2 ** 15.
_LARGEST: Final = 63
_TINY: Final = 1e-12


def can_compute() -> bool:
    """Return whether this build of torch multiplies int8 faster than floats here.

    It uses FBGEMM, which is a fifth faster than oneDNN on two processors without
    AVX-512. torch plans to drop the tensors that pass weights to it: layers then stay
    as they are.
    """
    return (
        torch.cpu.get_capabilities().get("avx2", False)
        and _ENGINE in torch.backends.quantized.supported_engines
        and hasattr(torch, "quantize_per_channel")
    )


class QuantizedLinear(nn.Module):
    """An int8 approximation of a float32 `nn.Linear`, on the CPU; not trainable."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach()
        step = weight.abs().amax(1).clamp_min(_TINY) / _LARGEST
        zeros = torch.zeros(len(step), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.quantize_per")
            quantized = torch.quantize_per_channel(
                weight, step.double(), zeros, axis=0, dtype=torch.qint8
            )
        self.weight = torch.ops.quantized.linear_prepack(quantized, None)
        self.bias = layer.bias.detach()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (..., outputs) of (..., inputs)."""
        largest = x.abs().amax(-1, keepdim=True).clamp_min(_TINY)
        product: torch.Tensor = torch.ops.quantized.linear_dynamic(
            x / largest, self.weight, reduce_range=False
        )
        return torch.addcmul(self.bias, product, largest)


def quantize(network: nn.Module) -> None:
    """Replace the linear layers in `network`, all with a bias, by quantised ones."""
    for parent in list(network.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear:
                setattr(parent, name, QuantizedLinear(layer))
