"""Labelled answers with a known distribution, and any that gates can leave behind."""

import numpy as np
from hypothesis import strategies as st

from qa.evaluation.cases import LabelledAnswer

_SURE = {
    "readable": 1.0,
    "answer_characters": 20.0,
    "verdict": 1.0,
    "not_a_refusal_in_prose": 1.0,
    "citations_verified": 1.0,
    "unsupported_facts": 0.0,
}
_bound = st.floats(0, 2, allow_nan=False)
_share = st.floats(0, 1, allow_nan=False)
_flag = st.sampled_from((0.0, 1.0))

# Every key may be missing, None or measured: also what no gate leaves behind today.
any_signals = st.fixed_dictionaries(
    {},
    optional={
        "distance_over_confidence": st.none() | _bound,
        "verified_ratio": st.none() | _bound,
        "unverified_ratio": st.none() | _bound,
        "question_distance": st.none() | _bound,
        "question_ratio": _bound,
        "same_words": st.none() | _flag,
        "readable": st.none() | _flag,
        "answer_characters": st.none() | st.sampled_from((0.0, 7.0)),
        "verdict": st.none() | _flag,
        "verdict_probability": st.none() | _share,
        "not_a_refusal_in_prose": st.none() | _flag,
        "citations_verified": st.none() | st.sampled_from((0.0, 2.0)),
        "unsupported_facts": st.none() | st.sampled_from((0.0, 1.0)),
        "disagreeing_sources": st.none() | st.sampled_from((0.0, 1.0)),
        "answer_confidence": st.none() | _share,
        "early_confidence": st.none() | _share,
        "joint_confidence": st.none() | _share,
    },
)


def make_labelled(
    ident: str = "q1",
    *,
    right: bool | None = True,
    group: str = "",
    answerable: bool | None = True,
    **signals: float | None,
) -> LabelledAnswer:
    """Make an answer that nothing but the given signals speaks against."""
    measured = {"verified_ratio": 0.5, "unverified_ratio": None, **_SURE, **signals}
    return LabelledAnswer(ident, group, measured, answerable, right)


def draw(
    rng: np.random.Generator, count: int, *, per_group: int = 1, together: bool = False
) -> list[LabelledAnswer]:
    """Draw answers whose two signals tell right from wrong in a known way.

    Ratio r and verdict v are uniform on [0, 1]; with probability 0.8 r^2 + 0.2 (1 - v)^2
    an answer is wrong, so `risk_of` thresholds is known exactly. One chance decides for
    all of a group where they go `together`.
    """
    ratio, verdict = rng.random(count), rng.random(count)
    chance = rng.random(count)
    if together:
        chance = np.repeat(chance[::per_group], per_group)[:count]
    wrong = chance < 0.8 * ratio**2 + 0.2 * (1 - verdict) ** 2
    return [
        make_labelled(
            f"q{i}",
            group=f"g{i // per_group}",
            right=not wrong[i],
            verified_ratio=float(ratio[i]),
            verdict_probability=float(verdict[i]),
        )
        for i in range(count)
    ]


def risk_of(alpha: float, min_verdict: float) -> float:
    """Return the true risk of what `draw` draws: shown are r < alpha, v >= min_verdict."""
    return (0.8 * min(alpha, 1.0) ** 2 + 0.2 * (1 - min_verdict) ** 2) / 3
