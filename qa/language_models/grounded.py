"""The grounded form, filled in by a white-box model with an adapter fitted for it.

The model reads all notes and the question and writes the words of a note that answer it.
Where no note does it has learnt to write nothing: what it gives that, as against a first
word, is its verdict. Its best answer is drafted all the same, so that a calibrated
threshold decides and not the balance of the training data.

What is shown is the whole sentence that those words stand in, with them marked: no
condition is cut off. Words that stand in no entry are left without a citation, and no
answer without one is shown.
"""

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from probes.language_model import Context, Generated, Tokens, WhiteBoxModel
from probes.language_model.taps import Activations, Part, Tap
from qa.language_models.evidence_text import flatten, sentence_spans
from qa.language_models.grounded_prompt import (
    FORM,
    INSTRUCTION,
    instruction_ids,
    notes_ids,
)
from qa.language_models.grounded_text import reasoning
from qa.pipeline.activations import NO_CAPTURE, Capture, Place, Trace
from qa.pipeline.types import Evidence, Generation, Prompt

_MOST_TOKENS: Final = 64


@dataclass(frozen=True, slots=True)
class Found:
    """Where the written words stand.

    Attributes:
        number: The piece, 1-based.
        sentences: The whole sentences of it that hold them.
        words: The words as the piece has them.
    """

    number: int
    sentences: str
    words: str


class GroundedLanguageModel:
    """`qa.pipeline.types.LanguageModel` on a white-box model with an adapter."""

    def __init__(self, model: WhiteBoxModel) -> None:
        """Take over a loaded model, whose adapter was fitted for this form."""
        self._model = model
        form = f"{model.fingerprint}\n{FORM}\n{INSTRUCTION}"
        self._fingerprint = hashlib.sha256(form.encode()).hexdigest()

    @property
    def model(self) -> WhiteBoxModel:
        """The white-box model itself."""
        return self._model

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the model's fingerprint and the form."""
        return self._fingerprint

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        """Write the words of the evidence that answer the question.

        Raises:
            ValueError: There is no evidence; a question without any is refused before.
            TooManyTokensError: The evidence does not fit the model's context.
            LayerError: A place to be kept does not exist in this model.
        """
        if not prompt.evidence:
            msg = "A question without evidence has no answer to generate."
            raise ValueError(msg)
        began = time.perf_counter()
        model, tokens = self._model, self._model.tokens
        notes = notes_ids(tokens, prompt.question, prompt.evidence)
        with model.turn():
            prefix = model.read_prefix(instruction_ids(tokens))
            look = model.look(
                notes, prefix, taps=_taps(capture.prompt), watch=_watch(capture)
            )
            written = look.context and model.generate(
                look.context,
                max_tokens=_MOST_TOKENS,
                least_tokens=1,
                stop=("\n",),
                taps=_taps(capture.answer),
            )
        trace = Trace(
            answer=_places(written.activations) if written else {},
            prompt=_places(look.states),
            is_stopped=written is None,
        )
        read = len(prefix) + len(notes)
        drafted = (
            _draft(prompt, written, _verdict(look.context, tokens), tokens)
            if look.context and written
            else _NOTHING
        )
        return replace(
            drafted,
            prompt_tokens=read,
            milliseconds=(time.perf_counter() - began) * 1000,
            trace=trace,
        )


_NOTHING: Final = Generation(
    cited=(),
    quotes=(),
    reasoning="",
    can_answer=False,
    verdict_probability=None,
    answer="",
    malformed=False,
    repaired=False,
    log_probability=None,
    raw="",
    prompt_tokens=0,
    answer_tokens=0,
    milliseconds=0.0,
)


def find(words: str, evidence: Sequence[Evidence]) -> Found | None:
    """Return the first piece that holds `words`, as they are or in other letters' case.

    Only as whole words: "art" does not stand in "party".
    """
    pattern = rf"(?<!\w){re.escape(words)}(?!\w)"
    for flags in (re.NOFLAG, re.IGNORECASE):
        for number, piece in enumerate(evidence, start=1):
            text = flatten(piece.text)
            match = re.search(pattern, text, flags)
            if match:
                start, end = _sentences_around(text, *match.span())
                return Found(number, piece.text[start:end], match[0])
    return None


def _draft(
    prompt: Prompt, written: Generated, verdict: float, tokens: Tokens
) -> Generation:
    words = written.text.strip()
    found = find(words, prompt.evidence) if words else None
    can_answer = verdict >= 0.5
    number = found.number if found else None
    return replace(
        _NOTHING,
        cited=(number,) if number else (),
        quotes=((number, found.sentences),) if number and found else (),
        reasoning=reasoning(
            prompt.language, number, len(prompt.evidence), verdict, can_answer
        ),
        can_answer=can_answer,
        verdict_probability=verdict,
        answer=found.sentences if found else words,
        log_probability=_mean(written.log_probabilities),
        raw=f"Verdict: {verdict:.3f}\nAnswer:{written.text}",
        answer_tokens=len(written.ids),
        short_answer=found.words if found else words,
        tokens=_pieces(written, tokens),
        least_log_probability=min(written.log_probabilities, default=None),
        entropy=_mean(written.entropies),
    )


def _sentences_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the sentences that hold a span begin and end."""
    held = [span for span in sentence_spans(text) if span[0] < end and start < span[1]]
    return held[0][0], held[-1][1]


def _verdict(context: Context, tokens: Tokens) -> float:
    """Return how likely it is in [0, 1] that the answer does not end before it begins."""
    ends = context.next_log_probabilities[sorted(tokens.end_ids)]
    return 1.0 - float(ends.exp().sum().clamp(max=1.0))


def _pieces(written: Generated, tokens: Tokens) -> tuple[str, ...]:
    """Return the written tokens as text; joined they give it.

    A character may take several tokens; it stands with the last of them.
    """
    whole = [
        tokens.decode(written.ids[:count]) for count in range(len(written.ids) + 1)
    ]
    whole = [text.rstrip("\ufffd") for text in whole]
    return tuple(after[len(before) :] for before, after in pairwise(whole))


def _taps(places: Sequence[Place]) -> tuple[Tap, ...]:
    return tuple(Tap(place.layer, Part(place.part)) for place in places)


def _places(kept: Mapping[Tap, Activations]) -> dict[Place, Activations]:
    return {Place(tap.layer, tap.part.value): rows for tap, rows in kept.items()}


def _watch(capture: Capture) -> Callable[[Tap, Activations], bool] | None:
    watch = capture.watch
    if watch is None:
        return None
    return lambda tap, state: watch(Place(tap.layer, tap.part.value), state)


def _mean(values: Sequence[float]) -> float | None:
    return max(sum(values) / len(values), -1e6) if values else None
