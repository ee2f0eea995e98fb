"""A white-box model's assessment of whether its own answer is right.

Two questions about each answer. Both are read from the next-token distribution, because
a small model's free text does not keep to the form:

- P(true): the probability of "yes" against "no", in [0, 1].
- Verbalised confidence: the expected digit from 0 to 9, divided by 9.

Notes, question and answer are read once for both. They are baselines for a report and
cost about as much as the answer itself.

References:
    Kadavath et al., "Language models (mostly) know what they know" (2022): P(true).
    Lin, Hilton and Evans, "Teaching models to express their uncertainty in words" (2022);
    Tian et al., "Just ask for calibration" (2023): verbalised confidence.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from scipy.special import softmax

from probes.language_model import Context, WhiteBoxModel
from qa.inference.evidence_text import flatten
from qa.inference.grounded_form import notes_ids
from qa.pipeline.language_model import Prompt

# Invented: right answers, one about another card, and one that is in no note.
_EXAMPLES: Final = (
    ("The Gold card costs 72 euros a year.", "What does the Gold card cost?",
     "72 euros a year", "yes", 9),
    ("The Student card is free until its holder turns 27.",
     "What does the Gold card cost?", "it is free", "no", 0),
    ("A lost card is replaced within three working days.",
     "How soon is a lost card replaced?", "three working days", "yes", 9),
    ("A lost card is replaced within three working days.",
     "Who founded the card's issuer?", "a working day", "no", 0),
)  # fmt: skip
_MAX_ANSWER_TOKENS: Final = 256


@dataclass(frozen=True, slots=True)
class SelfAssessment:
    """How sure the model is of one of its answers; both in [0, 1]."""

    p_true: float
    verbalised: float


class SelfAssessor:
    """Asks a model about its answers.

    Attributes:
        model: The model that wrote them.
        examples: The fixed prefix of worked examples, read once per process.
    """

    is_right: Final = "\nIs the answer right, yes or no?"
    how_sure: Final = "\nHow sure is it that it is right, from 0 to 9?"

    def __init__(self, model: WhiteBoxModel) -> None:
        """Take a loaded model."""
        self.model = model
        self.examples = "".join(
            f"Note: {note}\nQuestion: {question}\nAnswer: {answer}"
            f"{self.is_right} {is_right}{self.how_sure} {sure}\n\n"
            for note, question, answer, is_right, sure in _EXAMPLES
        )

    def key(self, prompt: Prompt, answer: str) -> str:
        """Return the digest of model, form, prompt and answer, 64 hex digits."""
        ids = self.asked(prompt, answer)
        form = f"{self.model.fingerprint}\n{self.examples}\n{self.is_right}{self.how_sure}\n"
        return hashlib.sha256(f"{form}{ids}".encode()).hexdigest()

    def assess(self, prompt: Prompt, answer: str) -> SelfAssessment:
        """Ask both questions about an answer."""
        model = self.model
        with model.turn():
            examples = model.read_prefix(model.tokens.encode_text(self.examples))
            asked = model.read(self.asked(prompt, answer), examples)
            yes, _ = self._shares(asked, self.is_right, ("yes", "no"))
            digits = self._shares(asked, self.how_sure, tuple(map(str, range(10))))
        mean = sum(value * share for value, share in enumerate(digits))
        return SelfAssessment(yes, min(1.0, mean / 9))

    def _shares(
        self, asked: Context, question: str, words: tuple[str, ...]
    ) -> tuple[float, ...]:
        tokens = self.model.tokens
        after = self.model.read(tokens.encode_text(question), asked)
        options = [tokens.encode_text(f" {word}") for word in words]
        scored = self.model.score_all(options, after)
        return tuple(softmax([each.total for each in scored]).tolist())

    def asked(self, prompt: Prompt, answer: str) -> tuple[int, ...]:
        """Return notes, question and answer, each encoded on its own."""
        tokens = self.model.tokens
        answer_ids = tokens.encode_text(f" {flatten(answer).strip()}")
        notes = notes_ids(tokens, prompt.question, prompt.evidence)
        return (*notes, *answer_ids[:_MAX_ANSWER_TOKENS])
