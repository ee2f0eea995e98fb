"""The verifier's network: the tokens of a question compared with those of an entry.

A small net aligns every token of the one side with the other, compares each with what it
was aligned with, and sums up (Parikh et al., "A Decomposable Attention Model for Natural
Language Inference", EMNLP 2016; late interaction as in Khattab and Zaharia, "ColBERT", SIGIR
2020), beside the cosines of the embedder's own sentence vectors.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch
from torch import nn
from torch.nn import functional

from .reading import ASKED, MAX_QUESTION, NEVER, PARTS, WHOLE, Side, through

_WIDTH: Final = 96
_HIDDEN: Final = 96
_FACTS: Final = 14


class Interaction(nn.Module):
    """A logit that the entry answers the question, for each pair."""

    weights: torch.Tensor

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        # How telling each token is: the logarithm of its inverse document frequency,
        # scaled to a mean of about 1. Set before the fit and never fitted.
        self.register_buffer("weights", torch.ones(vocabulary))
        self.project = nn.Linear(width, _WIDTH)
        self.part = nn.Embedding(PARTS, _WIDTH)
        self.sharpness = nn.Parameter(torch.tensor(3.0))
        self.compare = nn.Sequential(
            nn.Linear(4 * _WIDTH + 4, _HIDDEN), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(_HIDDEN, _HIDDEN), nn.GELU(),
        )  # fmt: skip
        self.matters = nn.Linear(_WIDTH + 3, 1)
        self.sum_up = nn.Sequential(
            nn.Linear(4 * _HIDDEN + _FACTS, _HIDDEN), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(_HIDDEN, 1),
        )  # fmt: skip

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return logits of shape (pairs,)."""
        ours = functional.normalize(question.states, dim=-1)
        theirs = functional.normalize(entry.states, dim=-1)
        alike = ours @ theirs.transpose(1, 2)  # (pairs, question tokens, entry tokens)
        both = question.mask[:, :, None] * entry.mask[:, None, :]
        same = (question.ids[:, :, None] == entry.ids[:, None, :]).float() * both
        one = self.project(question.states)
        other = self.project(entry.states) + self.part(entry.parts)
        near = functional.normalize(one, dim=-1) @ functional.normalize(
            other, dim=-1
        ).transpose(1, 2)
        aligned = (near + alike) * self.sharpness.exp() / 4 + (1 - both) * NEVER
        best, exact = (alike * both).amax(2), same.amax(2)
        best_back, exact_back = (alike * both).amax(1), same.amax(1)
        compared = self._compared(
            one, aligned.softmax(2) @ other, best, exact, question
        )
        back = self._compared(
            other,
            aligned.transpose(1, 2).softmax(2) @ one,
            best_back,
            exact_back,
            entry,
        )
        facts = self._facts(question, entry, best, exact, best_back)
        logits: torch.Tensor = self.sum_up(
            torch.cat(
                [
                    self._pooled(one, compared, best, exact, question),
                    self._pooled(other, back, best_back, exact_back, entry),
                    facts,
                ],
                1,
            )
        )
        return logits.squeeze(-1)

    def _compared(
        self,
        own: torch.Tensor,
        found: torch.Tensor,
        best: torch.Tensor,
        exact: torch.Tensor,
        side: Side,
    ) -> torch.Tensor:
        telling = self.weights[side.ids]
        numbers = torch.stack([best, exact, telling, telling * (1 - exact)], -1)
        parts = [own, found, (own - found).abs(), own * found, numbers]
        compared: torch.Tensor = self.compare(torch.cat(parts, -1))
        return compared

    def _pooled(
        self,
        own: torch.Tensor,
        compared: torch.Tensor,
        best: torch.Tensor,
        exact: torch.Tensor,
        side: Side,
    ) -> torch.Tensor:
        """Return the mean by what matters, and the maximum: (pairs, 2 * hidden)."""
        numbers = torch.stack([best, exact, self.weights[side.ids]], -1)
        matters = self.matters(torch.cat([own, numbers], -1)).squeeze(-1)
        share = (matters + (1 - side.mask) * NEVER).softmax(1)
        mean = (share[:, :, None] * compared).sum(1)
        most = (compared + ((1 - side.mask) * NEVER)[:, :, None]).amax(1)
        return torch.cat([mean, most], 1)

    def _facts(
        self,
        question: Side,
        entry: Side,
        best: torch.Tensor,
        exact: torch.Tensor,
        best_back: torch.Tensor,
    ) -> torch.Tensor:
        """Return features of the whole pair: (pairs, _FACTS)."""
        telling = self.weights[question.ids] * question.mask
        weight = telling.sum(1).clamp_min(1e-6)
        mean = _mean(question.states, question.mask)
        found = [_cosine(mean, _mean(entry.states, entry.mask))]
        for part in range(PARTS):
            mask = entry.mask * (entry.parts == part)
            found += [
                _cosine(mean, _mean(entry.states, mask)),
                (mask.sum(1) > 0).float(),
            ]
        found += [
            (telling * best).sum(1) / weight,
            (telling * exact).sum(1) / weight,
            (best + (1 - question.mask)).amin(1),
            (best_back * entry.mask).sum(1) / entry.mask.sum(1),
            question.mask.sum(1) / MAX_QUESTION,
        ]
        own = question.vectors[:, WHOLE]
        found += [(own * entry.vectors[:, at]).sum(1) for at in (WHOLE, ASKED)]
        return torch.stack(found, 1)


class Tuned(nn.Module):
    """What is fitted on states: the embedder's last layers, and the nets.

    In use a `Reader` has the layers, so that an entry passes them once.
    """

    def __init__(self, upper: nn.ModuleList, members: "Members") -> None:
        super().__init__()
        self.upper, self.members = upper, members

    def read(self, side: Side) -> Side:
        """Return states of the last layer, of those below the tuned ones."""
        # Half as many bits take half the time where the processor has them.
        with torch.autocast("cpu", torch.bfloat16, enabled=self.training):
            hidden = through(self.upper, side.states, side.mask)
        return replace(side, states=hidden.float())

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return each net's logits: (members, pairs)."""
        return self.members.each(self.read(question), self.read(entry))


class Members(nn.Module):
    """An ensemble: the mean logit of nets that differ only in their random seed.

    Where the data decides little they disagree, so that the mean is both more often right
    and less sure of itself.
    """

    def __init__(self, members: Sequence[Interaction]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return logits of shape (pairs,)."""
        return self.each(question, entry).mean(0)

    def each(self, question: Side, entry: Side) -> torch.Tensor:
        """Return each net's logits: (members, pairs)."""
        return torch.stack([member(question, entry) for member in self.members])


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    total = (states * mask[:, :, None]).sum(1)
    return total / mask.sum(1, keepdim=True).clamp_min(1.0)


def _cosine(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return functional.cosine_similarity(one, other, dim=1)
