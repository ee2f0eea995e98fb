"""The writer of monitored answers: a white-box model, its directions, and prompt forms.

The prefix is read once and never steered; the question, the notes and what is written
after it are steered. The monitor reads the activations of the very pass that writes.
"""

from collections.abc import Sequence
from typing import Final

from accounts.ids import digest
from accounts.loaded_once import LoadedOnce
from kb.text.words import sentences
from kb.types import Evidence
from probes.cards import ProbeKind
from probes.directions.sets import DirectionSet, directions_from
from probes.language_model import Generated, WhiteBoxModel
from probes.models import Probe
from qa.exceptions import LanguageModelUnavailableError
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.evidence_text import PROMPTS, flatten, note_text
from qa.inference.policy_models import load_closed_book_form
from qa.inference.white_box import token_texts
from qa.pipeline.monitored import Draft

FORM: Final = "monitored-1"
_LINE_END: Final = "\n"
_MAX_TOKENS: Final = 64
_MAX_QUERY_TOKENS: Final = 32
_MAX_SEGMENT_TOKENS: Final = 256

_PROMPTS: Final = PROMPTS["monitored"]
_ANSWERING: Final[str] = _PROMPTS["answering"]
_VALIDATING: Final[str] = _PROMPTS["validating"]
_REWRITING: Final[str] = _PROMPTS["rewriting"]


class SteeredWriter:
    """`qa.pipeline.monitored.SegmentWriter` on a white-box model; one thread at a time."""

    def __init__(
        self, model: WhiteBoxModel, directions: DirectionSet, *, fingerprint: str
    ) -> None:
        """Take a model without its adapter, and the directions of that fingerprint."""
        self.model = model
        self.directions = directions
        self._layout = ClosedBookForm(model)
        forms = (FORM, _ANSWERING, _VALIDATING, _REWRITING)
        self.fingerprint = digest(self._layout.fingerprint, *forms, fingerprint)

    def write(
        self,
        question: str,
        notes: Sequence[Evidence],
        kept: Sequence[str],
        *,
        steering: float,
    ) -> Draft:
        """Write the next sentence greedily, in at most 64 tokens."""
        ids = self._layout.prompt_ids(question, [note_text(piece) for piece in notes])
        written = self.continue_from(ids, kept, steering=steering)
        confidences = self.directions.confidence_of(written.activations).tolist()
        return _draft(written, token_texts(written.ids, self.model.tokens), confidences)

    def continue_from(
        self,
        prompt: Sequence[int],
        kept: Sequence[str],
        *,
        steering: float,
        is_monitored: bool = True,
    ) -> Generated:
        model, encode = self.model, self.model.tokens.encode_text
        moved = self.directions.steering(steering)
        before = [i for text in kept for i in encode(f" {flatten(text).strip()}")]
        with model.turn():
            prefix = model.read_prefix(encode(_ANSWERING))
            context = model.read([*prompt, *before], prefix, steering=moved)
            return model.generate(
                context,
                max_tokens=_MAX_TOKENS,
                stop=[_LINE_END],
                taps=self.directions.taps if is_monitored else (),
                steering=moved,
                enough=_holds_a_sentence,
            )

    def validation_query(self, question: str, segment: str) -> str:
        return self._query(_VALIDATING, question, "Answer", segment, "Query")

    def rewritten_query(self, question: str, query: str) -> str:
        return self._query(_REWRITING, question, "Query", query, "Better query")

    def _query(
        self, examples: str, question: str, label: str, said: str, wanted: str
    ) -> str:
        model, encode = self.model, self.model.tokens.encode_text
        ids = (
            *self._layout.question_ids(question),
            *encode(_LINE_END),
            *encode(f"{label}: {flatten(said).strip()}")[:_MAX_SEGMENT_TOKENS],
            *encode(_LINE_END),
            *encode(f"{wanted}:"),
        )
        with model.turn():
            context = model.read(ids, model.read_prefix(encode(examples)))
            written = model.generate(
                context, max_tokens=_MAX_QUERY_TOKENS, stop=[_LINE_END]
            )
        return written.text.strip()


def _holds_a_sentence(text: str) -> bool:
    """Return whether a second sentence has begun: only then has the first one ended."""
    return len(sentences(flatten(text))) > 1


def _draft(
    written: Generated, pieces: Sequence[str], confidences: Sequence[float]
) -> Draft:
    """Return the first sentence of what was written, with its own tokens."""
    flat = flatten(written.text)
    first, *more = sentences(flat) or [""]
    start, end = _first_span(first, flat)
    tokens: list[str] = []
    values: list[float] = []
    at = 0
    for piece, value in zip(pieces, confidences, strict=True):
        # What precedes or follows the sentence is white space or part of the next one.
        shown = flat[max(at, start) : min(at + len(piece), end)]
        at += len(piece)
        if shown:
            tokens.append(shown)
            values.append(value)
    return Draft(
        text="".join(tokens),
        tokens=tuple(tokens),
        confidences=tuple(values),
        is_last=written.finished and not more,
    )


def _first_span(first: str, text: str) -> tuple[int, int]:
    """Return the span of the first sentence, ignoring differences in white space."""
    seen = [place for place, letter in enumerate(text) if not letter.isspace()]
    count = sum(not letter.isspace() for letter in first)
    return (seen[0], seen[count - 1] + 1) if count else (0, 0)


_writers: Final = LoadedOnce[str, SteeredWriter]()


def monitored_writer() -> SteeredWriter:
    """Return the writer with the active directions (one query)."""
    model = load_closed_book_form().model
    active = Probe.objects.active_for(model.fingerprint)
    row = active.filter(kind=ProbeKind.DIRECTIONS).first()
    if row is None:
        raise LanguageModelUnavailableError(
            f"No directions are active for the language model {model.name} "
            f"({model.fingerprint[:12]}), and monitored answers need them. Fit "
            "some with manage.py train directions FILE --promote, or activate a policy "
            "with another retrieval timing."
        )

    def load() -> SteeredWriter:
        directions = directions_from(row.files, language_model=model.fingerprint)
        return SteeredWriter(model, directions, fingerprint=row.fingerprint)

    return _writers.get(model.fingerprint, load, version=row.fingerprint)
