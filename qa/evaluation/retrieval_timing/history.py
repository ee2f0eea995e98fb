"""A history for DH-ICL: other questions, and whether the model alone is right on them."""

from collections.abc import Mapping, Sequence

import numpy as np

from kb.embedder import Embedder
from qa.pipeline.history import JudgedQuestion, KnownQuestion
from qa.pipeline.outcome import Question

from .questions import Asked
from .record import Row


class TaughtHistory:
    """`qa.pipeline.history.History` of questions that were asked for it, held in memory."""

    def __init__(
        self,
        questions: Sequence[Asked],
        alone: Mapping[str, Row],
        embedder: Embedder,
    ) -> None:
        """Embed the questions; they are known where the model alone is right."""
        self._embedder = embedder
        self._known = [
            KnownQuestion(
                one.case.question,
                one.is_right(alone[one.case.id]["answer"]),
                one.case.id,
            )
            for one in questions
        ]
        self._vectors = embedder.encode([one.question for one in self._known])

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        """Return the nearest, the nearest first, whatever model is named."""
        vector = self._embedder.encode_question(question.text)
        near = np.argsort(-(self._vectors @ vector), kind="stable")[:limit]
        return [self._known[place] for place in near.tolist()]

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        """Return nothing: no expert has judged anything here."""
        return ()
