"""Writing that can only become JSON by a schema.

Which tokens may come next is computed by llguidance (MIT): it knows the schema, the
escapes of strings and the bytes of every token.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from probes.exceptions import ModelFormatError
from probes.language_model.tokens import Tokens
from probes.language_model.writing import Allowed

# One space before the value, and one after each comma and colon, as json.dumps has it.
_GRAMMAR: Final = 'start: " " %json {schema}'
_SPACING: Final = {
    "whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ",
}  # fmt: skip


class JsonValues:
    """What may be written by one model; making it takes most of a second."""

    def __init__(self, tokens: Tokens) -> None:
        self._end_ids = tokens.end_ids
        self._tokenizer = LLTokenizer(tokens.serialized, eos_token=min(tokens.end_ids))
        self._size = self._tokenizer.vocab_size
        self._is_text = np.ones(self._size, np.bool_)
        self._is_text[[i for i in tokens.control_ids if i < self._size]] = False

    def allowed(self, schema: Mapping[str, object]) -> Allowed:
        """Return the constraint to one value, after which only an end token may come.

        It is for one writing: it remembers what was written.

        Raises:
            ModelFormatError: The schema can't be held to with this tokenizer.
        """
        grammar = _GRAMMAR.format(schema=json.dumps({**schema, "x-guidance": _SPACING}))
        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(grammar))
        bits = np.zeros((self._size + 31) // 32, np.uint32)

        def next_ids(written: Sequence[int]) -> Collection[int] | NDArray[np.int64]:
            if written:
                matcher.consume_token(written[-1])
            if matcher.is_stopped() and not matcher.is_error():
                return self._end_ids
            matcher.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
            if matcher.is_error():
                raise ModelFormatError(
                    f"JSON can't be written with this tokenizer: {matcher.get_error()} "
                    "Set NESCIO_LANGUAGE_FORM to 'copy'."
                )
            row = np.unpackbits(bits.view(np.uint8), bitorder="little")[: self._size]
            return np.flatnonzero(row.astype(np.bool_) & self._is_text)

        return next_ids
