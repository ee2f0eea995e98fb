"""What an adapter is fitted on, and how examples are put together for a pass."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and what is to be written after it, as tokens.

    Attributes:
        prompt: At least one token; nothing is learnt from it.
        answer: What follows, with its end token.
    """

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse what there is nothing to learn from."""
        if not self.prompt or not self.answer:
            msg = f"{len(self.prompt)} tokens of prompt, {len(self.answer)} of answer"
            raise ValueError(msg)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Examples side by side, padded on the left, so that their answers end together.

    Attributes:
        ids: Tokens, shape (rows, width).
        mask: 1 for a token and 0 for padding, shape (rows, width).
        targets: What is to be written at each of the last positions but one, shape
            (rows, longest answer); -100 where nothing is learnt.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    targets: torch.Tensor


def batch_of(examples: Sequence[Example]) -> Batch:
    """Put examples side by side."""
    width = max(map(len, examples))
    longest = max(len(example.answer) for example in examples)
    ids = torch.zeros(len(examples), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    targets = torch.full((len(examples), longest), -100)
    for row, example in enumerate(examples):
        tokens = torch.tensor([*example.prompt, *example.answer])
        ids[row, width - len(example) :] = tokens
        mask[row, width - len(example) :] = 1
        targets[row, longest - len(example.answer) :] = torch.tensor(example.answer)
    return Batch(ids, mask, targets)


def batches_of(
    examples: Sequence[Example], size: int, chance: random.Random
) -> Iterator[list[Example]]:
    """Yield all examples once, in batches of like length and random order.

    Sorting within a few dozen batches leaves little padding and mixes all the same.
    """
    order = chance.sample(range(len(examples)), len(examples))
    batches: list[list[Example]] = []
    pool = size * 32
    for first in range(0, len(order), pool):
        near = sorted(
            order[first : first + pool], key=lambda index: len(examples[index])
        )
        batches += [
            [examples[index] for index in near[start : start + size]]
            for start in range(0, len(near), size)
        ]
    chance.shuffle(batches)
    yield from batches
