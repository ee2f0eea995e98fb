"""The soft refusal's verdict, corrected by experts' verdicts on questions like it."""

from collections.abc import Sequence
from typing import Final

from kb.types import Evidence
from probes.language_model import Tokens, WhiteBoxModel
from probes.language_model.scoring import Example
from qa.inference.evidence_text import MAX_QUESTION_TOKENS, PROMPTS, flatten, note_text
from qa.inference.label_judge import LabelJudge, LabelJudgement, LabelPair
from qa.pipeline.history import History, JudgedQuestion
from qa.pipeline.language_model import DebiasedVerdict, Generation, Prompt
from qa.pipeline.values import Question

_PROMPTS: Final = PROMPTS["verdict_by_history"]
INSTRUCTION: Final[str] = _PROMPTS["instruction"]
EXAMPLES: Final[Sequence[tuple[str, str, bool]]] = _PROMPTS["examples"]


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
            instruction=INSTRUCTION.format(known=labels.known, unknown=labels.unknown),
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
