"""Whether a policy's thresholds belong to the models that are running."""

from .policy import Policy
from .values import Calibration, Retrieval


def current_calibration(
    policy: Policy,
    retrieval: Retrieval,
    language_model: str = "",
    *,
    probes: str | None = None,
) -> Calibration:
    """Compare the models that ran with those that the policy was set for.

    Args:
        probes: Fingerprints of the active ones; None if none was needed.
    """
    return calibration_under(
        policy,
        embedder=retrieval.embedder,
        retrieval=retrieval.method,
        language_model=language_model,
        probes=probes,
    )


def calibration_under(
    policy: Policy,
    *,
    embedder: str,
    retrieval: str,
    language_model: str,
    probes: str | None,
) -> Calibration:
    """Compare the running models with those the policy was set for; "" means unknown.

    A policy may name several fingerprints, separated by spaces: a model has one for
    each dtype that it runs in. Of probes it names all that its thresholds are for, with
    the sets of several language models separated by "|".

    Args:
        probes: Fingerprints of the active ones, separated by spaces; "" if none is
            active, None if unknown. They matter only if abstention is enforced.
    """
    pairs = (
        (policy.calibrated_embedder, embedder),
        (policy.calibrated_retrieval, retrieval),
        (policy.calibrated_language_model, language_model),
    )
    if any(
        set_for and running and running not in set_for.split()
        for set_for, running in pairs
    ) or _lacks_its_own(policy, probes):
        return Calibration.STALE
    if policy.is_calibrated:
        return Calibration.CURRENT
    is_own = policy.is_self_calibrated
    return Calibration.SELF_CALIBRATED if is_own else Calibration.HAND_SET


def _lacks_its_own(policy: Policy, probes: str | None) -> bool:
    """Return whether a probe that the policy was set for is no longer active."""
    if probes is None or not (policy.abstention and policy.calibrated_probes):
        return False
    active = set(probes.split())
    sets = policy.calibrated_probes.split("|")
    return not any(active.issuperset(each.split()) for each in sets)


def holds_for(closed_book: str, policy: Policy) -> bool:
    """Return whether the policy was set for this way of asking a model, or for none."""
    set_for = policy.calibrated_own_knowledge.split()
    return not set_for or closed_book in set_for


def closed_book_calibration(policy: Policy, closed_book: str) -> Calibration:
    if not holds_for(closed_book, policy):
        return Calibration.STALE
    is_calibrated = policy.is_calibrated and bool(policy.calibrated_own_knowledge)
    return Calibration.CURRENT if is_calibrated else Calibration.HAND_SET
