"""The instructed form, filled in by a white-box model that follows instructions.

It uses the same instructions, schema and parser as a server's model. Each field is
written greedily, held to its part of the schema, in order: evidence, quotes, reasoning,
verdict, answer. The verdict is the probability of "true" versus "false"; the answer is
drafted in either case, as in the other forms, and the policy decides.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from accounts.ids import digest
from probes.language_model import Context, Generated, WhiteBoxModel
from probes.language_model.values import Look
from probes.language_model.writing import JsonValues
from probes.taps import Activations, Tap
from qa.inference import instructed_form
from qa.inference.instructed_form import (
    END,
    FORM,
    LEADS,
    fixed_ids,
    parting,
    prompt_ids,
    written_value,
)
from qa.inference.server_reply import (
    INSTRUCTIONS,
    LIMITS,
    SCHEMA,
    Fault,
    printable,
    read_form,
    value_schema,
)
from qa.inference.white_box import PassingForm, bounded_mean
from qa.pipeline.language_model import (
    NO_CAPTURE,
    Capture,
    Generation,
    KeptActivations,
    Prompt,
)

_MAX_TOKENS: Final = 2_048
_VERDICTS: Final = ("true", "false")


@dataclass(slots=True)
class _Reply:
    """The reply written so far, and the model's context after it."""

    context: Context
    text: str = ""
    tokens: int = 0
    values: dict[str, Generated] = field(default_factory=dict)


class InstructedLanguageModel:
    """`qa.pipeline.language_model.LanguageModel` on a white-box model."""

    form: Final[PassingForm] = instructed_form

    def __init__(self, model: WhiteBoxModel) -> None:
        self.model = model
        self._values = JsonValues(model.tokens)
        self._fixed = fixed_ids(model.tokens)
        schema = json.dumps(SCHEMA)
        self.fingerprint = digest(model.fingerprint, FORM, INSTRUCTIONS, schema, LIMITS)

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        if not prompt.evidence:
            raise ValueError("A question without evidence has no answer to generate.")
        began = time.perf_counter()
        ids = prompt_ids(self.model.tokens, prompt)
        with self.model.turn():
            prefix = self.model.read_prefix(self._fixed)
            look = self.model.look(
                ids[len(prefix) :], prefix, taps=capture.prompt, watch=capture.watch
            )
            drafted = self._write(len(prompt.evidence), look, capture)
        return replace(
            drafted,
            prompt_tokens=len(ids),
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    def _write(self, pieces: int, look: Look, capture: Capture) -> Generation:
        if look.context is None:
            return Generation(
                trace=KeptActivations(prompt=look.states, is_stopped=True)
            )
        reply = _Reply(look.context)
        cited = self._write_value(reply, "evidence", range(1, pieces + 1))
        numbers = sorted(set(json.loads(cited.text))) if cited.finished else []
        self._write_value(reply, "quotes", numbers)
        self._write_value(reply, "reasoning")
        verdict = self._judge(reply)
        answer = self._write_value(reply, "answer", taps=capture.answer)
        reply.text += END
        is_whole = all(value.finished for value in reply.values.values())
        form = read_form(reply.text) if is_whole else Fault("it is cut off")
        generation = Generation(
            can_answer=verdict >= 0.5,
            verdict_probability=verdict,
            raw=printable(reply.text),
            answer_tokens=reply.tokens,
            trace=KeptActivations(prompt=look.states),
        )
        if isinstance(form, Fault):
            return replace(generation, can_answer=False, malformed=True)
        return replace(
            self._with_answer(generation, answer, look.states, with_end=capture.ends),
            cited=form.evidence,
            quotes=form.quotes,
            reasoning=form.reasoning,
            answer=form.answer,
        )

    def _lead(self, reply: _Reply, name: str) -> None:
        ids = self.model.tokens.encode_text(LEADS[name])
        reply.context = self.model.read(ids, reply.context)
        reply.text += LEADS[name]

    def _write_value(
        self,
        reply: _Reply,
        name: str,
        pieces: Sequence[int] = (),
        *,
        taps: Sequence[Tap] = (),
    ) -> Generated:
        self._lead(reply, name)
        held = self._values.value(value_schema(name, pieces=pieces))
        value = self.model.generate(
            reply.context,
            max_tokens=_MAX_TOKENS,
            allowed=held.allowed,
            forced=held.forced,
            taps=taps,
        )
        reply.values[name] = value
        reply.context = value.context
        reply.text += f" {value.text.lstrip()}"  # some tokenizers drop the space
        reply.tokens += len(value.ids)
        return value

    def _judge(self, reply: _Reply) -> float:
        """Return the probability of "true" in [0, 1], and go on as if it were written.

        It is relative to "false", at the first token in which the two differ.
        """
        self._lead(reply, "can_answer")
        true, false = (self.model.tokens.encode_text(f" {word}") for word in _VERDICTS)
        parts = parting(true, false)
        context = self.model.read(true[:parts], reply.context)
        chances = context.next_log_probabilities[[true[parts], false[parts]]]
        reply.context = self.model.read(true[parts:], context)
        reply.text += f" {_VERDICTS[0]}"
        return float(chances.softmax(0)[0])

    def _with_answer(
        self,
        generation: Generation,
        answer: Generated,
        prompt: Mapping[Tap, Activations],
        *,
        with_end: bool,
    ) -> Generation:
        value = written_value(self.model.tokens, answer.ids)
        own = slice(value.start, len(answer.ids) - 1)
        likelihoods = answer.log_probabilities[own]
        kept = answer.activations if value.texts else {}
        return replace(
            generation,
            tokens=value.texts,
            log_probability=bounded_mean(likelihoods),
            least_log_probability=min(likelihoods, default=None),
            entropy=bounded_mean(answer.entropies[own]),
            trace=KeptActivations(
                answer={tap: rows[own] for tap, rows in kept.items()},
                end={tap: rows[-1:] for tap, rows in kept.items() if with_end},
                prompt=prompt,
            ),
        )
