"""How well the tokens of a question are found among those of an entry.

Each token of the question counts by its most similar token of the entry, and by how
much it tells (Khattab and Zaharia, "ColBERT", SIGIR 2020). Of an entry only the states
are needed, which are kept, so that all entries are compared in a single product: fast
enough to choose among many more of them than the nets and the cross-encoder could read.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from .reading import Side, Tokens


class LateInteraction(nn.Module):
    """The fitted part: what each token of a question looks for, and how much it tells.

    Before a fit a token looks for its own state, and tells as much as it is rare.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.sought = nn.Linear(width, width, bias=False)
        # Logarithms: of a factor of each token's rarity, and of what turns a likeness
        # into a logit, which only a fit needs.
        self.factor = nn.Linear(width, 1, bias=False)
        self.sharpness = nn.Parameter(torch.tensor(3.0))
        nn.init.eye_(self.sought.weight)
        nn.init.zeros_(self.factor.weight)

    def forward(
        self, question: Side, entry: Side, rarity: torch.Tensor
    ) -> torch.Tensor:
        """Return the likeness of each pair as a logit, for a fit: (pairs,)."""
        telling = self._telling(question.states, rarity[question.ids]) * _own(question)
        near = self._directions(question.states) @ functional.normalize(
            entry.states, dim=-1
        ).transpose(1, 2)
        best = near.masked_fill(_own(entry)[:, None] == 0, -1.0).amax(2)
        found = (telling * best).sum(1) / telling.sum(1).clamp_min(1e-6)
        return found * self.sharpness.exp()

    def likeness(
        self, question: Tokens, windows: Sequence[Tokens], rarity: torch.Tensor
    ) -> NDArray[np.float64]:
        """Return the likeness of each window to the question, in [-1, 1]: (windows,).

        The first and the last token, which are the same in every text, do not count. A
        question or a window without any other has a likeness of 0.

        Args:
            rarity: How informative each token of the vocabulary is, above 0.
        """
        asked = torch.from_numpy(question.states[1:-1]).float()
        found = [each.states[1:-1] for each in windows]
        lengths = [len(each) for each in found]
        if not len(asked) or not sum(lengths):
            return np.zeros(len(windows))
        states = torch.from_numpy(np.concatenate(found)).float()
        near = self._directions(asked) @ functional.normalize(states, dim=-1).T
        window_of = torch.from_numpy(np.repeat(np.arange(len(windows)), lengths))
        best = torch.zeros(len(asked), len(windows)).scatter_reduce(
            1, window_of.expand(len(asked), -1), near, "amax", include_self=False
        )
        telling = self._telling(
            asked, rarity[torch.from_numpy(question.ids[1:-1]).long()]
        )
        likenesses: NDArray[np.float64] = (
            (telling @ best / telling.sum()).double().numpy()
        )
        return likenesses

    def _directions(self, states: torch.Tensor) -> torch.Tensor:
        return functional.normalize(self.sought(states), dim=-1)

    def _telling(self, states: torch.Tensor, rarity: torch.Tensor) -> torch.Tensor:
        factor: torch.Tensor = self.factor(states).squeeze(-1).exp()
        return rarity * factor


def _own(side: Side) -> torch.Tensor:
    """Return the mask without the first and the last token of each text."""
    own = side.mask.clone()
    own[:, 0] = 0
    own[torch.arange(len(own)), side.mask.sum(1).long() - 1] = 0
    return own
