"""A white-box model as the judge of pairs, by likelihood alone: it writes nothing.

After a few examples and the pair, the next word is "same", "conflict" or "other"; how
likely each of the three is makes the opinion. What the model prefers whatever it is shown
is taken off by what it says of a pair without content, and either order of the two
statements counts half.

References:
    Zhao et al., "Calibrate before use" (2021): the pair without content.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.conflicts import Kind, Opinion, Statement
from probes.language_model import Context, WhiteBoxModel
from qa.inference.judge_prompt import EXAMPLES, line_of

_WORDS: Final = {
    Kind.DUPLICATE: " same",
    Kind.CONTRADICTION: " conflict",
    Kind.DIFFERENT: " other",
}
_WITHOUT_CONTENT: Final = ("N/A", "N/A")
_ROWS_AT_ONCE: Final = 16
_INTRODUCTION: Final = (
    "Two notes either say the same, conflict so that both can not be true, or speak of "
    "other matters.\n\n"
)


class WhiteBoxJudge:
    """`kb.conflicts.Judge` on a white-box model, best one without an adapter."""

    def __init__(self, model: WhiteBoxModel) -> None:
        """Take a loaded model."""
        self._model = model
        self._examples = _INTRODUCTION + "".join(
            f"{_frame(one, other)}{_WORDS[kind]}\n\n" for one, other, kind in EXAMPLES
        )
        self._fingerprint = hashlib.sha256(
            f"{model.fingerprint}\n{self._examples}".encode()
        ).hexdigest()
        words = [model.tokens.encode_text(word) for word in _WORDS.values()]
        self._options = [word[0] for word in words]

    @property
    def name(self) -> str:
        """The model's name, as it was asked for."""
        return self._model.name

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the model's fingerprint and what it is shown."""
        return self._fingerprint

    def weigh(self, pairs: Sequence[tuple[Statement, Statement]]) -> list[Opinion]:
        """Weigh the pairs side by side; see `Judge`."""
        if not pairs:
            return []
        lines = [(line_of(one), line_of(other)) for one, other in pairs]
        both = [*lines, *((other, one) for one, other in lines)]
        with self._model.turn():
            prefix = self._model.read_prefix(
                self._model.tokens.encode_text(self._examples)
            )
            usual = self._shares([_WITHOUT_CONTENT], prefix)
            shares = self._shares(both, prefix) / np.maximum(usual, 1e-6)
        shares /= shares.sum(axis=1, keepdims=True)
        means = (shares[: len(pairs)] + shares[len(pairs) :]) / 2
        return [
            Opinion(
                duplicate=duplicate,
                contradiction=contradiction,
                different=different,
                name=self.name,
                fingerprint=self.fingerprint,
            )
            for duplicate, contradiction, different in means.tolist()
        ]

    def _shares(
        self, pairs: Sequence[tuple[str, str]], prefix: Context
    ) -> NDArray[np.float64]:
        """Return how likely each word is, shape (pairs, 3); rows sum to 1."""
        rows = [self._model.tokens.encode_text(_frame(*pair)) for pair in pairs]
        batches = [
            self._model.weigh_each(rows[at : at + _ROWS_AT_ONCE], self._options, prefix)
            for at in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.concatenate(batches).astype(np.float64)


def _frame(one: str, other: str) -> str:
    return f"Note: {one}\nNote: {other}\nThey are:"
