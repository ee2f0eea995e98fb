"""How well the tokens of a question are found among those of an entry.

Each token of the question counts by its most similar token of the entry, and by how
informative it is (Khattab and Zaharia, "ColBERT", SIGIR 2020; here with inverse document
frequencies). All entries are compared in a single product, so it is fast enough to
choose among many more of them than the nets and the cross-encoder could read.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from .reading import Tokens


def likeness(
    question: Tokens, windows: Sequence[Tokens], weights: torch.Tensor
) -> NDArray[np.float64]:
    """Return the likeness of each window to the question, in [-1, 1]: (windows,).

    The first and the last token, which are the same in every text, do not count. A
    question or a window without any other has a likeness of 0.

    Args:
        weights: How informative each token of the vocabulary is, above 0.
    """
    asked, found = _own(question.states), [_own(each.states) for each in windows]
    lengths = [len(each) for each in found]
    if not len(asked) or not sum(lengths):
        return np.zeros(len(windows))
    similar = _directions(asked) @ _directions(np.concatenate(found)).T
    window_of = torch.from_numpy(np.repeat(np.arange(len(windows)), lengths))
    best = torch.zeros(len(asked), len(windows)).scatter_reduce(
        1, window_of.expand(len(asked), -1), similar, "amax", include_self=False
    )
    telling = weights[torch.from_numpy(_own(question.ids)).long()]
    likenesses: NDArray[np.float64] = (telling @ best / telling.sum()).double().numpy()
    return likenesses


def _own(tokens: NDArray[np.generic]) -> NDArray[np.generic]:
    return tokens[1:-1]


def _directions(states: NDArray[np.generic]) -> torch.Tensor:
    return functional.normalize(torch.from_numpy(states).float(), dim=-1)
