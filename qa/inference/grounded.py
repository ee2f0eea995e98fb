"""The grounded form, filled in by a white-box model with an adapter fitted for it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from accounts.ids import digest
from probes.language_model import Context, Tokens, WhiteBoxModel
from probes.language_model.values import Look
from qa.inference.evidence_text import MAX_ENTRY_TOKENS, PROMPTS, flatten
from qa.inference.grounded_form import (
    FORM,
    INSTRUCTION,
    Spans,
    instruction_ids,
    notes_ids,
)
from qa.inference.guided import GuidedLanguageModel
from qa.inference.white_box import bounded_mean, token_texts
from qa.pipeline.language_model import (
    NO_CAPTURE,
    Capture,
    Generation,
    KeptActivations,
    Prompt,
)

_REASONING: Final[Mapping[str, Sequence[str]]] = PROMPTS["grounded"]["reasoning"]


def reasoning(language: str, number: int | None, pieces: int, can_answer: bool) -> str:
    """Describe the finding in words; `number` is None if nothing was found."""
    found, lost, yes, no = _REASONING.get(language, _REASONING["en"])
    if number is None:
        return lost.format(pieces=pieces)
    judged = yes if can_answer else no
    return found.format(pieces=pieces, number=number, judged=judged)


_MAX_TOKENS: Final = 64
# Part of the fingerprint: change it when the output changes.
_WRITING: Final = "whole words of one piece; 1"


class GroundedLanguageModel:
    """`qa.pipeline.language_model.LanguageModel` on a white-box model with an adapter."""

    def __init__(self, model: WhiteBoxModel) -> None:
        self.model = model
        # The guided form on the same model, which gives the verdict.
        self.guided = GuidedLanguageModel(model)
        form = (FORM, INSTRUCTION, _WRITING)
        self.fingerprint = digest(self.guided.fingerprint, *form)

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        if not prompt.evidence:
            raise ValueError("A question without evidence has no answer to generate.")
        began = time.perf_counter()
        tokens = self.model.tokens
        notes = notes_ids(tokens, prompt.question, prompt.evidence)
        with self.model.turn():
            prefix = self.model.read_prefix(instruction_ids(tokens))
            look = self.model.look(
                notes, prefix, taps=capture.prompt, watch=capture.watch
            )
            drafted = self._write(prompt, look, capture)
        return replace(
            drafted,
            prompt_tokens=drafted.prompt_tokens + len(prefix) + len(notes),
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    def _write(self, prompt: Prompt, look: Look, capture: Capture) -> Generation:
        if look.context is None:
            return Generation(
                trace=KeptActivations(prompt=look.states, is_stopped=True)
            )
        tokens = self.model.tokens
        spans = Spans(prompt.evidence, tokens, limit=MAX_ENTRY_TOKENS)
        written = self.model.generate(
            look.context,
            max_tokens=_MAX_TOKENS,
            allowed=spans.allowed,
            taps=capture.answer,
            with_end=capture.ends,
        )
        reading = self.guided.read(flatten(prompt.question).strip(), prompt.evidence)
        span = spans.span(written.ids)
        number = span.number if span else None
        verdict = reading.verdicts[span.number - 1] if span else 0.0
        willingness = _willingness(look.context, tokens)
        return Generation(
            cited=(span.number,) if span else (),
            quotes=((span.number, span.sentences),) if span else (),
            reasoning=reasoning(
                prompt.language, number, len(prompt.evidence), verdict >= 0.5
            ),
            can_answer=verdict >= 0.5,
            verdict_probability=verdict,
            willingness=willingness,
            answer=span.sentences if span else "",
            log_probability=bounded_mean(written.log_probabilities),
            raw=f"Verdict: {verdict:.3f}\nWillingness: {willingness:.3f}\n"
            f"Answer:{written.text}",
            prompt_tokens=reading.tokens,
            answer_tokens=len(written.ids),
            short_answer=span.words if span else "",
            tokens=token_texts(written.ids, tokens),
            least_log_probability=min(written.log_probabilities, default=None),
            entropy=bounded_mean(written.entropies),
            trace=KeptActivations(
                answer=written.activations, end=written.end, prompt=look.states
            ),
        )


def _willingness(context: Context, tokens: Tokens) -> float:
    """Return the probability in [0, 1] that the answer has at least one token."""
    ends = context.next_log_probabilities[sorted(tokens.end_ids)]
    return 1.0 - float(ends.exp().sum().clamp(max=1.0))
