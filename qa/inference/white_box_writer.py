"""Enrichment's forms filled in by a white-box model.

We write the frame (instructions, examples, labels, line ends) and the model fills one line
after the other, so that 135 million parameters can hardly give what can't be read. A
confidence is not written at all: it is the mean of what the anchor words mean, each
weighed by how likely it is to come next.

References:
    Lin, Hilton and Evans, "Teaching models to express their uncertainty in words" (2022).
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Final

from kb.enrichment.forms import Completion, Form, Slot, read_values, tidy
from probes.language_model import Context, WhiteBoxModel

# Sixteen rows take twice the time of one, and 25 MB of keys and values.
_ROWS_AT_ONCE: Final = 16
_MOST_TOKENS: Final = 60
_LONGEST_GIVEN_TOKENS: Final = 160
# Changes when what is written changes: it is part of the fingerprint.
_WRITING: Final = "line by line; 1"


class WhiteBoxWriter:
    """`kb.enrichment.forms.Writer` on a white-box model, best one without an adapter."""

    def __init__(self, model: WhiteBoxModel) -> None:
        """Take a loaded model."""
        self._model = model
        self._fingerprint = hashlib.sha256(
            f"{model.fingerprint}\n{_WRITING}".encode()
        ).hexdigest()

    @property
    def name(self) -> str:
        """The model's name, as it was asked for."""
        return self._model.name

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the model's fingerprint and the way of writing."""
        return self._fingerprint

    def fill_in(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        *,
        temperature: float,
        seed: int,
    ) -> Sequence[Completion | None]:
        """Fill in the form side by side; see `Writer`."""
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
                    max_tokens=_MOST_TOKENS,
                    stop=("\n",),
                    temperature=temperature,
                    seed=seed,
                )
                for at, text in enumerate(written):
                    # A line that was cut off is no line.
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
            ids += line[:_LONGEST_GIVEN_TOKENS]
            ids += self._model.tokens.encode_text("\n")
        return tuple(ids)

    def _confidences(
        self, slot: Slot, rows: Sequence[Sequence[int]], prefix: Context
    ) -> list[float]:
        """Return for each row the anchors' mean value in [0, 1]."""
        words = [self._model.tokens.encode_text(f" {word}") for word, _ in slot.anchors]
        # Where they part, each is told by one token.
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
