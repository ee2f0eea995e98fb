"""The guided form: which note fits, whether it answers, and a sentence copied."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from accounts.ids import digest
from kb.types import Evidence
from probes.language_model import (
    Context,
    Copied,
    Passage,
    WhiteBoxModel,
    copy_span,
    copy_whole,
)
from qa.inference.evidence_text import (
    MAX_ENTRY_TOKENS,
    MAX_QUESTION_TOKENS,
    PROMPTS,
    flatten,
    note_text,
    sentence_spans,
)
from qa.inference.white_box import bounded_mean
from qa.pipeline.language_model import NO_CAPTURE, Capture, Generation, Prompt

EXAMPLES: Final[Sequence[Sequence[str]]] = PROMPTS["guided"]["examples"]
NO_NOTE: Final = "-"

_REASONING: Final[Mapping[str, Sequence[str]]] = PROMPTS["guided"]["reasoning"]


def reasoning(
    language: str, number: int, pieces: int, share: float, can_answer: bool
) -> str:
    sentence, yes, no = _REASONING.get(language, _REASONING["en"])
    return sentence.format(
        pieces=pieces, number=number, share=share, verdict=yes if can_answer else no
    )


# A logistic curve over the share of surprise that a note saves, fitted on questions
# about a made-up card issuer with equal weight on answerable and unanswerable ones.
_VERDICT_SLOPE: Final = 13.6
_VERDICT_MIDDLE: Final = 0.227
# The question's surprise after an unrelated note, as a share of that after no note.
_UNRELATED_SHARE: Final = 0.85
_COMPARED_PIECES: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The piece that fits best, and how well each fits.

    Attributes:
        note: That piece after the fixed prefix, up to where the question begins.
        share: Its probability in [0, 1] among the pieces.
        verdicts: For each piece, the probability in [0, 1] that it answers the
            question.
    """

    index: int
    note: Context | Passage
    share: float
    verdicts: tuple[float, ...]
    tokens: int

    @property
    def verdict(self) -> float:
        return self.verdicts[self.index]


