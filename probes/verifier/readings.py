"""What a verifier makes of its readings, wherever they are computed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .card import VerifierCard


class EntryText(Protocol):
    """An entry as the verifier reads it; any part but the text may be empty."""

    @property
    def title(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def text(self) -> str: ...


class Readings(ABC):
    """A verifier by its card, which turns readings into odds; needs no torch."""

    def __init__(self, card: VerifierCard) -> None:
        self.card, self.fingerprint = card, card.fingerprint

    @property
    @abstractmethod
    def reads_jointly(self) -> bool: ...

    @abstractmethod
    def is_word(self, word: str) -> bool:
        """Tell whether the embedder knows this word, in small letters, as a whole."""

    @abstractmethod
    def measure(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[NDArray[np.float64]]:
        """Return how each entry's windows were read: (windows, 3) of each.

        The nets' logit, and the cosines of the question with the window and with the
        entry's own question, `NO_QUESTION` where it has none.
        """

    @abstractmethod
    def measure_jointly(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        """Return the cross-encoder's logit and the cosines of each entry: (entries, 3).

        (0, 3) without a cross-encoder.
        """

    @abstractmethod
    def read_together(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return what the cross-encoder makes of pairs of texts, whichever comes first.

        (pairs, 3 * width), (0, 0) unless it `reads_jointly`: the mean over both orders of the
        first token's state and the means of either side.
        """

    def score(self, question: str, entries: Sequence[EntryText]) -> list[float]:
        """Return for each entry the probability in [0, 1] that it answers, by itself.

        Of one that is longer than the window its best part counts.
        """
        by = self.card.calibration
        return [
            float(expit(by.scale * found[:, 0].max() + by.offset))
            for found in self.measure(question, entries)
        ]

    def log_odds(self, question: str, entries: Sequence[EntryText]) -> list[float]:
        """Return for each entry the log-odds that it answers against that none does.

        They are for weighing entries against each other; see `Calibration`.
        """
        by = self.card.calibration
        return [
            float(by.log_odds(found).max()) for found in self.measure(question, entries)
        ]

    def joint_log_odds(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[float]:
        """Return the same of each entry read together with the question.

        Of a long one the window that seems likeliest apart is read. Empty where the
        verifier has no cross-encoder.
        """
        by = self.card.calibration
        found = self.measure_jointly(question, entries)
        return [float(each) for each in by.log_odds(found, is_joint=True)]
