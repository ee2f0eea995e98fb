"""Writers that fill in enrichment's forms with a language model."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from accounts.ids import digest
from kb.enrichment.forms import Completion, Form, Slot, read_reply, read_values, tidy
from qa.inference.server import ServerLanguageModel
from qa.inference.server_reply import Fault

if TYPE_CHECKING:
    from probes.language_model import Context, WhiteBoxModel

_REQUESTS_AT_ONCE: Final = 4  # a server that takes one at a time queues them
_JSON: Final = "Reply with one JSON object with the fields {fields} and nothing else."

# Sixteen rows take twice the time of one, and 25 MB for keys and values.
_ROWS_AT_ONCE: Final = 16
_MAX_TOKENS: Final = 60
_MAX_GIVEN_TOKENS: Final = 160
# Part of the fingerprint: change it when the output changes.
_WRITING: Final = "line by line; 1"


class ServerWriter:
    """`kb.enrichment.forms.Writer` on a chat-completions server, as JSON."""

    def __init__(self, server: ServerLanguageModel) -> None:
        self._server = server
        self.name = server.name
        self.fingerprint = server.fingerprint

    def fill_in(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        *,
        temperature: float,
        seed: int,
    ) -> Sequence[Completion | None]:
        """Have the form filled in; no seed is sent, as not every server accepts one."""
        fields = ", ".join(
            f'"{slot.name}" ({slot.description})' for slot in form.wanted
        )
        names = ", ".join(slot.name for slot in form.wanted)

        def ask(values: Mapping[str, str]) -> Completion | None:
            filled = self._server.fill_in(
                f"{form.instructions} {_JSON.format(fields=fields)}",
                "\n".join(
                    f"{label}: {tidy(values[name])}" for name, label in form.given
                ),
                schema=form.schema(),
                read=lambda reply: (
                    read_reply(form, reply)
                    or Fault(f"it is not a JSON object with {names}")
                ),
                temperature=temperature,
                measured=form.slots[0].name,
            )
            if filled.value is None:
                return None
            return Completion(filled.value, filled.log_probability)

        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return list(pool.map(ask, given))


class WhiteBoxWriter:
    """`kb.enrichment.forms.Writer` on a white-box model, preferably without an adapter.

    The frame is fixed and the model fills in one line after the other, so that even 135
    million parameters hardly ever give unreadable output. A confidence is the mean of
    the anchor words' values, weighted by how likely each is to come next (after Lin,
    Hilton and Evans, "Teaching models to express their uncertainty in words", 2022).
    """

    def __init__(self, model: "WhiteBoxModel") -> None:
        self._model = model
        self.name = model.name
        self.fingerprint = digest(model.fingerprint, _WRITING)

    def fill_in(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        *,
        temperature: float,
        seed: int,
    ) -> Sequence[Completion | None]:
        filled: list[Completion | None] = []
        for begin in range(0, len(given), _ROWS_AT_ONCE):
            batch = given[begin : begin + _ROWS_AT_ONCE]
            filled += self._fill_batch(form, batch, temperature, seed + begin)
        return filled

    def _fill_batch(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        temperature: float,
        seed: int,
    ) -> list[Completion | None]:
        model, tokens = self._model, self._model.tokens
        rows = [self._given(form, values) for values in given]
        values: list[dict[str, object]] = [{} for _ in given]
        likelihoods: list[float | None] = [None] * len(given)
        with model.turn():
            prefix = model.read_prefix(tokens.encode_text(_introduction(form)))
            for slot in form.wanted:
                label = tokens.encode_text(f"{slot.label}:")
                rows = [(*row, *label) for row in rows]
                if slot.anchors:
                    shares = self._confidences(slot, rows, prefix)
                    for own, share in zip(values, shares, strict=True):
                        own[slot.name] = share
                    continue
                written = model.write_each(
                    rows,
                    prefix,
                    max_tokens=_MAX_TOKENS,
                    stop=("\n",),
                    temperature=temperature,
                    seed=seed,
                )
                for at, text in enumerate(written):
                    # A line that was cut off does not count.
                    values[at][slot.name] = tidy(text.text) if text.finished else ""
                    if likelihoods[at] is None:
                        likelihoods[at] = _mean(text.log_probabilities)
                rows = [
                    (*row, *tokens.encode_text(f" {own[slot.name]}\n"))
                    for row, own in zip(rows, values, strict=True)
                ]
        return [
            None if read is None else Completion(read, likelihood)
            for read, likelihood in zip(
                (read_values(form, own) for own in values), likelihoods, strict=True
            )
        ]

    def _given(self, form: Form, values: Mapping[str, str]) -> tuple[int, ...]:
        ids: list[int] = []
        for name, label in form.given:
            line = self._model.tokens.encode_text(f"{label}: {tidy(values[name])}")
            ids += line[:_MAX_GIVEN_TOKENS]
            ids += self._model.tokens.encode_text("\n")
        return tuple(ids)

    def _confidences(
        self, slot: Slot, rows: Sequence[Sequence[int]], prefix: "Context"
    ) -> list[float]:
        words = [self._model.tokens.encode_text(f" {word}") for word, _ in slot.anchors]
        # The first token in which the words differ tells them apart.
        shared = 0
        while len({word[: shared + 1] for word in words}) == 1:
            shared += 1
        begun = [(*row, *words[0][:shared]) for row in rows]
        means = [value for _, value in slot.anchors]
        shares = self._model.weigh_each(begun, [word[shared] for word in words], prefix)
        return [min(1.0, max(0.0, float(row @ means))) for row in shares]


def _introduction(form: Form) -> str:
    labels = [label for _, label in form.given] + [slot.label for slot in form.slots]
    shown = (
        "".join(
            f"{label}: {value}\n" for label, value in zip(labels, values, strict=True)
        )
        for values in form.examples
    )
    return "\n".join((f"{form.instructions}\n", *shown, ""))


def _mean(values: Sequence[float]) -> float | None:
    mean = math.fsum(values) / len(values) if values else -math.inf
    return mean if math.isfinite(mean) else None
