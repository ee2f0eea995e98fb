"""The step-by-step form, filled in by a white-box model.

The form's structure (labels, line breaks, numbers) is written by us and the model only
fills its fields: which piece of evidence, the words of it that answer, whether they do.
So even a model of 135 million parameters can hardly give malformed output, and the
answer, a copy of words of the cited entry, can hold nothing invented.
"""

import hashlib
import time

from probes.language_model import Turn, WhiteBoxModel, copy_span
from qa.language_models.evidence_text import flatten
from qa.pipeline.types import Evidence, Generation, Prompt

_SYSTEM = (
    "You help a service desk. You are given numbered notes and a question. Name the note "
    "that answers the question, copy its words, and say whether they answer it. Use "
    "nothing but the notes."
)


class GuidedLanguageModel:
    """`qa.pipeline.types.LanguageModel` on a white-box model."""

    def __init__(self, model: WhiteBoxModel) -> None:
        """Take over a loaded model."""
        self._model = model
        self._fingerprint = hashlib.sha256(
            f"{model.fingerprint}\n{_SYSTEM}".encode()
        ).hexdigest()

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the model's fingerprint and the form's text."""
        return self._fingerprint

    def generate(self, prompt: Prompt) -> Generation:
        """Fill in the form from the evidence alone."""
        began = time.perf_counter()
        model, tokens = self._model, self._model.tokens
        evidence = "\n".join(
            f"[{number}] {_shown(piece)}"
            for number, piece in enumerate(prompt.evidence, start=1)
        )
        asked = f"Notes:\n{evidence}\nQuestion: {flatten(prompt.question)}"
        with model.turn():
            context = model.read(
                tokens.encode_chat(
                    [Turn("system", _SYSTEM), Turn("user", asked)], open_answer=True
                )
            )
            prompt_tokens = len(context)
            context = model.read(tokens.encode_text("Note: ["), context)
            choice = model.choose(
                [
                    tokens.encode_text(f"{number}]")
                    for number in range(1, len(prompt.evidence) + 1)
                ],
                context,
            )
            piece = prompt.evidence[choice.index]
            context = model.read(
                tokens.encode_text(f"{choice.index + 1}]\nAnswer:"), context
            )
            source, offsets = tokens.encode_with_offsets(" " + flatten(piece.text))
            text = " " + piece.text
            starts = [
                i
                for i, (a, _) in enumerate(offsets)
                if i == 0 or text[a : a + 1] == " "
            ]
            ends = [
                i + 1
                for i, (_, b) in enumerate(offsets)
                if b == len(text) or not text[b].isalnum()
            ]
            span = copy_span(
                model,
                context,
                source,
                starts=starts,
                ends=ends,
                stops=[*tokens.end_ids, *tokens.encode_text("\n")],
            )
            answer = text[offsets[span.start][0] : offsets[span.end - 1][1]].strip()
            context = model.read(source[span.start : span.end], context)
            context = model.read(
                tokens.encode_text("\nDoes it answer the question?"), context
            )
            verdict = model.choose(
                [tokens.encode_text(" yes"), tokens.encode_text(" no")], context
            )
        probability = verdict.probabilities[0]
        number = choice.index + 1
        mean = sum(span.log_probabilities) / len(span.log_probabilities)
        return Generation(
            cited=(number,),
            quotes=((number, answer),),
            reasoning=f"Note {number} says: {answer}",
            can_answer=probability >= 0.5,
            verdict_probability=probability,
            answer=answer,
            malformed=False,
            repaired=False,
            log_probability=mean,
            raw=tokens.decode(context.ids[prompt_tokens:]),
            prompt_tokens=prompt_tokens,
            answer_tokens=span.end - span.start,
            milliseconds=(time.perf_counter() - began) * 1000,
        )


def _shown(piece: Evidence) -> str:
    text = flatten(piece.text)
    return f"{flatten(piece.question)} {text}" if piece.question else text
