"""What a server's token probabilities tell of its verdict and its answer."""

import math
import re
from collections.abc import Sequence
from typing import Final

from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_token_logprob import ChatCompletionTokenLogprob

_VERDICT: Final = re.compile(r'"can_answer"\s*:\s*(?=true|false)')
_FIELD: Final = r'"{}"\s*:\s*"(?=[^"])'
_CLOSING: Final = re.compile(r'(?<!\\)"')


def verdict(choice: Choice) -> float | None:
    """Return the probability of true against false for "can_answer", in [0, 1].

    None where the server gives no probabilities, or not for that token.
    """
    token = _token_after(_VERDICT, choice)
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


def text_log_probability(choice: Choice, field: str = "answer") -> float | None:
    """Return the mean natural-log probability of the tokens of a text field.

    None where the server gives no probabilities, or no such text.
    """
    tokens = _tokens(choice)
    at = _index_after(re.compile(_FIELD.format(re.escape(field))), tokens)
    if at is None:
        return None
    values: list[float] = []
    for token in tokens[at:]:
        values.append(max(token.logprob, -100.0))
        # The quote that closes the text: what follows are the form's other fields.
        if _CLOSING.search(token.token):
            break
    mean = sum(values) / len(values)
    return mean if math.isfinite(mean) else None


def _token_after(
    pattern: re.Pattern[str], choice: Choice
) -> ChatCompletionTokenLogprob | None:
    tokens = _tokens(choice)
    at = _index_after(pattern, tokens)
    return None if at is None else tokens[at]


def _index_after(
    pattern: re.Pattern[str], tokens: Sequence[ChatCompletionTokenLogprob]
) -> int | None:
    """Return the token that holds the first character after the pattern's last match."""
    text = "".join(token.token for token in tokens)
    found = list(pattern.finditer(text))
    if not found:
        return None
    position, end = 0, found[-1].end()
    for number, token in enumerate(tokens):
        position += len(token.token)
        if position > end:
            return number
    return None


def _tokens(choice: Choice) -> Sequence[ChatCompletionTokenLogprob]:
    return (choice.logprobs.content or []) if choice.logprobs else []


def _chance(log_probability: float) -> float:
    return math.exp(min(log_probability, 0.0)) if log_probability > -1_000 else 0.0
