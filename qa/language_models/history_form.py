"""Past questions as tokens: which of them the model knew, and does it know this one?

Every text is put on one line and encoded on its own, so that a question can neither
become an example nor a label, whatever it says.
"""

from collections.abc import Sequence
from typing import Final

from probes.language_model import Tokens, WhiteBoxModel
from qa.language_models.evidence_text import LONGEST_QUESTION_TOKENS, flatten
from qa.language_models.history_text import EXAMPLES, instruction
from qa.language_models.label_judge import LabelJudge, Labelled
from qa.language_models.label_pair import LabelPair
from qa.pipeline.history import KnownQuestion
from qa.pipeline.label_bias import LabelJudgement

# A past question is shown for what it is about, not for its every condition.
_LONGEST_EXAMPLE_TOKENS: Final = 64


class HistoryForm:
    """Asks one model whether it knows a question's answer, after past questions."""

    def __init__(
        self,
        model: WhiteBoxModel,
        labels: LabelPair,
        *,
        examples: Sequence[tuple[str, bool]] = EXAMPLES,
    ) -> None:
        """Take a loaded model.

        Args:
            examples: What is shown whatever is asked: questions, and whether each can be
                answered from memory.

        Raises:
            LabelPairError: The labels are not one token each to this model.
        """
        fixed = [KnownQuestion(*example) for example in examples]
        self._tokens = model.tokens
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
        self, question: str, past: Sequence[KnownQuestion] = ()
    ) -> LabelJudgement:
        """Return how probable it is that the model knows the answer, in one pass.

        Args:
            past: The nearest first; the model reads it last, next to the question.

        Raises:
            TooManyTokensError: The question does not fit the model's context.
        """
        asked = question_ids(self._tokens, question, limit=LONGEST_QUESTION_TOKENS)
        return self._judge.judge(self._labelled(past[::-1]), asked)

    def _labelled(self, past: Sequence[KnownQuestion]) -> list[Labelled]:
        return [
            Labelled(
                question_ids(
                    self._tokens, each.question, limit=_LONGEST_EXAMPLE_TOKENS
                ),
                each.is_known,
            )
            for each in past
        ]


def question_ids(tokens: Tokens, question: str, *, limit: int) -> tuple[int, ...]:
    """Return a question up to where its label stands; of its text at most `limit`."""
    asked = tokens.encode_text(f"Question: {flatten(question).strip()}")
    line = tokens.encode_text("\n")
    return (*asked[:limit], *line, *tokens.encode_text("Answer:"))
