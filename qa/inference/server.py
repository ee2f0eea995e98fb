"""Any OpenAI-compatible server as the language model."""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlsplit

import openai
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    ChatCompletionMessageParam,
)
from openai.types.chat.chat_completion import Choice

from qa.exceptions import LanguageModelUnavailableError
from qa.inference.server_prompt import INSTRUCTIONS, repair_message, user_message
from qa.inference.server_reply import (
    SCHEMA,
    Fault,
    Form,
    printable,
    read_form,
    text_log_probability,
    verdict,
)
from qa.pipeline.language_model import NO_CAPTURE, Capture, Generation, Prompt

logger = logging.getLogger(__name__)

_MOST_TOKENS: Final = 1_024
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 8.0

_Feature = Literal[
    "response_format", "temperature", "logprobs", "max_completion_tokens"
]
# In the order in which a server that does not say what it dislikes is spared them.
_FEATURES: Final[tuple[_Feature, ...]] = (
    "response_format",
    "logprobs",
    "temperature",
    "max_completion_tokens",
)
_PARAMETERS: Final[Mapping[_Feature, Mapping[str, object]]] = {
    "response_format": {"response_format": {"type": "json_schema"}},
    "logprobs": {"logprobs": True, "top_logprobs": 5},
    "temperature": {"temperature": 0.0},
    "max_completion_tokens": {"max_completion_tokens": _MOST_TOKENS},
}
_PASSING: Final = (
    openai.APIConnectionError,
    openai.InternalServerError,
    openai.RateLimitError,
    openai.ConflictError,
)


@dataclass(frozen=True, slots=True)
class _Reply:
    """One reply, read."""

    form: Form | Fault
    raw: str
    choice: Choice | None
    prompt_tokens: int
    answer_tokens: int


@dataclass(frozen=True, slots=True)
class Filled:
    """A form of the caller's own, filled in.

    Attributes:
        text: The last reply.
        readable: Whether nothing is wrong with it.
        repaired: Whether it took the one repair.
        verdict_probability: Of "can_answer" being true in [0, 1]; None where the form
            has no such field or the server does not tell.
        log_probability: Mean natural-log probability of the tokens from the measured
            field on; None where no field is measured or the server does not tell.
    """

    text: str
    readable: bool
    repaired: bool
    verdict_probability: float | None
    log_probability: float | None
    milliseconds: float


