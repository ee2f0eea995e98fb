"""What tests of the gates draw: thresholds, and policies with any of them."""

from typing import Any

from hypothesis import strategies as st

from qa.pipeline.policy import Policy

from .values import make_policy

share = st.floats(0, 1, allow_nan=False)
bound = st.floats(0, 2, allow_nan=False)
least = st.just(0.0) | share


def policies(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[Policy]:
    return st.builds(
        make_policy,
        alpha=bound,
        alpha_unverified=bound,
        min_verdict=share,
        hard_refusal=st.booleans(),
        soft_refusal=st.booleans(),
        support_check=st.booleans(),
        abstention=st.booleans(),
        min_confidence=least,
        min_early_confidence=least,
        min_joint_confidence=least,
        answer_without_probe=st.booleans(),
        sources_must_agree=st.booleans(),
        **more,
    )
