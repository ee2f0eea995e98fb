"""Past questions as the pipeline needs them: plain values.

A past question's text enters a prompt from which two scores are read and no text is
generated, so nothing of it can reach another user, whatever it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .language_model import DebiasedVerdict, Generation, Prompt
from .values import Question


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A past question, and whether the model answers it correctly by itself."""

    question: str
    is_known: bool
    id: str = ""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A past question; `note` is its best evidence as the current user may see it."""

    question: str
    note: str
    can_be_answered: bool
    id: str = ""


class History(Protocol):
    """The past questions of one knowledge base that one asker may use."""

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        """Return the nearest questions that this own model was asked, nearest first."""

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        """Return the nearest questions that this model answered, nearest first."""


class VerdictDebiaser(Protocol):
    """Corrects verdicts on evidence by experts' verdicts on similar questions."""

    @property
    def fingerprint(self) -> str:
        """Identifier that differs between models and between ways of asking them."""

    def debias(
        self, prompt: Prompt, generation: Generation, *, language_model: str
    ) -> DebiasedVerdict:
        """Judge in one pass whether the evidence behind an answer answers the question.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """
