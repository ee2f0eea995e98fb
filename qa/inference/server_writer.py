"""Enrichment's forms filled in by an OpenAI-compatible server, as JSON."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kb.enrichment.forms import Completion, Form, read_reply, tidy
from qa.inference.server import ServerLanguageModel

_AT_ONCE: Final = 4  # requests; a server that takes one at a time queues them
_JSON: Final = "Reply with one JSON object with the fields {fields} and nothing else."


class ServerWriter:
    """`kb.enrichment.forms.Writer` on a chat-completions server."""

    def __init__(self, server: ServerLanguageModel) -> None:
        """Take the server's client."""
        self._server = server

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the server's host and the model's name."""
        return self._server.fingerprint

    def fill_in(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        *,
        temperature: float,
        seed: int,
    ) -> Sequence[Completion | None]:
        """Have the form filled in, a few requests at once; see `Writer`.

        The seed is not sent: not every server takes one, and each draws anew anyhow.
        """
        instructions = _instructions(form)

        def ask(values: Mapping[str, str]) -> Completion | None:
            filled = self._server.fill_in(
                instructions,
                "\n".join(
                    f"{label}: {tidy(values[name])}" for name, label in form.given
                ),
                schema=form.schema(),
                fault_of=lambda reply: _fault(form, reply),
                temperature=temperature,
                measured=form.slots[0].name,
            )
            read = read_reply(form, filled.text) if filled.readable else None
            return None if read is None else Completion(read, filled.log_probability)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(ask, given))


def _instructions(form: Form) -> str:
    fields = ", ".join(f'"{slot.name}" ({slot.description})' for slot in form.wanted)
    return f"{form.instructions} {_JSON.format(fields=fields)}"


def _fault(form: Form, reply: str) -> str:
    if read_reply(form, reply) is not None:
        return ""
    return f"it is not a JSON object with {', '.join(s.name for s in form.wanted)}"