class ServerLanguageModel:
    """`qa.pipeline.language_model.LanguageModel` on a chat-completions server.

    What a server does not support (a schema, probabilities, a temperature) it is asked
    for once and then no more; the instructions ask for the same JSON in words.
    """

    def __init__(
        self, *, url: str, key: str, model: str, timeout_seconds: float, retries: int
    ) -> None:
        """Set up the client; nothing is sent yet.

        Args:
            url: Base address, with its version: "http://localhost:11434/v1".
            model: As the server calls it.
            timeout_seconds: For a whole answer, every retry and pause included.
            retries: How often a request that failed in passing is sent again.
        """
        self._client = openai.OpenAI(
            base_url=url, api_key=key or "none", max_retries=0, timeout=timeout_seconds
        )
        self._host = urlsplit(url).netloc.rpartition("@")[2]
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._retries = retries
        self._refused: frozenset[_Feature] = frozenset()
        self._fingerprint = hashlib.sha256(
            "\n".join((self._host, model, INSTRUCTIONS)).encode()
        ).hexdigest()

    @property
    def name(self) -> str:
        return self._model

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the server's host, the model's name and the instructions."""
        return self._fingerprint

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        """Ask the server, once more if its first reply can't be read."""
        began = time.monotonic()
        deadline = began + self._timeout_seconds
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": user_message(prompt)},
        ]
        first = reply = self._ask(messages, deadline)
        if isinstance(first.form, Fault):
            messages += [
                {"role": "assistant", "content": first.raw or "(empty)"},
                {"role": "user", "content": repair_message(first.form.message)},
            ]
            reply = self._ask(messages, deadline)
        return _generation(first, reply, (time.monotonic() - began) * 1000)

    def fill_in(
        self,
        instructions: str,
        message: str,
        *,
        schema: Mapping[str, object],
        fault_of: Callable[[str], str],
        temperature: float = 0.0,
        measured: str = "",
    ) -> Filled:
        """Have a form of the caller's own filled in, once more if it can't be read.

        Args:
            schema: The form as a JSON schema; the instructions ask for the same.
            fault_of: Says what is wrong with a reply, in words that the model can act
                on; "" for nothing.
            measured: The text field whose likelihood is wanted.
        """
        began = time.monotonic()
        deadline = began + self._timeout_seconds
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": message},
        ]
        text, choice = _said(self._complete(messages, deadline, schema, temperature))
        fault = fault_of(text)
        is_second = bool(fault)
        if is_second:
            messages += [
                {"role": "assistant", "content": text or "(empty)"},
                {"role": "user", "content": repair_message(fault)},
            ]
            text, choice = _said(
                self._complete(messages, deadline, schema, temperature)
            )
            fault = fault_of(text)
        return Filled(
            text=text,
            readable=not fault,
            repaired=is_second and not fault,
            verdict_probability=verdict(choice) if choice and not fault else None,
            log_probability=(
                text_log_probability(choice, measured)
                if choice and measured and not fault
                else None
            ),
            milliseconds=(time.monotonic() - began) * 1000,
        )

    def _ask(
        self, messages: Sequence[ChatCompletionMessageParam], deadline: float
    ) -> _Reply:
        return _read(self._complete(messages, deadline, SCHEMA))

    def _complete(
        self,
        messages: Sequence[ChatCompletionMessageParam],
        deadline: float,
        schema: Mapping[str, object],
        temperature: float = 0.0,
    ) -> ChatCompletion:
        while True:
            refused = self._refused
            try:
                return self._send(messages, refused, deadline, schema, temperature)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                blamed = _blamed(error, refused)
                if blamed is None:
                    raise self._unavailable(error) from error
                logger.warning(
                    "%s takes no %s and is not sent it again: %s",
                    self._host, blamed, error,
                )  # fmt: skip
                self._refused = refused | {blamed}

    def _send(
        self,
        messages: Sequence[ChatCompletionMessageParam],
        refused: frozenset[_Feature],
        deadline: float,
        schema: Mapping[str, object],
        temperature: float,
    ) -> ChatCompletion:
        """Send once, and again after what may pass: no connection, 429, 409, 5xx."""
        parameters = {
            name: value
            for feature, values in _PARAMETERS.items()
            if feature not in refused
            for name, value in values.items()
        }
        if "response_format" in parameters:
            parameters["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            }
        if "temperature" in parameters:
            parameters["temperature"] = temperature
        for attempt in range(self._retries + 1):
            try:
                reply = self._client.chat.completions.create(
                    model=self._model,
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
                    "%s failed (%s); again in %.1f s", self._host, error, pause
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
            self._host, self._model, error, error.__cause__,
        )  # fmt: skip
        what = (
            "took too long"
            if isinstance(error, openai.APITimeoutError)
            else "cannot be reached"
            if isinstance(error, openai.APIConnectionError)
            else f"replied {getattr(error, 'status_code', 'with nothing readable')}"
        )
        return LanguageModelUnavailableError(
            f"The language server {self._host} {what}. The question is kept: ask again "
            "later, or check NESCIO_LANGUAGE_SERVER_URL, its key and the model's name."
        )


def _checked(reply: object) -> ChatCompletion:
    """Return a reply that is one: the client passes on a web page as it came."""
    if not isinstance(reply, ChatCompletion):
        msg = "The reply is no chat completion."
        raise openai.OpenAIError(msg)
    return reply


def _said(completion: ChatCompletion) -> tuple[str, Choice | None]:
    """Return a complete reply's text; "" for one that was cut off, or says nothing."""
    if not completion.choices:
        return "", None
    choice = completion.choices[0]
    # The client does not check what a server replies: null or another type may come.
    message: object = choice.message
    content: object = getattr(message, "content", None)
    if not isinstance(content, str) or choice.finish_reason == "length":
        return "", None
    return printable(content), choice


def _read(completion: ChatCompletion) -> _Reply:
    usage = completion.usage
    prompt_tokens = usage.prompt_tokens if usage else 0
    answer_tokens = usage.completion_tokens if usage else 0
    if not completion.choices:
        return _Reply(Fault("it is empty"), "", None, prompt_tokens, answer_tokens)
    choice = completion.choices[0]
    # The client does not check what a server replies: null or another type may come.
    message: object = choice.message
    if not isinstance(message, ChatCompletionMessage):
        fault = Fault("it has no message")
        return _Reply(fault, "", None, prompt_tokens, answer_tokens)
    content: object = message.content
    raw = content if isinstance(content, str) else ""
    form: Form | Fault
    if choice.message.refusal or choice.finish_reason == "content_filter":
        # The server itself declined, which is a verdict and no malformed output.
        reasoning = printable(choice.message.refusal or "Withheld by a content filter.")
        raw = raw or reasoning
        form = Form((), (), reasoning, can_answer=False, answer="")
        choice = choice.model_copy(update={"logprobs": None})
    elif choice.finish_reason == "length":
        form = Fault("it was cut off for its length; write less")
    else:
        form = read_form(raw)
    return _Reply(form, printable(raw), choice, prompt_tokens, answer_tokens)


def _generation(first: _Reply, last: _Reply, milliseconds: float) -> Generation:
    is_second = last is not first
    form = last.form
    raw = f"{first.raw}\n\n{last.raw}" if is_second else last.raw
    generation = Generation(
        cited=(),
        quotes=(),
        reasoning="",
        can_answer=False,
        verdict_probability=None,
        answer="",
        malformed=True,
        repaired=False,
        log_probability=None,
        raw=raw,
        prompt_tokens=first.prompt_tokens + (last.prompt_tokens if is_second else 0),
        answer_tokens=first.answer_tokens + (last.answer_tokens if is_second else 0),
        milliseconds=milliseconds,
    )
    if isinstance(form, Fault):
        return generation
    return replace(
        generation,
        cited=form.evidence,
        quotes=form.quotes,
        reasoning=form.reasoning,
        can_answer=form.can_answer,
        verdict_probability=verdict(last.choice) if last.choice else None,
        answer=form.answer,
        malformed=False,
        repaired=is_second,
        log_probability=(
            text_log_probability(last.choice)
            if last.choice and form.can_answer
            else None
        ),
    )


def _blamed(
    error: openai.APIStatusError, refused: frozenset[_Feature]
) -> _Feature | None:
    """Return what to leave out next, or None if nothing is left to leave out."""
    said = f"{error.message} {error.body}"
    remaining = [feature for feature in _FEATURES if feature not in refused]
    named = [
        feature
        for feature in remaining
        if any(name in said for name in _PARAMETERS[feature])
    ]
    return next(iter([*named, *remaining]), None)


def _pause_seconds(error: openai.APIError, attempt: int) -> float:
    """Return what the server asked for in whole seconds, or twice the last pause."""
    if isinstance(error, openai.APITimeoutError):
        return float("inf")  # the whole answer's time is gone
    asked = ""
    if isinstance(error, openai.APIStatusError):
        asked = error.response.headers.get("retry-after", "")
    if asked.isascii() and asked.isdigit():
        return float(asked)
    return min(_FIRST_PAUSE_SECONDS * 2.0**attempt, _LONGEST_PAUSE_SECONDS)
