"""Choosing by likelihood: no output is parsed, and no position can be favoured.

Each option is scored on its own, as the continuation of the evidence and the question.
Its score is its log-likelihood per token there minus that without any question, so an
option that is likely anywhere (a short word, a stock phrase) gains nothing.

With one right option, the highest score is chosen. With several, each option above the
mean of the question's scores is: a rule without a parameter to fit to a data set.

References:
    Holtzman et al., "Surface Form Competition: Why the Highest Probability Answer Isn't
    Always Right" (EMNLP 2021): the domain conditional pointwise mutual information.
"""

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kb.types import Evidence
from probes.language_model import Context
from qa.inference.evidence_text import flatten
from qa.inference.guided import GuidedLanguageModel

from .questions import Choice, ChoiceQuestion

_ANSWER: Final = "Answer:"
# Longer texts are cut to bound time and memory.
_MAX_QUESTION_TOKENS: Final = 512
_MAX_OPTION_TOKENS: Final = 128
# A few MB of floats, enough for all questions at all shares of knowledge.
_SCORES_KEPT: Final = 20_000
_RULE: Final = "mean token log-ratio to the bare answer; several: above the mean; 1"

_Scores = dict[str, float]
Value = TypeVar("Value")


class _Kept(Generic[Value]):
    """A cache of the most recently added values."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[object, ...], Value] = OrderedDict()

    def get(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """Return the value of `key`, computed on first use."""
        if key not in self._values:
            self._values[key] = make()
            while len(self._values) > _SCORES_KEPT:
                self._values.popitem(last=False)
        return self._values[key]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The piece of evidence that fits best, 0-based, and its chance to answer."""

    index: int
    probability: float


class WhiteBoxChoiceModel:
    """`questions.ChoiceModel` on the guided form's white-box model.

    As in the product, the guided form's reading (query likelihood) decides which piece
    of evidence fits and whether it answers. Scores after the same piece are reused for
    other tasks with the same options and for other shares of the knowledge.
    """

    def __init__(self, guided: GuidedLanguageModel) -> None:
        """Wrap a loaded model."""
        self._guided = guided
        self._model = guided.model
        self._verdicts: _Kept[_Verdict] = _Kept()
        self._scores: _Kept[_Scores] = _Kept()
        self._fingerprint = hashlib.sha256(
            f"{guided.fingerprint}\n{_RULE}".encode()
        ).hexdigest()

    @property
    def fingerprint(self) -> str:
        """Digest of the guided model's fingerprint and the rule, 64 hex digits."""
        return self._fingerprint

    def choose(self, question: ChoiceQuestion, evidence: Sequence[Evidence]) -> Choice:
        """Score all options in one batch and choose among them."""
        began = time.perf_counter()
        with self._model.turn():
            verdict = self._judge(question, evidence) if evidence else None
            piece = evidence[verdict.index] if verdict else None
            here = self._log_ratios(question, piece)
        scores = tuple(here[option] for option in question.options)
        return Choice(
            scores=scores,
            chosen=choose_by(scores, several=question.several),
            cited=(verdict.index + 1,) if verdict else (),
            reasoning="",
            can_answer=verdict is None or verdict.probability >= 0.5,
            verdict_probability=verdict.probability if verdict else None,
            readable=True,
            repaired=False,
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    def _judge(
        self, question: ChoiceQuestion, evidence: Sequence[Evidence]
    ) -> _Verdict:
        def read() -> _Verdict:
            reading = self._guided.read(_asked(question), evidence)
            return _Verdict(reading.index, reading.verdict)

        pieces = tuple((piece.question, piece.text) for piece in evidence)
        return self._verdicts.get((question.question, pieces), read)

    def _log_ratios(self, question: ChoiceQuestion, piece: Evidence | None) -> _Scores:
        """Return each option's mean log-ratio per token, in nats."""
        options = question.scored
        key = (question.question, options, piece and (piece.question, piece.text))
        here = self._scores.get(
            key, lambda: self._means(options, self._after(question, piece))
        )
        bare = self._scores.get(
            ("", options, None), lambda: self._means(options, self._nothing())
        )
        return {option: here[option] - bare[option] for option in options}

    def _after(self, question: ChoiceQuestion, piece: Evidence | None) -> Context:
        model, tokens = self._model, self._model.tokens
        lead = " " if piece else "Question: "
        ids = (
            *tokens.encode_text(f"{lead}{_asked(question)}")[:_MAX_QUESTION_TOKENS],
            *tokens.encode_text(f"\n{_ANSWER}"),
        )
        if piece is None:
            return model.read(ids)
        return model.read(ids, model.resume(self._guided.read_note(piece)))

    def _nothing(self) -> Context:
        return self._model.read_prefix(self._model.tokens.encode_text(_ANSWER))

    def _means(self, options: Sequence[str], context: Context) -> _Scores:
        rows = [
            self._model.tokens.encode_text(f" {flatten(option).strip()}")[
                :_MAX_OPTION_TOKENS
            ]
            for option in options
        ]
        scored = self._model.score_all(rows, context)
        return {
            option: row.total / max(1, len(row.log_probabilities))
            for option, row in zip(options, scored, strict=True)
        }


def _asked(question: ChoiceQuestion) -> str:
    return flatten(question.question).strip()


def choose_by(scores: Sequence[float], *, several: bool) -> tuple[int, ...]:
    """Return the options chosen by their scores, 0-based and ascending, at least one.

    With one right option, the first of equal scores is chosen, which shuffling makes
    fair. With several, all are chosen if all scores are equal.
    """
    best = max(range(len(scores)), key=scores.__getitem__)
    if not several:
        return (best,)
    mean = math.fsum(scores) / len(scores)
    above = tuple(index for index, score in enumerate(scores) if score > mean)
    return above or tuple(range(len(scores)))
