"""The request to a model that follows instructions, and its reply as a JSON object.

The instructions, the data, the schema, and a parser that no output can crash.
"""

import copy
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openai.types.chat.chat_completion import Choice
    from openai.types.chat.chat_completion_token_logprob import (
        ChatCompletionTokenLogprob,
    )

from qa.inference.evidence_text import PROMPTS, UNSEEN_CATEGORIES
from qa.pipeline.language_model import Prompt

INSTRUCTIONS: Final[str] = PROMPTS["instructed"]["instructions"]

# With these a text could spell a chat template's control tokens.
_ESCAPED: Final = frozenset("<>[]")


def user_message(prompt: Prompt) -> str:
    """Return evidence and question as one JSON object.

    Line breaks, quotes, hidden characters and the brackets of chat templates' tokens
    are escaped: a text stays inside its string, and the tokenizer sees no control
    token.
    """
    data = {
        "evidence": [
            {"number": number, "text": piece.text}
            | ({"question": piece.question} if piece.question else {})
            for number, piece in enumerate(prompt.evidence, start=1)
        ],
        "question": prompt.question,
        "language": prompt.language,
    }
    return _dump(data)


def _dump(value: object) -> str:
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        return "".join(map(_escape, quoted))
    if isinstance(value, dict):
        pairs = (f"{_dump(key)}: {_dump(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_dump, value)) + "]"
    return json.dumps(value)


def _escape(character: str) -> str:
    hidden = unicodedata.category(character) in UNSEEN_CATEGORIES and character != " "
    if not hidden and character not in _ESCAPED:
        return character
    return (
        json.dumps(character)[1:-1]
        if ord(character) > 127
        else f"\\u{ord(character):04x}"
    )


SCHEMA: Final[Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("reply_schema.json").read_text(encoding="utf-8")
)

# Limits in characters, so that a reply comes to its end.
_MAX_QUOTE: Final = 200
_MAX_REASONING: Final = 300
_MAX_ANSWER: Final = 1_000
LIMITS: Final = f"{_MAX_QUOTE} {_MAX_REASONING} {_MAX_ANSWER}"

_FIELDS: Final = frozenset(("evidence", "quotes", "reasoning", "can_answer", "answer"))
_MAX_OUTPUT: Final = 65_536
_MAX_ATTEMPTS: Final = 64
# Characters that neither a database nor a page can hold.
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Form:
    """The form as filled in; numbers are as given and may refer to no piece."""

    evidence: tuple[int, ...]
    quotes: tuple[tuple[int, str], ...]
    reasoning: str
    can_answer: bool
    answer: str


class Fault(ValueError):  # noqa: N818  # what reading returns; raised inside it alone
    """Why an output is not a valid form, in words that the model can act on."""


def reply_schema(pieces: Sequence[int]) -> Mapping[str, Any]:
    """Return the schema of a reply, with a bound on each list and text.

    Otherwise a small model writes until its tokens are spent, and the object never
    ends.
    """
    if not pieces:
        return SCHEMA
    fields = {
        name: value if name == "can_answer" else value_schema(name, pieces=pieces)
        for name, value in SCHEMA["properties"].items()
    }
    fields["answer"]["minLength"] = 0  # empty in a refusal
    return {**SCHEMA, "properties": fields}


def value_schema(name: str, *, pieces: Sequence[int]) -> dict[str, Any]:
    """Return the schema of one field's value, limited to these piece numbers."""
    schema = copy.deepcopy(dict(SCHEMA["properties"][name]))
    if name == "evidence":
        schema["items"] = {"type": "integer", "enum": list(pieces)}
        schema["maxItems"] = len(pieces)
    elif name == "quotes" and not pieces:
        return {"const": []}
    elif name == "quotes":
        parts = schema["items"]["properties"]
        parts["piece"] = {"type": "integer", "enum": list(pieces)}
        parts["quote"] |= {"minLength": 1, "maxLength": _MAX_QUOTE}
        schema["maxItems"] = len(pieces)
    else:
        is_answer = name == "answer"
        schema["minLength"] = int(is_answer)
        schema["maxLength"] = _MAX_ANSWER if is_answer else _MAX_REASONING
    return schema


def read_form(output: str) -> Form | Fault:
    """Return the form in `output`, or what is wrong with it; never raises.

    The last complete object with any of the form's fields counts, whatever surrounds
    it.
    """
    fault = Fault("it holds no complete JSON object")
    form: Form | None = None
    try:
        for candidate in _objects(output[:_MAX_OUTPUT]):
            try:
                form = _form(candidate)
            except Fault as error:
                form, fault = None, error
    except RecursionError:
        return Fault("its objects are nested too deeply")
    except Fault as error:
        return error
    return form or fault


