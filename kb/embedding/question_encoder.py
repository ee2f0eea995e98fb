"""Linear layers whose weights lie as oneDNN multiplies with them.

For the dozen rows of a question, torch's own product spends much of its time bringing
the weights into the order in which it reads them. Here that is done once. Measured on
two cores of an EPYC, all of MiniLM's layers: 14 rows 7.3 -> 4.5 ms, 640 rows 160 -> 125 ms.
The result moves by float32's rounding (1e-7 in a vector), as from one processor to another.
"""

import logging
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Normalize,
    Pooling,
    Transformer,
)
from torch.nn import functional
from transformers import BertModel

_MACHINES = ("x86_64", "AMD64")


def can_pack() -> bool:
    """Tell whether this build of torch has what packing needs, on this machine.

    The two operations are those that torch's own compiler emits for a linear layer.
    """
    return (
        platform.machine() in _MACHINES
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # the library has no hints
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


class PackedLinear(torch.nn.Module):
    """Computes what a `torch.nn.Linear` in float32 on a CPU does; cannot be trained.

    Attributes:
        weight: The packed weight. No parameter: moving or casting the module leaves it,
            but who looks at a layer's dtype or device still finds them here.
    """

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features = layer.in_features
        self.out_features = layer.out_features
        weight = layer.weight.detach().contiguous()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight)
        bias: torch.Tensor | None = layer.bias  # the library's hint forgets None
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x W^T + b."""
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, "none", [], ""
        )
        return product


def pack(model: torch.nn.Module) -> None:
    """Replace the plain float32 linear layers inside `model` by packed ones.

    Layers of a class of their own stay: they may do more than multiply.
    """
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is torch.nn.Linear and layer.weight.dtype == torch.float32:
                setattr(parent, name, PackedLinear(layer))


def side_by_side(layers: Sequence[torch.nn.Linear | PackedLinear]) -> torch.nn.Module:
    """Return one layer that gives what `layers` give, one beside the other.

    One product of three times the width takes less than three. The weights are copied.
    """
    rows = sum(layer.out_features for layer in layers)
    joint = torch.nn.Linear(layers[0].in_features, rows)
    weights = [layer.weight.detach() for layer in layers]
    biases = [
        torch.zeros(layer.out_features) if layer.bias is None else layer.bias.detach()
        for layer in layers
    ]
    joint.weight.data = torch.cat([w.to_dense() if w.is_mkldnn else w for w in weights])
    joint.bias.data = torch.cat(biases)
    parent = torch.nn.Sequential(joint)
    lay_out_for_short_texts(parent)
    return parent[0]


def lay_out_for_short_texts(model: torch.nn.Module) -> None:
    """Store a CPU's weights as the product with a question's dozen tokens reads them.

    Where they cannot be packed they are at least kept turned: a linear layer multiplies
    by the transposed weight, and for so few rows turning it costs as much as the product.
    """
    if can_pack():
        pack(model)
        return
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            turned = layer.weight.detach().t().contiguous().t()
            layer.weight = torch.nn.Parameter(turned, requires_grad=False)


# A BERT's vector for one short text, without what the library does for every other
# case.


logger = logging.getLogger(__name__)

_TOLERANCE = 1e-5  # a hundred times what the order of additions moves
_PROBES = ("Fee?", "What does it cost to have the card replaced while I'm abroad? " * 4)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's parts in the order in which they are used."""

    joint: Any  # query, key and value in one product
    mixed: Any
    first_norm: Any
    widened: Any
    narrowed: Any
    second_norm: Any

    @classmethod
    def of(cls, layer: Any) -> Self:  # noqa: ANN401  # torch types no attributes
        own = layer.attention.self
        return cls(
            joint=side_by_side([own.query, own.key, own.value]),
            mixed=layer.attention.output.dense,
            first_norm=layer.attention.output.LayerNorm,
            widened=layer.intermediate.dense,
            narrowed=layer.output.dense,
            second_norm=layer.output.LayerNorm,
        )


class QuestionEncoder:
    """Computes what a sentence-transformers model does for one text, up to its length.

    Holds the model's own weights, but for those of query, key and value, which are
    multiplied in one product (a copy: 10 MiB for MiniLM).
    """

    def __init__(self, bert: BertModel) -> None:
        embeddings = bert.embeddings
        self._heads = int(bert.config.num_attention_heads)
        self._words = embeddings.word_embeddings.weight.detach()
        # One text is all of the first kind and begins at the first position.
        self._places = (
            embeddings.position_embeddings.weight
            + embeddings.token_type_embeddings.weight[0]
        ).detach()
        self._norm = embeddings.LayerNorm
        layers: Iterable[Any] = bert.encoder.layer
        self._layers = [_Layer.of(layer) for layer in layers]

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the mean of the tokens' vectors, of shape (width,), of any length.

        Args:
            ids: The text's tokens with those that BERT puts around it, of shape (n,).
        """
        tokens = len(ids)
        # `forward` throughout: the layers have no hooks, which a call would look for.
        x = self._norm.forward(self._words[ids] + self._places[:tokens])  # (n, width)
        for layer in self._layers:
            # (n, 3 width) -> query, key and value, each of shape (1, heads, n, width / heads)
            split = layer.joint.forward(x).view(1, tokens, 3, self._heads, -1)
            query, key, value = split.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(query, key, value)
            seen = seen[0].transpose(0, 1).reshape(tokens, -1)
            x = layer.first_norm.forward(layer.mixed.forward(seen) + x)
            wide = functional.gelu(layer.widened.forward(x))
            x = layer.second_norm.forward(layer.narrowed.forward(wide) + x)
        return x.mean(0)


def question_encoder(model: SentenceTransformer) -> QuestionEncoder | None:
    """Return an encoder that gives the same vectors as `model`, up to their length.

    Returns:
        None where the model is none of the kind that is known here, or where what it
        gives for two texts differs by more than rounding: the library's way is right.
    """
    if not _is_known(model):
        return None
    bert: Any = model[0].auto_model
    encoder = QuestionEncoder(bert)
    with torch.inference_mode():
        for text in _PROBES:
            tokens = model.preprocess([text], task="query")
            expected = model(dict(tokens), task="query")["sentence_embedding"][0]
            found = functional.normalize(encoder(tokens["input_ids"][0]), dim=0)
            apart = (found - functional.normalize(expected, dim=0)).abs().max()
            if not apart < _TOLERANCE:
                logger.warning(
                    "Questions are embedded the library's way, some milliseconds "
                    "slower: the short one differs by %.2g.",
                    apart,
                )
                return None
    return encoder


def _is_known(model: SentenceTransformer) -> bool:
    """Tell whether the model is a plain BERT on the CPU whose tokens are averaged."""
    kinds = [type(part) for part in model]
    if kinds not in ([Transformer, Pooling], [Transformer, Pooling, Normalize]):
        return False
    bert: Any = model[0].auto_model
    pooling: Any = model[1]
    return bool(
        type(bert) is BertModel
        and model.device.type == "cpu"
        and bert.dtype == torch.float32
        and bert.config.hidden_act == "gelu"
        and not bert.config.is_decoder
        and pooling.pooling_mode == "mean"
        and pooling.include_prompt
        and all(_is_plain(layer) for layer in bert.encoder.modules())
    )


def _is_plain(layer: torch.nn.Module) -> bool:
    """Tell whether calling the layer does no more than its class says."""
    is_derived = (
        isinstance(layer, torch.nn.Linear) and type(layer) is not torch.nn.Linear
    )
    return not (is_derived or layer._forward_hooks or layer._forward_pre_hooks)
