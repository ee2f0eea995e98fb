"""A model's bias towards one label, measured on examples and corrected.

DH-ICL, section 3.3, equations 1 to 6, but the correction is *added* to the label's own
score: the published equations subtract it, which deepens the bias; their code adds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scipy.special import expit

from accounts.ids import digest
from probes.language_model import Context, Tokens, WhiteBoxModel
from probes.language_model.scoring import Example
from qa.exceptions import LabelPairError


@dataclass(frozen=True, slots=True)
class LabelScores:
    """The scores of both labels at one position, as logits or on another log scale."""

    known: float
    unknown: float

    def __add__(self, other: "LabelScores") -> "LabelScores":
        return LabelScores(self.known + other.known, self.unknown + other.unknown)


@dataclass(frozen=True, slots=True)
class JudgedExample:
    """An example, and its scores before its label was read, after earlier examples."""

    is_known: bool
    scores: LabelScores


@dataclass(frozen=True, slots=True)
class LabelJudgement:
    """A model's judgment of a question, as a choice between two labels.

    Attributes:
        known: Debiased probability in [0, 1] of "known"; the published rule (the higher
            score) corresponds to a threshold of 0.5.
        uncorrected: The same before debiasing.
        bias: What was added to the scores, at least 0 each.
    """

    known: float
    uncorrected: float
    bias: LabelScores
    examples: int


def label_bias(examples: Sequence[JudgedExample]) -> LabelScores:
    """Return what must be added to each label's score, at least 0.

    A correctly judged example has an error of 0; a label without examples is not
    corrected.
    """
    return LabelScores(
        known=_mean_shortfall(
            [e.scores.unknown - e.scores.known for e in examples if e.is_known]
        ),
        unknown=_mean_shortfall(
            [e.scores.known - e.scores.unknown for e in examples if not e.is_known]
        ),
    )


def judge_label(
    examples: Sequence[JudgedExample], scores: LabelScores
) -> LabelJudgement:
    bias = label_bias(examples)
    return LabelJudgement(
        known=_share(scores + bias),
        uncorrected=_share(scores),
        bias=bias,
        examples=len(examples),
    )


def _share(scores: LabelScores) -> float:
    return float(expit(scores.known - scores.unknown))


def _mean_shortfall(behind: Sequence[float]) -> float:
    return sum(max(0.0, each) for each in behind) / max(len(behind), 1)


# Most tokenizers have a word with a leading space as one token, some only without it.
_LEADS: Final = (" ", "")


@dataclass(frozen=True, slots=True)
class LabelPair:
    """The words for the label "known" and for its opposite."""

    known: str
    unknown: str

    def __str__(self) -> str:
        return f"{self.known}/{self.unknown}"


def read_pair(text: str) -> LabelPair:
    """Parse a pair as the setting has it: two different words with a slash between."""
    words = [word.strip() for word in text.split("/")]
    if len(words) != 2 or not all(words) or words[0] == words[1]:
        raise LabelPairError(
            f"{text[:80]!r} is not a pair of labels. Write two different words with a "
            'slash between them, such as "true/false": first the one for what is known.'
        )
    return LabelPair(*words)


def label_tokens(pair: LabelPair, tokens: Tokens, *, model: str) -> tuple[int, int]:
    """Return the tokens of "unknown" and "known", in this order.

    The index of a label is thus whether it is known. Both tokens have a leading space,
    or neither has. `model` is named in the error message.
    """
    known: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    for lead in _LEADS:
        known = tokens.encode_text(f"{lead}{pair.known}")
        unknown = tokens.encode_text(f"{lead}{pair.unknown}")
        if len(known) == len(unknown) == 1 and known != unknown:
            return unknown[0], known[0]
    raise LabelPairError(
        f'The labels "{pair}" are {len(known)} and {len(unknown)} tokens in {model}, '
        "and must be one token each, and different ones. Set NESCIO_HISTORY_LABELS to "
        "words that are one token in this model, "
        'such as "true/false", "yes/no" or "A/B".'
    )


_END: Final = "\n\n"


class LabelJudge:
    """One way of asking a model for one of two labels, after labelled examples."""

    def __init__(
        self,
        model: WhiteBoxModel,
        labels: LabelPair,
        *,
        instruction: str,
        fixed: Sequence[Example],
    ) -> None:
        """Set up the form; `instruction`, which names the labels, is read first."""
        self.model = model
        self.labels = labels
        self._options = label_tokens(labels, model.tokens, model=model.name)
        said = instruction.format(known=labels.known, unknown=labels.unknown)
        self._instruction = model.tokens.encode_text(said)
        self._end = model.tokens.encode_text(_END)
        self._fixed = tuple(fixed)
        self._judged_fixed: tuple[JudgedExample, ...] | None = None
        self.fingerprint = digest(model.fingerprint, labels, self._prefix_ids())

    def judge_tokens(
        self, examples: Sequence[Example], asked: Sequence[int]
    ) -> LabelJudgement:
        """Return the judgment of what is asked, in one pass.

        The nearest example comes last; the farthest are left out if they do not all fit
        the model's context.
        """
        model = self.model
        with model.turn():
            fixed = self._leaning_on_fixed()
            prefix = model.read_prefix(self._prefix_ids())
            shown = self._fitting(examples, len(prefix) + len(asked))
            scores = self._scores(shown, asked, prefix)
        judged = [
            JudgedExample(bool(each.label), score)
            for each, score in zip(shown, scores[:-1], strict=True)
        ]
        return judge_label([*fixed, *(judged if fixed else judged[1:])], scores[-1])

    def _leaning_on_fixed(self) -> tuple[JudgedExample, ...]:
        """Return the model's scores on the fixed examples; computed once."""
        if not self._fixed:
            return ()
        if self._judged_fixed is None:
            *before, last = self._fixed
            scores = self._scores(
                before, last.ids, self.model.read_prefix(self._instruction)
            )
            judged = zip(self._fixed, scores, strict=True)
            rows = [JudgedExample(bool(each.label), score) for each, score in judged]
            self._judged_fixed = tuple(rows[1:])
        return self._judged_fixed

    def _scores(
        self, examples: Sequence[Example], asked: Sequence[int], after: Context
    ) -> list[LabelScores]:
        rows = self.model.score_labels(
            examples, asked, self._options, after, end=self._end
        )
        return [LabelScores(known=row[1], unknown=row[0]) for row in rows.tolist()]

    def _prefix_ids(self) -> tuple[int, ...]:
        ids = list(self._instruction)
        for each in self._fixed:
            ids += [*each.ids, self._options[each.label], *self._end]
        return tuple(ids)

    def _fitting(self, examples: Sequence[Example], taken: int) -> list[Example]:
        room = self.model.context_length - taken
        kept: list[Example] = []
        for each in reversed(examples):
            room -= len(each.ids) + 1 + len(self._end)
            if room < 0:
                break
            kept.append(each)
        return kept[::-1]
