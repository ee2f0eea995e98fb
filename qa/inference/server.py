"""Any OpenAI-compatible server as the language model."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from accounts.ids import digest
from qa.inference.server_reply import (
    INSTRUCTIONS,
    Fault,
    Form,
    printable,
    read_form,
    reply_schema,
    text_log_probability,
    user_message,
    verdict,
)
from qa.pipeline.language_model import NO_CAPTURE, Capture, Generation, Prompt

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
    from openai.types.chat.chat_completion import Choice

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Reply:
    """One reply of the server.

    Attributes:
        fault: Why it can't be read at all; "" if it can.
        declined: Why the server itself declined to answer; "" if it did not.
    """

    text: str = ""
    fault: str = ""
    declined: str = ""
    choice: "Choice | None" = None
    prompt_tokens: int = 0
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Filled(Generic[Value]):
    """The caller's own form, filled in.

    Attributes:
        value: The last reply, parsed; None if it could not be.
        verdict_probability: Probability that "can_answer" is true; None if the server
            does not report it.
        log_probability: Mean natural-log probability from the measured field on; None
            likewise.
    """

    value: Value | None
    repaired: bool
    verdict_probability: float | None
    log_probability: float | None
    milliseconds: float


class ServerLanguageModel:
    """`qa.pipeline.language_model.LanguageModel` on a chat-completions server.

    The instructions also ask for the schema's JSON in words, for servers that do not
    support schemas.
    """

    def __init__(
        self, *, url: str, key: str, model: str, timeout_seconds: float, retries: int
    ) -> None:
        """Set up the client; the timeout covers a whole answer with all its retries."""
        # The client library takes 40 MiB and most of a second to import: a process that
        # asks no server never imports it.
        from qa.inference.server_client import ServerClient  # noqa: PLC0415

        self._client = ServerClient(
            url=url, key=key, model=model, timeout_seconds=timeout_seconds,
            retries=retries,
        )  # fmt: skip
        self._timeout_seconds = timeout_seconds
        self.name = model
        self.fingerprint = digest(self._client.host, model, INSTRUCTIONS)

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        began = time.monotonic()
        form, replies = self._ask(
            INSTRUCTIONS,
            user_message(prompt),
            _form,
            schema=reply_schema(range(1, len(prompt.evidence) + 1)),
        )
        generation = Generation(
            malformed=isinstance(form, Fault),
            raw="\n\n".join(reply.text or reply.declined for reply in replies),
            prompt_tokens=sum(reply.prompt_tokens for reply in replies),
            answer_tokens=sum(reply.answer_tokens for reply in replies),
            milliseconds=(time.monotonic() - began) * 1000,
        )
        if isinstance(form, Fault):
            return generation
        choice = None if replies[-1].declined else replies[-1].choice
        return replace(
            generation,
            cited=form.evidence,
            quotes=form.quotes,
            reasoning=form.reasoning,
            can_answer=form.can_answer,
            verdict_probability=verdict(choice) if choice else None,
            answer=form.answer,
            repaired=len(replies) > 1,
            log_probability=(
                text_log_probability(choice) if choice and form.can_answer else None
            ),
        )

    def fill_in(
        self,
        instructions: str,
        message: str,
        *,
        schema: Mapping[str, object],
        read: Callable[[str], Value | Fault],
        temperature: float = 0.0,
        measured: str = "",
        timeout_seconds: float | None = None,
    ) -> Filled[Value]:
        """Have the caller's own form filled in, with one retry if it can't be read.

        `read` returns the parsed reply, or what is wrong with it; `measured` is the
        text field whose likelihood is wanted; the timeout is at most that of an answer.
        """
        began = time.monotonic()

        def read_reply(reply: _Reply) -> Value | Fault:
            return read("" if reply.fault else reply.text)

        value, replies = self._ask(
            instructions, message, read_reply, schema=schema, temperature=temperature,
            timeout_seconds=timeout_seconds,
        )  # fmt: skip
        choice = None if isinstance(value, Fault) else replies[-1].choice
        return Filled(
            value=None if isinstance(value, Fault) else value,
            repaired=len(replies) > 1 and not isinstance(value, Fault),
            verdict_probability=verdict(choice) if choice else None,
            log_probability=(
                text_log_probability(choice, measured) if choice and measured else None
            ),
            milliseconds=(time.monotonic() - began) * 1000,
        )

    def _ask(
        self,
        instructions: str,
        message: str,
        read: Callable[[_Reply], Value | Fault],
        *,
        schema: Mapping[str, object],
        temperature: float = 0.0,
        timeout_seconds: float | None = None,
    ) -> tuple[Value | Fault, list[_Reply]]:
        seconds = min(timeout_seconds or self._timeout_seconds, self._timeout_seconds)
        deadline = time.monotonic() + seconds
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": message},
        ]
        replies: list[_Reply] = []
        while True:
            completion = self._client.complete(
                messages, deadline=deadline, schema=schema, temperature=temperature
            )
            replies.append(reply := _reply(completion))
            found = read(reply)
            if not isinstance(found, Fault) or len(replies) > 1:
                return found, replies
            messages += [
                {"role": "assistant", "content": reply.text or "(empty)"},
                {
                    "role": "user",
                    "content": f"That could not be read: {found}. Reply once "
                    "more with the complete JSON object and nothing else.",
                },
            ]


def _reply(completion: "ChatCompletion") -> _Reply:
    from openai.types.chat import ChatCompletionMessage  # noqa: PLC0415  # see above

    usage = completion.usage
    reply = _Reply(
        fault="it is empty",
        prompt_tokens=usage.prompt_tokens if usage else 0,
        answer_tokens=usage.completion_tokens if usage else 0,
    )
    if not completion.choices:
        return reply
    choice = completion.choices[0]
    # The client does not validate the server's reply: null or another type may come.
    message: object = choice.message
    if not isinstance(message, ChatCompletionMessage):
        return replace(reply, fault="it has no message")
    content: object = message.content
    text = printable(content) if isinstance(content, str) else ""
    if message.refusal or choice.finish_reason == "content_filter":
        # The server itself declined, which is a verdict, not malformed output.
        why = printable(message.refusal or "Withheld by a content filter.")
        return replace(reply, text=text, fault="", declined=why, choice=choice)
    is_cut = choice.finish_reason == "length"
    fault = "it was cut off for its length; write less" if is_cut else ""
    return replace(reply, text=text, fault=fault, choice=choice)


def _form(reply: _Reply) -> Form | Fault:
    if reply.declined:
        return Form((), (), reply.declined, can_answer=False, answer="")
    return Fault(reply.fault) if reply.fault else read_form(reply.text)
