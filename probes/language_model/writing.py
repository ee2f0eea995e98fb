"""Write greedily, token by token, with the activations of the written tokens."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import torch
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from probes.exceptions import ModelFormatError
from probes.language_model.ahead import Forced, ReadAhead
from probes.language_model.network import Network
from probes.language_model.taps import NO_STEERING, PassStopped, Steering, tapped
from probes.language_model.tokens import Tokens
from probes.language_model.values import Context, Generated
from probes.taps import Activations, Tap

Allowed = Callable[[Sequence[int]], Collection[int] | NDArray[np.int64]]
Enough = Callable[[str], bool]


def generate(
    network: Network,
    after: Context,
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
    allowed: Allowed | None = None,
    forced: Forced | None = None,
    taps: Sequence[Tap] = (),
    with_end: bool = False,
    steering: Steering = NO_STEERING,
    enough: Enough | None = None,
) -> Generated:
    """Write greedily until the turn ends, a stop string appears or `enough` is met.

    Activations are those of the pass that reads each written token to write the next.

    Args:
        allowed: Given the tokens written so far, returns those that may come next; an
            end token among them allows the end. Control tokens are never written.
        forced: Given the same, returns those that must come next. With it, likely
            tokens are read ahead in one pass; the text stays the same but for rounding.
        with_end: Whether to keep the end token's activations too, which takes one more
            pass, up to the deepest tap.
        steering: Added to blocks' outputs at each written token; the taps read the
            result.
        enough: Given the text so far, returns whether to stop.
    """
    tokens = network.tokens
    ids: list[int] = []
    log_probabilities: list[float] = []
    entropies: list[float] = []
    kept: dict[Tap, list[Activations]] = {tap: [] for tap in taps}
    text, finished = "", False
    ahead = ReadAhead(network, after, forced)
    end: Mapping[Tap, Activations] = {}
    banned = _numbers(tokens.control_ids - tokens.end_ids, network)
    with tapped(network.module, taps, steering=steering) as flow:
        while not finished and len(ids) < max_tokens:
            scores = ahead.next_log_probabilities
            number = _best(scores, banned, allowed(ids) if allowed else None)
            if number in tokens.end_ids:
                end = _read_end(
                    network, number, ahead.context, taps if with_end else ()
                )
                finished = True
                break
            ids.append(number)
            log_probabilities.append(float(scores[number]))
            entropies.append(token_entropy(scores))
            text = tokens.decode(ids)
            cut = min((at for at in map(text.find, stop) if at >= 0), default=-1)
            finished = cut >= 0
            text = text[:cut] if finished else text
            ahead.read(number)
            for tap, rows in kept.items():
                rows.append(flow.row(tap, 0, [ahead.place]))
            if enough and enough(text):
                break
    return Generated(
        tuple(ids),
        text,
        tuple(log_probabilities),
        tuple(entropies),
        finished,
        ahead.context,
        {tap: np.concatenate(rows) for tap, rows in kept.items() if rows},
        end,
    )


def token_entropy(log_probabilities: torch.Tensor) -> float:
    """Return the entropy in nats of a distribution given by its natural logs."""
    # An impossible token adds 0, although 0 times -inf is NaN.
    return float(torch.special.entr(log_probabilities.exp()).sum())


def _numbers(ids: Collection[int], network: Network) -> torch.Tensor:
    return torch.tensor(sorted(ids), dtype=torch.long, device=network.device)


def _read_end(
    network: Network, number: int, context: Context, taps: Sequence[Tap]
) -> dict[Tap, Activations]:
    if not taps:
        return {}
    with tapped(network.module, taps, truncate=True) as flow:
        with suppress(PassStopped):
            network.read([number], context)
        return {tap: flow.row(tap, 0, slice(-1, None)) for tap in taps}


def _best(
    scores: torch.Tensor,
    banned: torch.Tensor,
    allowed: Collection[int] | NDArray[np.int64] | None,
) -> int:
    if allowed is None:
        return int(scores.index_fill(0, banned, -torch.inf).argmax())
    if not len(allowed):
        raise ValueError("A constraint allows no token at all, not even the end.")
    # Sets of tens of thousands come as arrays, which are already sorted.
    is_array = isinstance(allowed, np.ndarray)
    choices = torch.as_tensor(allowed if is_array else sorted(allowed))
    return int(choices[int(scores[choices.to(scores.device)].argmax())])


# One space before the value and after each comma and colon, as in json.dumps.
_GRAMMAR: Final = 'start: " " %json {schema}'
_SPACING: Final = {
    "whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ",
}  # fmt: skip


class JsonValues:
    """Makes JSON constraints for one model; creating it takes most of a second."""

    def __init__(self, tokens: Tokens) -> None:
        self._end_ids = tokens.end_ids
        self._tokenizer = LLTokenizer(tokens.serialized, eos_token=min(tokens.end_ids))
        size = self._tokenizer.vocab_size
        self._is_text = np.ones(size, np.bool_)
        self._is_text[[i for i in tokens.control_ids if i < size]] = False

    def value(self, schema: Mapping[str, object]) -> "JsonValue":
        """Return a constraint to one value, after which only an end token may come."""
        grammar = _GRAMMAR.format(schema=json.dumps({**schema, "x-guidance": _SPACING}))
        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(grammar))
        return JsonValue(matcher, self._is_text, self._end_ids)


class JsonValue:
    """A constraint for a single text; it keeps track of what was written."""

    def __init__(
        self, matcher: LLMatcher, is_text: NDArray[np.bool_], end_ids: Collection[int]
    ) -> None:
        self._matcher, self._is_text, self._end_ids = matcher, is_text, end_ids
        self._bits = np.zeros((len(is_text) + 31) // 32, np.uint32)
        self._read = 0

    def allowed(self, written: Sequence[int]) -> Collection[int] | NDArray[np.int64]:
        """Return the tokens that may come next.

        Raises:
            ModelFormatError: This tokenizer can't satisfy the schema.
        """
        self._follow(written)
        if self._is_over:
            return self._end_ids
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        if self._matcher.is_error():
            raise ModelFormatError(
                f"JSON can't be written with this tokenizer: {self._matcher.get_error()} "
                "Set NESCIO_LANGUAGE_FORM to 'copy'."
            )
        row = np.unpackbits(self._bits.view(np.uint8), bitorder="little")
        return np.flatnonzero(
            row[: len(self._is_text)].astype(np.bool_) & self._is_text
        )

    def forced(self, written: Sequence[int]) -> Sequence[int]:
        """Return the tokens that must come next, in their usual split; may be empty."""
        self._follow(written)
        return () if self._is_over else self._matcher.compute_ff_tokens()

    @property
    def _is_over(self) -> bool:
        return bool(self._matcher.is_stopped() and not self._matcher.is_error())

    def _follow(self, written: Sequence[int]) -> None:
        for number in written[self._read :]:
            self._matcher.consume_token(number)
        self._read = len(written)
