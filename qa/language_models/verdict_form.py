"""A note and a question as tokens: does the note answer it, after past verdicts?

Built as past questions are: every text on one line and encoded on its own, so that none
can become an example or a label.
"""

from collections.abc import Sequence
from typing import Final

from probes.language_model import Tokens, WhiteBoxModel
from qa.language_models.evidence_text import LONGEST_QUESTION_TOKENS, flatten
from qa.language_models.label_judge import LabelJudge, Labelled
from qa.language_models.label_pair import LabelPair
from qa.language_models.verdict_text import EXAMPLES, instruction
from qa.pipeline.history import JudgedQuestion
from qa.pipeline.label_bias import LabelJudgement

# Notes of examples are shown for what they are about; the asked one is read further.
_LONGEST_NOTE_TOKENS: Final = 64
_LONGEST_ASKED_NOTE_TOKENS: Final = 256
_LONGEST_EXAMPLE_TOKENS: Final = 64


class VerdictForm:
    """Asks one model whether a note answers a question, after past verdicts."""

    def __init__(self, model: WhiteBoxModel, labels: LabelPair) -> None:
        """Take a loaded model.

        Raises:
            LabelPairError: The labels are not one token each to this model.
        """
        self._tokens = model.tokens
        fixed = [
            JudgedQuestion(question, note, can_be_answered)
            for note, question, can_be_answered in EXAMPLES
        ]
        self._judge = LabelJudge(
            model,
            labels,
            instruction=instruction(labels.known, labels.unknown),
            fixed=self._labelled(fixed),
        )

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the model, the labels, what it is shown whatever is asked."""
        return self._judge.fingerprint

    def judge(
        self, question: str, note: str, past: Sequence[JudgedQuestion] = ()
    ) -> LabelJudgement:
        """Return how probable it is that the note answers the question, in one pass.

        Args:
            past: The nearest first; the model reads it last, next to the question.

        Raises:
            TooManyTokensError: Note and question do not fit the model's context.
        """
        asked = _ids(
            self._tokens,
            note,
            question,
            note_limit=_LONGEST_ASKED_NOTE_TOKENS,
            limit=LONGEST_QUESTION_TOKENS,
        )
        return self._judge.judge(self._labelled(past[::-1]), asked)

    def _labelled(self, past: Sequence[JudgedQuestion]) -> list[Labelled]:
        return [
            Labelled(
                _ids(
                    self._tokens,
                    each.note,
                    each.question,
                    note_limit=_LONGEST_NOTE_TOKENS,
                    limit=_LONGEST_EXAMPLE_TOKENS,
                ),
                each.can_be_answered,
            )
            for each in past
        ]


def _ids(
    tokens: Tokens, note: str, question: str, *, note_limit: int, limit: int
) -> tuple[int, ...]:
    """Return note and question up to where the label stands."""
    line = tokens.encode_text("\n")
    read = tokens.encode_text(f"Note: {flatten(note).strip()}")
    asked = tokens.encode_text(f"Question: {flatten(question).strip()}")
    ending = tokens.encode_text("The note answers the question:")
    return (*read[:note_limit], *line, *asked[:limit], *line, *ending)