class GuidedLanguageModel:
    """`qa.pipeline.language_model.LanguageModel` on a white-box model."""

    def __init__(self, model: WhiteBoxModel) -> None:
        self.model = model
        self.examples = "".join(
            f"Note: {note}\nQuestion: {question}\nAnswer: {answer}\n\n"
            for note, question, answer in EXAMPLES
        )
        constants = f"{_VERDICT_SLOPE} {_VERDICT_MIDDLE} {_UNRELATED_SHARE}"
        self.fingerprint = digest(model.fingerprint, self.examples, constants)

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        if not prompt.evidence:
            raise ValueError("A question without evidence has no answer to generate.")
        began = time.perf_counter()
        question = flatten(prompt.question).strip()
        with self.model.turn():
            reading = self.read(question, prompt.evidence)
            piece = prompt.evidence[reading.index]
            answer, copied = self._copy(question, piece, reading.note)
        number = reading.index + 1
        can_answer = reading.verdict >= 0.5
        why = reasoning(
            prompt.language, number, len(prompt.evidence), reading.share, can_answer
        )
        return Generation(
            cited=(number,),
            quotes=((number, answer),),
            reasoning=why,
            can_answer=can_answer,
            verdict_probability=reading.verdict,
            answer=answer,
            log_probability=bounded_mean(copied.log_probabilities),
            raw=f"Note: {number}\nVerdict: {reading.verdict:.3f}\nAnswer: {answer}",
            prompt_tokens=reading.tokens,
            answer_tokens=copied.end - copied.start,
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    def read(self, question: str, evidence: Sequence[Evidence]) -> Reading:
        """Find the piece that fits a question (one line) best, and how well."""
        model = self.model
        with model.turn():
            prefix = model.read_prefix(model.tokens.encode_text(self.examples))
            notes = [self.read_note(piece) for piece in evidence]
            return self._compare(question, notes, prefix)

    def read_note(self, piece: Evidence) -> Context | Passage:
        model = self.model
        with model.turn():
            prefix = model.read_prefix(model.tokens.encode_text(self.examples))
            return model.read_passage(self._note(piece), prefix)

    def _compare(
        self, question: str, notes: Sequence[Context | Passage], prefix: Context
    ) -> Reading:
        tokens = self.model.tokens
        compared_notes = [*notes]
        if len(notes) < _COMPARED_PIECES:
            none = tokens.encode_text(f"Note: {NO_NOTE}\nQuestion:")
            compared_notes.append(self.model.read_passage(none, prefix))
        asked = tokens.encode_text(f" {question}")[:MAX_QUESTION_TOKENS]
        scored = self.model.score_each([asked] * len(compared_notes), compared_notes)
        surprises = [-row.total for row in scored]
        found = surprises[: len(notes)]
        index = min(range(len(found)), key=found.__getitem__)
        unrelated = surprises[-1] * _UNRELATED_SHARE
        compared = [*found, *[unrelated] * (_COMPARED_PIECES - len(found))]
        return Reading(
            index=index,
            note=notes[index],
            share=1 / sum(math.exp(found[index] - surprise) for surprise in found),
            verdicts=tuple(_verdict(surprise, compared) for surprise in found),
            tokens=len(prefix)
            + sum(
                len(note) - (len(prefix) if isinstance(note, Context) else 0)
                for note in compared_notes
            )
            + len(asked) * len(compared_notes),
        )

    def _copy(
        self, question: str, piece: Evidence, note: Context | Passage
    ) -> tuple[str, Copied]:
        model, tokens = self.model, self.model.tokens
        lead = (
            *tokens.encode_text(f" {question}")[:MAX_QUESTION_TOKENS],
            *tokens.encode_text("\nAnswer:"),
        )
        text = f" {flatten(piece.text)}"
        source, offsets = tokens.encode_with_offsets(text)
        source, offsets = (source[:MAX_ENTRY_TOKENS], offsets[:MAX_ENTRY_TOKENS])
        spans = _sentences_within(text, offsets[-1][1])
        first = [_token_at(offsets, start) for start, _ in spans]
        last = [_token_before(offsets, end) for _, end in spans]
        stops = sorted(tokens.end_ids | {tokens.encode_text("\n")[0]})
        if len(spans) == 1:
            (start, end), only = spans[0], source[first[0] : last[0]]
            copied = copy_whole(model, note, lead, only, stops=stops)
            return piece.text[start - 1 : end - 1], copied
        copied = copy_span(
            model,
            model.read(lead, model.resume(note)),
            source,
            starts=first,
            ends=last,
            stops=stops,
        )
        start = spans[first.index(copied.start)][0]
        end = spans[last.index(copied.end)][1]
        return piece.text[start - 1 : end - 1], copied

    def _note(self, piece: Evidence) -> tuple[int, ...]:
        tokens = self.model.tokens
        note = tokens.encode_text(f"Note: {note_text(piece)}")[:MAX_ENTRY_TOKENS]
        return (*note, *tokens.encode_text("\nQuestion:"))


def _verdict(own: float, surprises: Sequence[float]) -> float:
    """Return the probability in [0, 1] that a piece answers, from its surprise.

    Surprise is what the question costs the model after the piece. The worse half of the
    pieces shows that cost when nothing fits; the better half may contain the same fact
    twice.
    """
    worse = sorted(surprises)[len(surprises) // 2 :]
    saved = 1 - own * len(worse) / sum(worse) if sum(worse) > 0 else 0.0
    return 1 / (1 + math.exp(-_VERDICT_SLOPE * (saved - _VERDICT_MIDDLE)))


def _sentences_within(text: str, limit: int) -> list[tuple[int, int]]:
    spans = [span for span in sentence_spans(text) if span[1] <= limit]
    if spans:
        return spans
    words = text[:limit].rpartition(" ")[0].rstrip() or text[:limit]
    return [(len(words) - len(words.lstrip()), len(words))]


def _token_at(offsets: Sequence[tuple[int, int]], character: int) -> int:
    return next(i for i, (_, end) in enumerate(offsets) if end > character)


def _token_before(offsets: Sequence[tuple[int, int]], character: int) -> int:
    return sum(start < character for start, _ in offsets)
