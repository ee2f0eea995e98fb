"""The verifier's network, which compares a question's tokens with an entry's.

A small net aligns every token of one side with the other, compares each with what it
was aligned with, and sums up (Parikh et al., "A Decomposable Attention Model for
Natural Language Inference", EMNLP 2016; late interaction as in Khattab and Zaharia,
"ColBERT", SIGIR 2020), along with the cosines of the embedder's own sentence vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import torch
from torch import nn
from torch.nn import functional

from .late_interaction import LateInteraction
from .reading import ASKED, MAX_QUESTION, NEVER, PARTS, WHOLE, Side, through

_WIDTH: Final = 96
_HIDDEN: Final = 96
_FACTS: Final = 14


class Interaction(nn.Module):
    """Computes a logit that the entry answers the question, for each pair."""

    weights: torch.Tensor

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        # How informative each token is: the logarithm of its inverse document
        # frequency, scaled to a mean of about 1. Set before the fit and never fitted.
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

    def forward(
        self, question: Side, entry: Side, likeness: "Likeness"
    ) -> torch.Tensor:
        """Return logits of shape (pairs,)."""
        one = self.project(question.states)
        other = self.project(entry.states) + self.part(entry.parts)
        near = functional.normalize(one, dim=-1) @ functional.normalize(
            other, dim=-1
        ).transpose(1, 2)
        aligned = (near + likeness.alike) * self.sharpness.exp() / 4 + likeness.hidden
        found = aligned.softmax(2) @ other
        found_back = aligned.transpose(1, 2).softmax(2) @ one
        logits: torch.Tensor = self.sum_up(
            torch.cat(
                [
                    self._summed_up(one, found, likeness.question, question),
                    self._summed_up(other, found_back, likeness.entry, entry),
                    self._facts(question, entry, likeness),
                ],
                1,
            )
        )
        return logits.squeeze(-1)

    def _summed_up(
        self, own: torch.Tensor, found: torch.Tensor, matched: "Matched", side: Side
    ) -> torch.Tensor:
        """Compare each token with what it was aligned with: (pairs, 2 * hidden).

        Returns the mean, weighted by relevance, and the maximum.
        """
        best, exact, telling = matched.best, matched.exact, self.weights[side.ids]
        numbers = torch.stack([best, exact, telling, telling * (1 - exact)], -1)
        parts = [own, found, (own - found).abs(), own * found, numbers]
        compared: torch.Tensor = self.compare(torch.cat(parts, -1))
        matters = self.matters(torch.cat([own, numbers[..., :3]], -1)).squeeze(-1)
        hidden = (1 - side.mask) * NEVER
        share = (matters + hidden).softmax(1)
        mean = (share[:, None] @ compared).squeeze(1)
        most = (compared + hidden[:, :, None]).amax(1)
        return torch.cat([mean, most], 1)

    def _facts(self, question: Side, entry: Side, likeness: "Likeness") -> torch.Tensor:
        """Return features of the whole pair: (pairs, _FACTS)."""
        best, exact = likeness.question.best, likeness.question.exact
        telling = self.weights[question.ids] * question.mask
        weight = telling.sum(1).clamp_min(1e-6)
        own = question.vectors[:, WHOLE]
        found = [
            (telling * best).sum(1) / weight,
            (telling * exact).sum(1) / weight,
            (best + (1 - question.mask)).amin(1),
            (likeness.entry.best * entry.mask).sum(1) / entry.mask.sum(1),
            question.mask.sum(1) / MAX_QUESTION,
            *((own * entry.vectors[:, at]).sum(1) for at in (WHOLE, ASKED)),
        ]
        return torch.cat([likeness.of_parts, torch.stack(found, 1)], 1)


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """How well each token of one side is found on the other: (pairs, tokens).

    Attributes:
        best: The cosine of its state with the most similar one.
        exact: 1 if the same token is there.
    """

    best: torch.Tensor
    exact: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """How similar the states of many pairs are, which is the same for every net.

    Attributes:
        alike: Cosines, (pairs, question tokens, entry tokens).
        hidden: Keeps padding out of a softmax over these: 0 or `NEVER`.
        of_parts: (pairs, 1 + 2 * PARTS): the cosine of the means of both sides, and
            for each part of the entry the cosine with its mean, and 1 if it has one.
    """

    alike: torch.Tensor
    hidden: torch.Tensor
    question: Matched
    entry: Matched
    of_parts: torch.Tensor

    @classmethod
    def between(cls, question: Side, entry: Side) -> Self:
        ours = functional.normalize(question.states, dim=-1)
        theirs = functional.normalize(entry.states, dim=-1)
        alike = ours @ theirs.transpose(1, 2)
        both = question.mask[:, :, None] * entry.mask[:, None, :]
        same = (question.ids[:, :, None] == entry.ids[:, None, :]).float() * both
        shown = alike * both
        return cls(
            alike,
            (1 - both) * NEVER,
            Matched(shown.amax(2), same.amax(2)),
            Matched(shown.amax(1), same.amax(1)),
            _of_parts(question, entry),
        )


def _of_parts(question: Side, entry: Side) -> torch.Tensor:
    parts = (entry.parts[:, None] == torch.arange(PARTS)[:, None]).float()
    masks = torch.cat([entry.mask[:, None], parts * entry.mask[:, None]], 1)
    mean = _mean(question.states, question.mask[:, None])
    cosines = functional.cosine_similarity(mean, _mean(entry.states, masks), dim=2)
    of_each = torch.stack([cosines[:, 1:], masks[:, 1:].amax(2)], 2).flatten(1)
    return torch.cat([cosines[:, :1], of_each], 1)


class Tuned(nn.Module):
    """The fitted parts: the embedder's last layers, and what reads their states.

    In use a `Reader` has the layers, so that an entry passes through them once.
    """

    def __init__(
        self,
        upper: nn.ModuleList,
        members: "Members",
        late_interaction: LateInteraction,
    ) -> None:
        super().__init__()
        self.upper, self.members = upper, members
        self.late_interaction = late_interaction

    def read(self, side: Side) -> Side:
        """Return the last layer's states, given those below the tuned layers."""
        # bfloat16 takes half the time on processors that support it.
        with torch.autocast("cpu", torch.bfloat16, enabled=self.training):
            hidden = through(self.upper, side.states, side.mask)
        return replace(side, states=hidden.float())

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return each net's logits: (members, pairs)."""
        return self.members.each(self.read(question), self.read(entry))

    def by_tokens(self, question: Side, entry: Side) -> torch.Tensor:
        """Return the likeness by tokens as a logit, on fixed layers: (pairs,)."""
        with torch.no_grad():
            question, entry = self.read(question), self.read(entry)
        logits: torch.Tensor = self.late_interaction(
            question, entry, self.members.weights
        )
        return logits


class Members(nn.Module):
    """An ensemble: the mean logit of nets that differ only in their random seed.

    Where the data decides little they disagree, so that the mean is both more often
    right and less confident.
    """

    def __init__(self, members: Sequence[Interaction]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    @property
    def weights(self) -> torch.Tensor:
        """How informative each token is, (vocabulary,): the same for every net."""
        return self.get_buffer("members.0.weights")

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return logits of shape (pairs,)."""
        return self.each(question, entry).mean(0)

    def each(self, question: Side, entry: Side) -> torch.Tensor:
        """Return each net's logits: (members, pairs)."""
        likeness = Likeness.between(question, entry)
        logits = [member(question, entry, likeness) for member in self.members]
        return torch.stack(logits)


def _mean(states: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the mean state by each mask: (pairs, masks, width)."""
    return masks @ states / masks.sum(2, keepdim=True).clamp_min(1.0)
