"""The soft refusal's verdict, corrected by experts' verdicts on questions like it."""

from collections.abc import Sequence
from typing import Final

from kb.types import Evidence
from probes.language_model import Tokens, WhiteBoxModel
from probes.language_model.scoring import Example
from qa.inference.evidence_text import MAX_QUESTION_TOKENS, flatten, note_text
from qa.inference.label_judge import LabelJudge, LabelJudgement, LabelPair
from qa.pipeline.history import History, JudgedQuestion
from qa.pipeline.language_model import DebiasedVerdict, Generation, Prompt
from qa.pipeline.values import Question


def instruction(known: str, unknown: str) -> str:
    return (
        "Some notes answer the question below them, others are about something else. "
        f"Write {known} where the note answers the question, and {unknown} where it "
        "does not.\n\n"
    )


# (note, question, whether the note answers it); about a made-up card issuer.
EXAMPLES: Final = (
    ("The Gold card costs 72 euros a year.", "What does the Gold card cost?", True),
    ("A lost card is replaced within three working days.",
     "Who founded the card's issuer?", False),
    ("Travel insurance covers journeys of up to 60 days.",
     "What is the daily limit at a cash machine?", False),
    ("The Student card is free until its holder turns 27.",
     "Until which age is the Student card free?", True),
    ("Statements are sent on the fifth day of each month.",
     "On which day are statements sent?", True),
    ("An additional card costs 12 euros a year.",
     "How long is an additional card valid?", False),
    ("Payments abroad carry a fee of 1.5 percent.",
     "Which fee is charged for payments abroad?", True),
    ("The branch in Tarnby opens at nine.",
     "When does the branch in Tarnby close?", False),
)  # fmt: skip


# Notes of examples are shown for what they are about; the asked one is read further.
_MAX_NOTE_TOKENS: Final = 64
_MAX_ASKED_NOTE_TOKENS: Final = 256
_MAX_EXAMPLE_TOKENS: Final = 64


class VerdictForm(LabelJudge):
    """Asks one model whether a note answers a question, after past verdicts."""

    def __init__(self, model: WhiteBoxModel, labels: LabelPair) -> None:
        super().__init__(
            model,
            labels,
            instruction=instruction(labels.known, labels.unknown),
            fixed=[
                _example(model.tokens, JudgedQuestion(question, note, can_be_answered))
                for note, question, can_be_answered in EXAMPLES
            ],
        )

    def judge(
        self, question: str, note: str, past: Sequence[JudgedQuestion] = ()
    ) -> LabelJudgement:
        """Return how probable it is that the note answers; `past` nearest first."""
        tokens = self.model.tokens
        asked = _ids(
            tokens,
            note,
            question,
            note_limit=_MAX_ASKED_NOTE_TOKENS,
            limit=MAX_QUESTION_TOKENS,
        )
        return self.judge_tokens([_example(tokens, p) for p in past[::-1]], asked)


def _example(tokens: Tokens, past: JudgedQuestion) -> Example:
    ids = _ids(
        tokens,
        past.note,
        past.question,
        note_limit=_MAX_NOTE_TOKENS,
        limit=_MAX_EXAMPLE_TOKENS,
    )
    return Example(ids, int(past.can_be_answered))


def _ids(
    tokens: Tokens, note: str, question: str, *, note_limit: int, limit: int
) -> tuple[int, ...]:
    line = tokens.encode_text("\n")
    read = tokens.encode_text(f"Note: {flatten(note).strip()}")
    asked = tokens.encode_text(f"Question: {flatten(question).strip()}")
    ending = tokens.encode_text("The note answers the question:")
    return (*read[:note_limit], *line, *asked[:limit], *line, *ending)


# Each is a note and a question, three times as long as a question alone.
EXAMPLES_SHOWN: Final = 6


class VerdictByHistory:
    """`qa.pipeline.history.VerdictDebiaser` by past questions."""

    def __init__(self, form: VerdictForm, history: History) -> None:
        self._form = form
        self._history = history
        self.fingerprint = form.fingerprint

    def debias(
        self, prompt: Prompt, generation: Generation, *, language_model: str
    ) -> DebiasedVerdict:
        past = self._history.judged(
            Question(prompt.question, prompt.language),
            language_model=language_model,
            limit=EXAMPLES_SHOWN,
        )
        note = note_text(_piece_behind(prompt, generation))
        judgement = self._form.judge(prompt.question, note, past)
        return DebiasedVerdict(
            probability=judgement.known,
            uncorrected=judgement.uncorrected,
            examples=tuple(each.id for each in past),
        )


def _piece_behind(prompt: Prompt, generation: Generation) -> Evidence:
    numbers = [n for n in generation.cited if 1 <= n <= len(prompt.evidence)]
    return prompt.evidence[numbers[0] - 1 if numbers else 0]
