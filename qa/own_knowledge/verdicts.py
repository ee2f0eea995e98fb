"""The soft refusal's verdict, told anew after experts' verdicts on questions like it.

References:
    Lv et al. (DH-ICL), section 3.3, here on whether evidence answers a question: the
    nearest past questions stand with the evidence that they had and with what experts
    said, and the model's leaning on them is taken off.
"""

from typing import Final

from qa.language_models.evidence_text import note_of
from qa.language_models.verdict_form import VerdictForm
from qa.pipeline.evidence import Evidence
from qa.pipeline.generation import DebiasedVerdict, Generation, Prompt
from qa.pipeline.history import History
from qa.pipeline.outcome import Question

# Each is a note and a question, three times as long as a question alone.
EXAMPLES_SHOWN: Final = 6


class VerdictByHistory:
    """`qa.pipeline.history.VerdictDebiaser` by past questions."""

    def __init__(self, form: VerdictForm, history: History) -> None:
        """Take over the form of one model, and the history of one asker."""
        self._form = form
        self._history = history

    @property
    def fingerprint(self) -> str:
        """The form's."""
        return self._form.fingerprint

    def debias(
        self, prompt: Prompt, generation: Generation, *, language_model: str
    ) -> DebiasedVerdict:
        """Judge in one pass whether the piece behind an answer answers the question.

        Raises:
            TooManyTokensError: Question and piece do not fit the model's context.
        """
        past = self._history.judged(
            Question(prompt.question, prompt.language),
            language_model=language_model,
            limit=EXAMPLES_SHOWN,
        )
        note = note_of(_piece_behind(prompt, generation))
        judgement = self._form.judge(prompt.question, note, past)
        return DebiasedVerdict(
            probability=judgement.known,
            uncorrected=judgement.uncorrected,
            examples=tuple(each.id for each in past),
        )


def _piece_behind(prompt: Prompt, generation: Generation) -> Evidence:
    """Return the first piece that the answer cites; the best one where it cites none."""
    numbers = [n for n in generation.cited if 1 <= n <= len(prompt.evidence)]
    return prompt.evidence[numbers[0] - 1 if numbers else 0]
