"""Choosing by likelihood: no output is parsed, and no position can be favoured.

Every option is scored by itself, as what is written after the evidence and the question.
Its score is how much likelier, per token, it is there than as an answer to nothing: what
is likely anywhere (a short word, a stock phrase) gains nothing by it.

One right option: the highest score. Several: each one above the mean of the question's
own scores, a rule without a number that could be fitted to a data set.

References:
    Holtzman et al., "Surface Form Competition: Why the Highest Probability Answer Isn't
    Always Right" (EMNLP 2021): the domain conditional pointwise mutual information.
"""

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from probes.language_model import Context
from qa.language_models.evidence_text import flatten
from qa.language_models.guided import GuidedLanguageModel, Reading
from qa.pipeline.types import Evidence

from .values import Choice, ChoiceQuestion

_ANSWER: Final = "Answer:"
# Beyond these nothing is read: time and memory stay bounded whatever is asked.
_LONGEST_QUESTION_TOKENS: Final = 512
_LONGEST_OPTION_TOKENS: Final = 128
# Floats by option: a few MB, and as many as all questions at all shares of knowledge.
_SCORES_KEPT: Final = 20_000
_RULE: Final = "mean token log-ratio to the bare answer; several: above the mean; 1"

_Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Judged:
    """The scores of all of a question's options after the evidence that fits best."""

    scores: _Scores
    cited: tuple[int, ...]
    share: float | None
    verdict: float | None


class WhiteBoxChoiceModel:
    """`values.ChoiceModel` on the guided form's white-box model.

    Which piece of evidence fits, and whether it answers, is the guided form's own
    reading (query likelihood), the same that the product asks with.
    """

    def __init__(self, guided: GuidedLanguageModel) -> None:
        """Take over a loaded model."""
        self._guided = guided
        self._model = guided.model
        self._kept: OrderedDict[tuple[object, ...], _Judged] = OrderedDict()
        self._bare: OrderedDict[tuple[str, ...], _Scores] = OrderedDict()
        self._fingerprint = hashlib.sha256(
            f"{guided.fingerprint}\n{_RULE}".encode()
        ).hexdigest()

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the guided model's fingerprint and the rule."""
        return self._fingerprint

    def choose(self, question: ChoiceQuestion, evidence: Sequence[Evidence]) -> Choice:
        """Score all options in one batch and choose by the rule.

        Raises:
            TooManyTokensError: An entry does not fit the model's context.
        """
        began = time.perf_counter()
        judged = self._judge(question, evidence)
        scores = tuple(judged.scores[option] for option in question.options)
        return Choice(
            scores=scores,
            chosen=choose_by(scores, several=question.several),
            cited=judged.cited,
            reasoning="",
            can_answer=judged.verdict is None or judged.verdict >= 0.5,
            verdict_probability=judged.verdict,
            readable=True,
            repaired=False,
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    def _judge(self, question: ChoiceQuestion, evidence: Sequence[Evidence]) -> _Judged:
        pieces = tuple((piece.question, piece.text) for piece in evidence)
        key = (question.question, question.scored, pieces)
        judged = self._kept.get(key)
        if judged is None:
            with self._model.turn():
                judged = self._read(question, evidence)
            self._kept[key] = judged
            while len(self._kept) > _SCORES_KEPT:
                self._kept.popitem(last=False)
        return judged

    def _read(self, question: ChoiceQuestion, evidence: Sequence[Evidence]) -> _Judged:
        model, tokens = self._model, self._model.tokens
        asked = flatten(question.question).strip()
        if not evidence:
            ids = tokens.encode_text(f"Question: {asked}")[:_LONGEST_QUESTION_TOKENS]
            context = model.read((*ids, *tokens.encode_text(f"\n{_ANSWER}")))
            return _Judged(self._score(question.scored, context), (), None, None)
        reading: Reading = self._guided.read(asked, evidence)
        ids = tokens.encode_text(f" {asked}")[:_LONGEST_QUESTION_TOKENS]
        context = model.read(
            (*ids, *tokens.encode_text(f"\n{_ANSWER}")), model.resume(reading.note)
        )
        return _Judged(
            self._score(question.scored, context),
            (reading.index + 1,),
            reading.share,
            reading.verdict,
        )

    def _score(self, options: tuple[str, ...], context: Context) -> _Scores:
        """Return each option's mean log-ratio per token, in nats."""
        bare = self._bare.get(options)
        if bare is None:
            prefix = self._model.tokens.encode_text(_ANSWER)
            bare = self._means(options, self._model.read_prefix(prefix))
            self._bare[options] = bare
            while len(self._bare) > _SCORES_KEPT:
                self._bare.popitem(last=False)
        here = self._means(options, context)
        return {option: here[option] - bare[option] for option in options}

    def _means(self, options: Sequence[str], context: Context) -> _Scores:
        rows = [
            self._model.tokens.encode_text(f" {flatten(option).strip()}")[
                :_LONGEST_OPTION_TOKENS
            ]
            for option in options
        ]
        scored = self._model.score_all(rows, context)
        return {
            option: row.total / max(1, len(row.log_probabilities))
            for option, row in zip(options, scored, strict=True)
        }


def choose_by(scores: Sequence[float], *, several: bool) -> tuple[int, ...]:
    """Return the options chosen by their scores, 0-based and ascending, at least one.

    Of equal scores the first counts for one right option, which shuffling makes fair;
    of several, where all are equal, all are chosen.
    """
    best = max(range(len(scores)), key=scores.__getitem__)
    if not several:
        return (best,)
    mean = math.fsum(scores) / len(scores)
    above = tuple(index for index, score in enumerate(scores) if score > mean)
    return above or tuple(range(len(scores)))