def printable(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)


def _objects(output: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
    )
    at, attempts = output.find("{"), 0
    while at >= 0 and attempts < _MAX_ATTEMPTS:
        attempts += 1
        try:
            value, after = decoder.raw_decode(output, at)
        except Fault:
            raise
        except ValueError:
            after = at + 1
        else:
            # Skip the parts of a form that is itself cut off.
            if isinstance(value, dict) and value.keys() & _FIELDS:
                yield value
        at = output.find("{", after)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Fault(f"the field {printable(twice)[:40]!r} stands there twice")
    return dict(pairs)


def _refuse_constant(name: str) -> object:
    raise Fault(f"{name} is no JSON")


def _form(value: Mapping[str, object]) -> Form:
    can_answer = value.get("can_answer")
    if not isinstance(can_answer, bool):
        raise Fault('the field "can_answer" must be true or false')
    answer = _text(value, "answer", may_miss=not can_answer)
    if can_answer and not answer:
        raise Fault('the field "answer" is empty although "can_answer" is true')
    return Form(
        evidence=tuple(
            dict.fromkeys(
                _number(number, "evidence") for number in _list(value, "evidence")
            )
        ),
        quotes=tuple(_quote(quote) for quote in _list(value, "quotes")),
        reasoning=_text(value, "reasoning", may_miss=True),
        can_answer=can_answer,
        answer=answer if can_answer else "",
    )


def _list(value: Mapping[str, object], name: str) -> list[object]:
    found = value.get(name)
    if not isinstance(found, list):
        raise Fault(f'the field "{name}" must be a list')
    return found


def _number(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Fault(f'the field "{name}" must hold whole numbers')
    return value


def _quote(value: object) -> tuple[int, str]:
    if not isinstance(value, dict):
        raise Fault('the field "quotes" must hold objects with "piece" and "quote"')
    return _number(value.get("piece"), "piece"), _text(value, "quote", may_miss=False)


def _text(value: Mapping[str, object], name: str, *, may_miss: bool) -> str:
    found = value.get(name)
    if found is None and may_miss:
        return ""
    if not isinstance(found, str):
        raise Fault(f'the field "{name}" must be text')
    return printable(found).strip()


_VERDICT: Final = r'"can_answer"\s*:\s*(?=true|false)'
_FIELD: Final = r'"{}"\s*:\s*"(?=[^"])'
_CLOSING: Final = re.compile(r'(?<!\\)"')


def verdict(choice: "Choice") -> float | None:
    """Return the probability of true versus false for "can_answer"; None if unknown."""
    token = next(iter(_tokens_after(_VERDICT, choice)), None)
    if token is None:
        return None
    chances = {"t": 0.0, "f": 0.0}
    options = [(token.token, token.logprob)]
    options += [(option.token, option.logprob) for option in token.top_logprobs or []]
    for text, log_probability in options:
        word = text.strip().lower()
        if word and ("true".startswith(word) or "false".startswith(word)):
            side = word[0]
            chances[side] = max(chances[side], _chance(log_probability))
    total = chances["t"] + chances["f"]
    return chances["t"] / total if total > 0 else None


def text_log_probability(choice: "Choice", field: str = "answer") -> float | None:
    """Return the mean natural-log probability of a text field; None if unknown."""
    values: list[float] = []
    for token in _tokens_after(_FIELD.format(re.escape(field)), choice):
        values.append(max(token.logprob, -100.0))
        # The quote that closes the text: the form's other fields follow.
        if _CLOSING.search(token.token):
            break
    mean = sum(values) / len(values) if values else math.nan
    return mean if math.isfinite(mean) else None


def _tokens_after(
    pattern: str, choice: "Choice"
) -> "Sequence[ChatCompletionTokenLogprob]":
    """Return the tokens that follow the pattern's last match; may be none."""
    tokens = (choice.logprobs.content or []) if choice.logprobs else []
    text = "".join(token.token for token in tokens)
    end = max((found.end() for found in re.finditer(pattern, text)), default=len(text))
    position = 0
    for number, token in enumerate(tokens):
        position += len(token.token)
        if position > end:
            return tokens[number:]
    return []


def _chance(log_probability: float) -> float:
    return math.exp(min(log_probability, 0.0)) if log_probability > -1_000 else 0.0
