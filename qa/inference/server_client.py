"""Client of an OpenAI-compatible server, with a deadline and feature fallbacks."""

import json
import logging
import time
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from qa.exceptions import LanguageModelUnavailableError

logger = logging.getLogger(__name__)

_MAX_TOKENS: Final = 1_024
_FIRST_PAUSE_SECONDS: Final = 0.5
_MAX_PAUSE_SECONDS: Final = 8.0

_Feature = Literal[
    "bounds", "response_format", "temperature", "logprobs", "max_completion_tokens"
]
# In the order in which they are dropped if a server does not say which one it rejects.
_FEATURES: Final[tuple[_Feature, ...]] = (
    "bounds",
    "response_format",
    "logprobs",
    "temperature",
    "max_completion_tokens",
)
_PARAMETERS: Final[Mapping[_Feature, Mapping[str, object]]] = {
    "bounds": {},
    "response_format": {"response_format": {"type": "json_schema"}},
    "logprobs": {"logprobs": True, "top_logprobs": 5},
    "temperature": {"temperature": 0.0},
    "max_completion_tokens": {"max_completion_tokens": _MAX_TOKENS},
}
# What a server that rejects a feature is no longer sent: without a schema, no bounds.
_WITHOUT: Final[Mapping[_Feature, Set[_Feature]]] = {
    "response_format": {"response_format", "bounds"}
}
# The schema keywords that bound lists, texts and numbers; not every server that
# supports schemas supports these.
_BOUNDS: Final = frozenset(
    ("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum")
)
_PASSING: Final = (
    openai.APIConnectionError,
    openai.InternalServerError,
    openai.RateLimitError,
    openai.ConflictError,
)


class ServerClient:
    """Chat completions of one model on one server.

    A feature that the server does not support (a schema, its bounds, probabilities) is
    requested once and then no longer.
    """

    def __init__(
        self, *, url: str, key: str, model: str, timeout_seconds: float, retries: int
    ) -> None:
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self.model = model
        self._client = openai.OpenAI(
            base_url=url, api_key=key or "none", max_retries=0, timeout=timeout_seconds
        )
        self._retries = retries
        self._refused: frozenset[_Feature] = frozenset()

    def complete(
        self,
        messages: Sequence[ChatCompletionMessageParam],
        *,
        deadline: float,
        schema: Mapping[str, object],
        temperature: float = 0.0,
    ) -> ChatCompletion:
        """Return the server's reply by `deadline`, on the monotonic clock."""
        while True:
            refused = self._refused
            try:
                return self._send(messages, refused, deadline, schema, temperature)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                blamed = _blamed(error, refused)
                if blamed is None:
                    raise self._unavailable(error) from error
                logger.warning(
                    "%s does not support %s, which is not sent again: %s",
                    self.host, blamed, error,
                )  # fmt: skip
                self._refused = refused | _WITHOUT.get(blamed, {blamed})

    def _send(
        self,
        messages: Sequence[ChatCompletionMessageParam],
        refused: frozenset[_Feature],
        deadline: float,
        schema: Mapping[str, object],
        temperature: float,
    ) -> ChatCompletion:
        """Send; retry after transient failures: no connection, 429, 409, 5xx."""
        parameters = {
            name: value
            for feature, values in _PARAMETERS.items()
            if feature not in refused
            for name, value in values.items()
        }
        if "response_format" in parameters:
            if "bounds" in refused:
                schema = _unbounded(schema)
            parameters["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            }
        if "temperature" in parameters:
            parameters["temperature"] = temperature
        for attempt in range(self._retries + 1):
            try:
                reply = self._client.chat.completions.create(
                    model=self.model,
                    messages=list(messages),
                    timeout=max(deadline - time.monotonic(), 0.001),
                    extra_body=parameters,
                )
                return _checked(reply)
            except _PASSING as error:
                pause = _pause_seconds(error, attempt)
                late = time.monotonic() + pause >= deadline
                if late or attempt == self._retries:
                    raise self._unavailable(error) from error
                logger.warning(
                    "%s failed (%s); retrying in %.1f s", self.host, error, pause
                )
                time.sleep(pause)
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                raise
            except (openai.OpenAIError, json.JSONDecodeError) as error:
                raise self._unavailable(error) from error
        raise AssertionError  # the last attempt returns or raises

    def _unavailable(self, error: Exception) -> LanguageModelUnavailableError:
        logger.error(
            "Language server %s (model %s): %r, caused by %r",
            self.host, self.model, error, error.__cause__,
        )  # fmt: skip
        what = (
            "took too long"
            if isinstance(error, openai.APITimeoutError)
            else "cannot be reached"
            if isinstance(error, openai.APIConnectionError)
            else f"replied {getattr(error, 'status_code', 'with nothing readable')}"
        )
        return LanguageModelUnavailableError(
            f"The language server {self.host} {what}. The question is kept: ask again "
            "later, or check NESCIO_LANGUAGE_SERVER_URL, its key and the model's name."
        )


def _checked(reply: object) -> ChatCompletion:
    """Return the reply if it is a completion: the client passes on even a web page."""
    if not isinstance(reply, ChatCompletion):
        raise openai.OpenAIError("The reply is not a chat completion.")
    return reply


def _blamed(
    error: openai.APIStatusError, refused: frozenset[_Feature]
) -> _Feature | None:
    said = f"{error.message} {error.body}"
    remaining = [feature for feature in _FEATURES if feature not in refused]
    named = [
        feature
        for feature in remaining
        if any(name in said for name in _PARAMETERS[feature] or _BOUNDS)
    ]
    return next(iter([*named, *remaining]), None)


def _unbounded(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {
            name: _unbounded(value)
            for name, value in schema.items()
            if name not in _BOUNDS
        }
    return schema


def _pause_seconds(error: openai.APIError, attempt: int) -> float:
    """Return the wait in seconds that the server asked for, or twice the last pause."""
    if isinstance(error, openai.APITimeoutError):
        return float("inf")  # no time is left for this answer
    asked = ""
    if isinstance(error, openai.APIStatusError):
        asked = error.response.headers.get("retry-after", "")
    if asked.isascii() and asked.isdigit():
        return float(asked)
    return min(_FIRST_PAUSE_SECONDS * 2.0**attempt, _MAX_PAUSE_SECONDS)
