"""What a verifier concludes from its readings, wherever they are computed."""

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
        """Return whether the embedder has this lower-case word as a single token."""

    @abstractmethod
    def measure(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[NDArray[np.float64]]:
        """Return the readings of each entry's windows: (windows, 3) for each entry.

        The nets' logit, and the cosines of the question with the window and with the
        entry's own question, `NO_QUESTION` if it has none.
        """

    @abstractmethod
    def measure_jointly(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        """Return the cross-encoder's logit and the cosines of each entry: (entries, 3).

        (0, 3) without a cross-encoder.
        """

    @abstractmethod
    def likeness(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        """Return each entry's likeness to the question by tokens, in [-1, 1].

        Of shape (entries,): that of its most similar window. It takes a small part of
        the time of `measure`.
        """

    @abstractmethod
    def read_together(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return the cross-encoder's states of pairs of texts, whichever comes first.

        (pairs, 3 * width), or (0, 0) unless it `reads_jointly`: the first token's state
        and the means of either side, averaged over both orders.
        """

    def score(self, question: str, entries: Sequence[EntryText]) -> list[float]:
        """Return for each entry the probability in [0, 1] that it answers, by itself.

        An entry longer than the window counts by its best part.
        """
        by = self.card.calibration
        return [
            float(expit(by.scale * found[:, 0].max() + by.offset))
            for found in self.measure(question, entries)
        ]

    def log_odds(self, question: str, entries: Sequence[EntryText]) -> list[float]:
        """Return for each entry the log-odds that it answers, against none answering.

        They weigh entries against each other; see `Calibration`.
        """
        by = self.card.calibration
        return [
            float(by.log_odds(found).max()) for found in self.measure(question, entries)
        ]

    def joint_log_odds(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[float]:
        """Return the same for each entry read together with the question.

        Of a long entry only the window that seems likeliest by itself is read. Empty if
        the verifier has no cross-encoder.
        """
        by = self.card.calibration
        found = self.measure_jointly(question, entries)
        return [float(each) for each in by.log_odds(found, is_joint=True)]
