"""Whether a policy's thresholds belong to the models that are running."""

from .types import Calibration, Policy, Retrieval


def calibration_of(
    policy: Policy, retrieval: Retrieval, language_model: str = ""
) -> Calibration:
    """Compare what ran with what the policy was set for; "" was not recorded or needed."""
    return calibration_under(
        policy,
        embedder=retrieval.embedder,
        retrieval=retrieval.method,
        language_model=language_model,
    )


def calibration_under(
    policy: Policy, *, embedder: str, retrieval: str, language_model: str
) -> Calibration:
    """Compare what is running with what the policy was set for; "" is not known.

    A policy may name several, separated by spaces: one model has a fingerprint for each
    dtype that it is run in.
    """
    pairs = (
        (policy.calibrated_embedder, embedder),
        (policy.calibrated_retrieval, retrieval),
        (policy.calibrated_language_model, language_model),
    )
    if any(
        set_for and running and running not in set_for.split()
        for set_for, running in pairs
    ):
        return Calibration.STALE
    return Calibration.CURRENT if policy.is_calibrated else Calibration.HAND_SET
