"""Encode text to token ids, with our structure kept apart from others' text.

A chat template marks who is speaking with control tokens. If a user's text could be
encoded as one, it could end its own turn and speak as the system. So two tokenizers are
used: the model's own for structure, and for data a copy that does not know the control
tokens.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import jinja2
import tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from probes.exceptions import ModelFormatError

# Private-use characters stand in for the texts while the template is rendered.
_MARK: Final = "\ue000{}\ue001"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_MARKS: Final = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a chat; `text` is data whatever the role."""

    role: Literal["system", "user", "assistant"]
    text: str


class Tokens:
    """The tokenizer of one model; thread-safe.

    Text is never encoded to `control_ids`: all added tokens except those of white
    space.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, end_ids: Sequence[int] = ()
    ) -> None:
        """Take over a loaded tokenizer; `end_ids` are added to its own end token."""
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise ModelFormatError(
                f"{tokenizer.name_or_path} has a {type(tokenizer).__name__}, whose "
                "control tokens cannot be switched off. Use a model with a "
                "tokenizer.json."
            )
        self._tokenizer = tokenizer
        self.control_ids = frozenset(
            number
            for token, number in tokenizer.get_added_vocab().items()
            if not _is_white_space(token)
        ) | frozenset(tokenizer.all_special_ids)
        own_end = tokenizer.eos_token_id
        self.end_ids = frozenset(end_ids) | (
            frozenset() if own_end is None else frozenset({int(own_end)})
        )
        self._inert = _without_control_tokens(
            tokenizer.backend_tokenizer, self.control_ids
        )
        self._structure = tokenizers.Tokenizer.from_str(
            tokenizer.backend_tokenizer.to_str()
        )

    @property
    def has_template(self) -> bool:
        return self._tokenizer.chat_template is not None

    @property
    def serialized(self) -> str:
        """The whole tokenizer, control tokens included, as a `tokenizer.json`."""
        return str(self._structure.to_str())

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Encode data, never as a control token; lone surrogates become U+FFFD."""
        return self.encode_with_offsets(text)[0]

    def encode_with_offsets(
        self, text: str
    ) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Encode data; return the ids, and each token's (start, end) characters."""
        encoding = self._inert.encode(
            _SURROGATES.sub("\ufffd", text), add_special_tokens=False
        )
        # A vocabulary that has a control token as an ordinary piece may still produce
        # it.
        kept = [
            (number, span)
            for number, span in zip(encoding.ids, encoding.offsets, strict=True)
            if number not in self.control_ids
        ]
        return tuple(number for number, _ in kept), tuple(span for _, span in kept)

    def encode_chat(
        self, turns: Sequence[Turn], *, open_answer: bool
    ) -> tuple[int, ...]:
        """Encode a chat by the model's template, each turn's text as data.

        A template without a system role gets the system's text before the first user
        turn; a model without a template gets the texts one after the other.
        """
        ids: list[int] = []
        for piece in self._render(turns, open_answer):
            if isinstance(piece, int):
                ids.extend(self.encode_text(turns[piece].text))
            else:
                ids.extend(self._structure.encode(piece, add_special_tokens=False).ids)
        return tuple(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` without control tokens."""
        kept = [number for number in ids if number not in self.control_ids]
        return str(self._inert.decode(kept, skip_special_tokens=False))

    def _render(self, turns: Sequence[Turn], open_answer: bool) -> list[str | int]:
        """Return the template's own strings and the indices of turns, in order."""
        if self._tokenizer.chat_template is None:
            return _plain(len(turns))
        marked = [
            {"role": turn.role, "content": _MARK.format(number)}
            for number, turn in enumerate(turns)
        ]
        pieces = self._apply_template(marked, open_answer)
        if _order(pieces) != list(range(len(turns))) and turns[0].role == "system":
            pieces = self._apply_template(_system_in_user(marked), open_answer)
        if _order(pieces) != list(range(len(turns))):
            raise ModelFormatError(
                f"The chat template of {self._tokenizer.name_or_path} shows turns "
                f"{_order(pieces)} of {len(turns)}. Use a model with a plain template."
            )
        return pieces

    def _apply_template(
        self, messages: Sequence[dict[str, str]], open_answer: bool
    ) -> list[str | int]:
        try:
            rendered = self._tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=open_answer
            )
        except (ValueError, TypeError, KeyError, jinja2.TemplateError):
            return []
        parts = _MARKS.split(str(rendered))
        return [
            int(part) if number % 2 else part
            for number, part in enumerate(parts)
            if part
        ]


def _system_in_user(messages: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    first, second, *rest = messages
    joined = {
        "role": second["role"],
        "content": f"{first['content']}\n\n{second['content']}",
    }
    return [joined, *rest]


def _order(pieces: Sequence[str | int]) -> list[int]:
    return [piece for piece in pieces if isinstance(piece, int)]


def _plain(turns: int) -> list[str | int]:
    pieces: list[str | int] = []
    for number in range(turns):
        pieces += [number, "\n\n"]
    return pieces


def _is_white_space(token: str) -> bool:
    return bool(token) and not token.replace("▁", " ").strip()


def _without_control_tokens(
    backend: tokenizers.Tokenizer, control_ids: frozenset[int]
) -> tokenizers.Tokenizer:
    """Return a copy to which the control tokens are ordinary text."""
    state = json.loads(backend.to_str())
    state["added_tokens"] = [
        token for token in state["added_tokens"] if token["id"] not in control_ids
    ]
    state["post_processor"] = None
    state["truncation"] = state["padding"] = None
    return tokenizers.Tokenizer.from_str(json.dumps(state))
