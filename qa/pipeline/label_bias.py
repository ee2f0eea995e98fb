"""A model's leaning to one label, measured on examples and taken back.

Among examples with known labels, those that the model gets wrong tell by how much it leans
to the other label; the mean of that is *added* to the label's own score. The published
equations subtract it, which deepens the leaning; their code adds it, and so do we.

References:
    DH-ICL, section 3.3, equations 1 to 6 (`delta` of either label).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelScores:
    """The scores of both labels at one place, as logits or any other log scale."""

    known: float
    unknown: float


@dataclass(frozen=True, slots=True)
class JudgedExample:
    """An example with its label, and the scores that the model gave there.

    Attributes:
        is_known: The label that it has.
        scores: Before the label was read, with the examples before it in view.
    """

    is_known: bool
    scores: LabelScores


@dataclass(frozen=True, slots=True)
class LabelBias:
    """What is added to the scores of either label; at least 0."""

    known: float
    unknown: float

    def corrected(self, scores: LabelScores) -> LabelScores:
        """Return scores without the leaning."""
        return LabelScores(scores.known + self.known, scores.unknown + self.unknown)


@dataclass(frozen=True, slots=True)
class LabelJudgement:
    """What a model holds of something asked, as a choice of two labels.

    Attributes:
        known: Probability in [0, 1] of "known" against "unknown", without the leaning;
            the published rule (the higher score) is 0.5.
        uncorrected: The same with it.
        bias: What was taken back.
        examples: How many examples it was measured on.
    """

    known: float
    uncorrected: float
    bias: LabelBias
    examples: int


def label_bias(examples: Sequence[JudgedExample]) -> LabelBias:
    """Return what the examples tell of the model's leaning.

    An example that is judged rightly counts as no error among those of its label; a label
    without an example is not corrected.
    """
    return LabelBias(
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
    """Judge what is asked by its scores, without what the examples tell of a leaning."""
    bias = label_bias(examples)
    return LabelJudgement(
        known=_share(bias.corrected(scores)),
        uncorrected=_share(scores),
        bias=bias,
        examples=len(examples),
    )


def _share(scores: LabelScores) -> float:
    """Return the logistic function of the difference, without overflow."""
    ahead = scores.known - scores.unknown
    if ahead >= 0:
        return 1 / (1 + math.exp(-ahead))
    return math.exp(ahead) / (1 + math.exp(ahead))


def _mean_shortfall(behind: Sequence[float]) -> float:
    """Return the mean of how far the right label lay behind, 0 where it lay ahead."""
    return sum(max(0.0, each) for each in behind) / max(len(behind), 1)
