"""Read ahead while writing: several tokens in one pass if a guess proves right.

Most of a pass is spent on fetching the weights, so one over a dozen tokens takes hardly
longer than one over a single token. What a grammar forces, and what followed the same
words earlier, is guessed and read along; a guess counts as far as the chosen tokens
match it (speculative decoding, arXiv:2211.17192, with prompt lookup as the draft).
"""

from collections.abc import Callable, Sequence
from typing import Final

from probes.language_model.network import Network
from probes.language_model.values import Context, can_be_cut, log_softmax

# Given the tokens written so far, returns those that must come next; may be empty.
Forced = Callable[[Sequence[int]], Sequence[int]]

_MAX_GUESSED: Final = 12
# How many of the last tokens are searched for among earlier ones, longest first.
_COMPARED: Final = (3, 2, 1)


class ReadAhead:
    """Reads token by token, with guessed tokens ahead of the chosen ones."""

    def __init__(
        self, network: Network, after: Context, forced: Forced | None = None
    ) -> None:
        """Read on from `after`; without `forced` nothing is guessed."""
        self._network = network
        self._before = after
        self._forced = forced if can_be_cut(after) else None
        self._written: list[int] = []
        self._passed: tuple[int, ...] = ()
        self.place = 0
        self.next_log_probabilities = after.next_log_probabilities

    def read(self, number: int) -> None:
        """Read the chosen token; `place` is then its position in the last pass."""
        self._written.append(number)
        if self._passed[self.place + 1 : self.place + 2] == (number,):
            self.place += 1
        else:
            self._before = self.context
            self._passed = (number, *self._guess())
            self._pass()
            self.place = 0
        self.next_log_probabilities = self._rows[self.place]

    @property
    def context(self) -> Context:
        """What was chosen, without the guesses that proved wrong."""
        if not self._passed:
            return self._before
        kept = self._passed[: self.place + 1]
        if len(kept) < len(self._passed):
            self._cache.crop(len(kept) - len(self._passed))
            self._passed = kept
        ids = (*self._before.ids, *kept)
        return Context(ids, self.next_log_probabilities, self._cache)

    def _pass(self) -> None:
        logits, self._cache = self._network.after(
            [self._passed], self._before, keep=len(self._passed)
        )
        self._rows = log_softmax(logits[0])

    def _guess(self) -> Sequence[int]:
        if self._forced is None:
            return ()
        # `_before` ends before the token that is being read.
        read = [*self._before.ids, self._written[-1]]
        guess = [*self._forced(self._written)]
        guess += continuation([*read, *guess])
        room = self._network.context_length - len(read)
        return guess[: min(_MAX_GUESSED, room)]


def continuation(ids: Sequence[int]) -> Sequence[int]:
    """Return what followed the last tokens when they last occurred; may be empty."""
    for count in _COMPARED:
        tail = [*ids[-count:]]
        for start in range(len(ids) - count - 1, -1, -1):
            if (
                ids[start + count - 1] == tail[-1]
                and [*ids[start : start + count]] == tail
            ):
                return ids[start + count : start + count + _MAX_GUESSED]
    return ()
