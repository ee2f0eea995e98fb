"""A model that is asked for one of two labels, after examples that have theirs.

The instruction and fixed examples are a prefix that is read once. Behind it stand the
examples of the question at hand, the nearest last, and the question: one pass gives the
scores of both labels at every example and at the question. What the model leans to by
itself is measured on the examples and taken back.

References:
    DH-ICL, sections 3.2 and 3.3. Deviations: the fixed examples count among those that
    the leaning is measured on, so that neither label is ever without one; and the
    first of all, which saw no example before it, does not count, as in the paper's code.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from probes.language_model import Context, WhiteBoxModel
from probes.language_model.examples import Example
from qa.language_models.label_pair import LabelPair, label_tokens
from qa.pipeline.label_bias import (
    JudgedExample,
    LabelJudgement,
    LabelScores,
    judge_label,
)

_END: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class Labelled:
    """An example as tokens.

    Attributes:
        ids: Up to where its label stands, at least one.
        is_known: Its label.
    """

    ids: tuple[int, ...]
    is_known: bool


class LabelJudge:
    """One way of asking one model for a label.

    Attributes:
        model: The model.
        labels: The pair of words.
        fingerprint: 64 hex digits: the model's fingerprint, labels, prefix.
    """

    def __init__(
        self,
        model: WhiteBoxModel,
        labels: LabelPair,
        *,
        instruction: str,
        fixed: Sequence[Labelled],
    ) -> None:
        """Take a loaded model, and the examples that come with every question.

        Args:
            instruction: What it reads first, at least one token.
            fixed: May be none: then nothing but the given ones tells of a leaning.

        Raises:
            LabelPairError: The labels are not one token each to this model.
        """
        self.model = model
        self.labels = labels
        self._options = label_tokens(labels, model.tokens, model=model.name).options
        self._instruction = model.tokens.encode_text(instruction)
        self._end = model.tokens.encode_text(_END)
        self._fixed = tuple(fixed)
        self._judged_fixed: tuple[JudgedExample, ...] | None = None
        said = f"{model.fingerprint}\n{labels}\n{self._prefix_ids()}"
        self.fingerprint = hashlib.sha256(said.encode()).hexdigest()

    def judge(
        self, examples: Sequence[Labelled], asked: Sequence[int]
    ) -> LabelJudgement:
        """Return how probable the label "known" is for what is asked, in one pass.

        Args:
            examples: The nearest last. Where not all fit the model's context, those
                farthest away are left out.
            asked: Tokens up to where its label would stand, at least one.

        Raises:
            TooManyTokensError: What is asked does not fit the context by itself.
        """
        model = self.model
        with model.turn():
            fixed = self._leaning_on_fixed()
            prefix = model.read_prefix(self._prefix_ids())
            shown = self._fitting(examples, len(prefix) + len(asked))
            scores = self._scores(shown, asked, prefix)
        judged = [
            JudgedExample(each.is_known, score)
            for each, score in zip(shown, scores[:-1], strict=True)
        ]
        return judge_label([*fixed, *(judged if fixed else judged[1:])], scores[-1])

    def _leaning_on_fixed(self) -> tuple[JudgedExample, ...]:
        """Return what the model gives the fixed examples; read once."""
        if not self._fixed:
            return ()
        if self._judged_fixed is None:
            *before, last = self._fixed
            scores = self._scores(
                before, last.ids, self.model.read_prefix(self._instruction)
            )
            judged = zip(self._fixed, scores, strict=True)
            rows = [JudgedExample(each.is_known, score) for each, score in judged]
            self._judged_fixed = tuple(rows[1:])
        return self._judged_fixed

    def _scores(
        self, examples: Sequence[Labelled], asked: Sequence[int], after: Context
    ) -> list[LabelScores]:
        rows = self.model.score_labels(
            [Example(each.ids, int(each.is_known)) for each in examples],
            asked,
            self._options,
            after,
            end=self._end,
        )
        return [LabelScores(known=row[1], unknown=row[0]) for row in rows.tolist()]

    def _prefix_ids(self) -> tuple[int, ...]:
        ids = list(self._instruction)
        for each in self._fixed:
            ids += [*each.ids, self._options[each.is_known], *self._end]
        return tuple(ids)

    def _fitting(self, examples: Sequence[Labelled], taken: int) -> list[Labelled]:
        room = self.model.context_length - taken
        kept: list[Labelled] = []
        for each in reversed(examples):
            room -= len(each.ids) + 1 + len(self._end)
            if room < 0:
                break
            kept.append(each)
        return kept[::-1]
