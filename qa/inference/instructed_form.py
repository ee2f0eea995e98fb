"""The instructed form as tokens: a chat whose reply is one JSON object, field by field.

The names and punctuation of the object are fixed, and each value is encoded on its own,
so the positions of the verdict and the answer are known and need not be searched for.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from probes.language_model import Tokens, Turn
from probes.language_model.second_pass import Passing
from qa.inference.evidence_text import MAX_ENTRY_TOKENS, MAX_QUESTION_TOKENS
from qa.inference.server_reply import INSTRUCTIONS, SCHEMA, printable, user_message
from qa.pipeline.language_model import Prompt

FORM: Final = "instructed-1"
END: Final = "}"

_FIELDS: Final[Mapping[str, Any]] = SCHEMA["properties"]
# The text before each field's value, which begins with a space.
LEADS: Final[Mapping[str, str]] = {
    name: f'{", " if number else "{"}"{name}":' for number, name in enumerate(_FIELDS)
}
_LEAD: Final = re.compile(f"({'|'.join(map(re.escape, LEADS.values()))})")
# The text before an answer if what was really written before it was not kept.
_BARE: Final = f"{LEADS['can_answer'].replace(', ', '{')} true{LEADS['answer']}"


def prompt_ids(
    tokens: Tokens, prompt: Prompt, *, pieces: int | None = None
) -> tuple[int, ...]:
    """Return the chat up to where the reply begins; texts that are too long are cut."""
    shown = tuple(
        replace(
            piece,
            question=_cut(tokens, piece.question, MAX_QUESTION_TOKENS),
            text=_cut(tokens, piece.text, MAX_ENTRY_TOKENS),
        )
        for piece in prompt.evidence[:pieces]
    )
    question = _cut(tokens, prompt.question, MAX_QUESTION_TOKENS)
    return _chat_ids(tokens, user_message(Prompt(question, shown, prompt.language)))


def fixed_ids(tokens: Tokens) -> tuple[int, ...]:
    """Return the tokens that every chat begins with."""
    first, second = _chat_ids(tokens, '{"'), _chat_ids(tokens, "?")
    return first[: parting(first, second)]


def parting(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the index of the first token in which two texts differ."""
    pairs = enumerate(zip(first, second, strict=False))
    return next(place for place, (one, other) in pairs if one != other)


def _chat_ids(tokens: Tokens, message: str) -> tuple[int, ...]:
    turns = [Turn("system", INSTRUCTIONS), Turn("user", message)]
    return tokens.encode_chat(turns, open_answer=True)


def _cut(tokens: Tokens, text: str, limit: int) -> str:
    ends = [end for _, end in tokens.encode_with_offsets(text)[1]]
    return text if len(ends) <= limit else text[: ends[limit - 1]]


def sequence_passing(
    tokens: Tokens,
    prompt: Prompt,
    answer: str,
    *,
    written: str = "",
    pieces: int | None = None,
) -> Passing:
    """Return a second pass that keeps the prompt's last token, the answer and its end.

    `written` is the whole reply if it was kept; without one, only the verdict precedes
    the answer.
    """
    asked = prompt_ids(tokens, prompt, pieces=pieces)
    before, lead, value = written.rpartition(LEADS["answer"])
    if lead and value.endswith(END):
        value = value[: -len(END)]
    else:
        before, lead = "", _BARE
        value = f" {json.dumps(answer, ensure_ascii=False)}"
    ids = [*asked]
    for part in filter(None, _LEAD.split(before + lead)):
        ids += tokens.encode_text(part)
    ids += (own := tokens.encode_text(value))
    start = len(ids) - len(own) + written_value(tokens, own).start
    # The end is always kept: an answer may share its only token with it.
    return Passing(tuple(ids), min(start, len(ids) - 1), len(ids), first=len(asked) - 1)


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """A text value: its tokens from `start` on, except the last, which ends it.

    `texts` are the parts of the text that these tokens stand for; joined they give it.
    """

    start: int
    texts: tuple[str, ...]


_BROKEN_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")
_UNFINISHED: Final = re.compile("[\ufffd\ud800-\udfff]+$")


def written_value(tokens: Tokens, ids: Sequence[int]) -> WrittenValue:
    """Separate the tokens of a whole JSON string's text from those around them.

    A character counts with the last of its tokens; one that shares the very last token
    with the closing quote counts with the token before.
    """
    begun = [tokens.decode(ids[:count]).lstrip() for count in range(len(ids) + 1)]
    opened = next(count for count, text in enumerate(begun) if text)
    start = opened - 1 if len(begun[opened]) > 1 else opened
    said = [_said(text) for text in begun[start:-1]]
    if len(said) > 1:
        said[-1] = _said(begun[-1][:-1])
    texts = [after[len(before) :] for before, after in pairwise(said)]
    return WrittenValue(start, tuple(map(printable, texts)))


def _said(broken_off: str) -> str:
    body = _BROKEN_ESCAPE.sub(r"\1", broken_off[1:].rstrip("\ufffd"))
    text: str = json.loads(f'"{body}"')
    return _UNFINISHED.sub("", text)
