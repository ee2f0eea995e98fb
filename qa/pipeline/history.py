"""What the pipeline needs of past questions: plain values.

A past question's text enters a prompt of which two scores are read and nothing is written
from. So nothing of it reaches another user, whatever it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .language_model import DebiasedVerdict, Generation, Prompt
from .values import Question


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A past question, and whether the model answers it rightly by itself."""

    question: str
    is_known: bool
    id: str = ""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A past question; `note` is its best evidence as the present user may see it."""

    question: str
    note: str
    can_be_answered: bool
    id: str = ""


class History(Protocol):
    """The past questions of one knowledge base, as one asker may use them."""

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        """Return the nearest that this form of a model was asked, the nearest first."""

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        """Return the nearest that this language model answered, the nearest first."""


class VerdictDebiaser(Protocol):
    """Judges again whether evidence answers a question, after experts' own verdicts."""

    @property
    def fingerprint(self) -> str:
        """What tells two models and ways of asking them apart."""

    def debias(
        self, prompt: Prompt, generation: Generation, *, language_model: str
    ) -> DebiasedVerdict:
        """Judge in one pass whether the evidence behind an answer answers the question.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """
