"""Judges of pairs: how a language model classifies two statements."""

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from accounts.ids import digest
from kb.conflicts.values import Kind, Opinion, Statement, Unsure
from qa.inference.evidence_text import PROMPTS, flatten
from qa.inference.server import ServerLanguageModel
from qa.inference.server_reply import Fault

if TYPE_CHECKING:
    from probes.language_model import Context, WhiteBoxModel

_PROMPTS: Final = PROMPTS["judges"]
EXAMPLES: Final = tuple(
    (one, other, Kind(kind)) for one, other, kind in _PROMPTS["examples"]
)
_MAX_CHARACTERS: Final = 600  # per statement; most entries are one sentence

_REQUESTS_AT_ONCE: Final = 4  # a server that takes one at a time queues them
_MAX_REPLY: Final = 10_000
_KINDS: Final = tuple(kind.value for kind in Kind)
_SUM_TOLERANCE: Final = 0.05
_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        kind: {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "Probability, 0 to 1.",
        }
        for kind in _KINDS
    },
    "required": list(_KINDS),
    "additionalProperties": False,
}
_INSTRUCTIONS: Final = " ".join(
    (
        _PROMPTS["instructions"],
        *(f"{one} / {other} is {kind.value}." for one, other, kind in EXAMPLES),
    )
)
_FAULT: Final = (
    'it is not one JSON object with "duplicate", "contradiction" and "different" as '
    "numbers from 0 to 1 that are together 1"
)

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


class ServerJudge:
    """`kb.conflicts.Judge` on a chat-completions server, with a JSON verdict."""

    asked_about = Unsure()

    def __init__(self, server: ServerLanguageModel) -> None:
        self._server = server
        self.name = f"the language model {server.name}"
        self.fingerprint = digest(server.fingerprint, _INSTRUCTIONS)

    def weigh(
        self, pairs: Sequence[tuple[Statement, Statement]]
    ) -> list[Opinion | None]:
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return list(pool.map(self._ask, pairs))

    def _ask(self, pair: tuple[Statement, Statement]) -> Opinion | None:
        one, other = map(line_of, pair)
        verdict = self._server.fill_in(
            _INSTRUCTIONS,
            f"First note: {one}\nSecond note: {other}",
            schema=_SCHEMA,
            read=lambda reply: read_verdict(reply) or Fault(_FAULT),
        ).value
        if verdict is None:
            return None
        return Opinion(**verdict, name=self.name, fingerprint=self.fingerprint)


def read_verdict(reply: str) -> dict[str, float] | None:
    """Return the three probabilities, summing to 1; None for any other reply."""
    try:
        value = json.loads(reply[:_MAX_REPLY])
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or set(value) != set(_KINDS):
        return None
    numbers = list(value.values())
    if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
        return None
    # This rejects NaN too.
    if not all(0 <= n <= 1 for n in numbers):
        return None
    total = math.fsum(numbers)
    if abs(total - 1) > _SUM_TOLERANCE:
        return None
    return {kind: value[kind] / total for kind in _KINDS}


class WhiteBoxJudge:
    """`kb.conflicts.Judge` on a white-box model, preferably without an adapter.

    The opinion is the likelihood of "same", "conflict" or "other" as the next word. It
    is divided by the likelihood for a pair without content, to correct what the model
    prefers regardless of its input (Zhao et al., "Calibrate before use", 2021), and
    averaged over both orders of the statements.
    """

    asked_about = Unsure()

    def __init__(self, model: "WhiteBoxModel") -> None:
        self._model = model
        self._examples = _INTRODUCTION + "".join(
            f"{_frame(one, other)}{_WORDS[kind]}\n\n" for one, other, kind in EXAMPLES
        )
        self.name = f"the language model {model.name}"
        self.fingerprint = digest(model.fingerprint, self._examples)
        words = [model.tokens.encode_text(word) for word in _WORDS.values()]
        self._options = [word[0] for word in words]

    def weigh(self, pairs: Sequence[tuple[Statement, Statement]]) -> list[Opinion]:
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
        self, pairs: Sequence[tuple[str, str]], prefix: "Context"
    ) -> NDArray[np.float64]:
        """Return the likelihood of each word, shape (pairs, 3); rows sum to 1."""
        rows = [self._model.tokens.encode_text(_frame(*pair)) for pair in pairs]
        batches = [
            self._model.weigh_each(rows[at : at + _ROWS_AT_ONCE], self._options, prefix)
            for at in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.concatenate(batches).astype(np.float64)


def _frame(one: str, other: str) -> str:
    return f"Note: {one}\nNote: {other}\nThey are:"


def line_of(statement: Statement) -> str:
    said = f"{statement.question} {statement.text}"
    return flatten(said).strip()[:_MAX_CHARACTERS]
