"""How sure a proposed entry is: what curators made of the same model's earlier ones.

With enough decisions, a logistic curve over the three signals, fitted on whether a
curator let the proposal in unchanged. Before that, the least of the signals, held down:
see `kb.enrichment.signals.unreviewed_confidence`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.enrichment.forms import PROMPT_VERSION
from kb.enrichment.signals import LEAST_CONFIDENCE, Signals, unreviewed_confidence
from kb.models import Proposal

LEAST_DECISIONS: Final = 50
"""So many decisions, and of either kind a fifth of that, before they count."""
MOST_FITTED: Final = 0.95
_MOST_DECISIONS: Final = 5_000  # the latest; a model does not change, people may
_LEAST_OF_EITHER: Final = LEAST_DECISIONS // 5


@dataclass(frozen=True, slots=True)
class Trust:
    """How signals become a confidence.

    Attributes:
        decisions: How many decisions it rests on; 0 for the rule that needs none.
        weights: Of a constant and of the features in log-odds; None for that rule.
    """

    decisions: int
    weights: tuple[float, ...] | None = None

    def confidence(self, signals: Signals) -> float:
        """Return the confidence in (0, 1) of an entry with these signals."""
        if self.weights is None:
            return unreviewed_confidence(signals)
        odds = self.weights[0] + float(np.dot(self.weights[1:], _features(signals)))
        share = 1 / (1 + float(np.exp(-odds)))
        return min(MOST_FITTED, max(LEAST_CONFIDENCE, share))


def trust_in(model_fingerprint: str) -> Trust:
    """Return how far a model's proposals may be trusted, from curators' decisions.

    An edited proposal counts as one that was not right as it stood.
    """
    decided = (
        Proposal.objects.decided()
        .filter(model_fingerprint=model_fingerprint, prompt_version=PROMPT_VERSION)
        .order_by("-decided_at")
        .values_list("stated", "agreement", "likelihood", "state")[:_MOST_DECISIONS]
    )
    rows = [
        (_features(Signals(stated, agreement, likelihood)), state)
        for stated, agreement, likelihood, state in decided
    ]
    right = np.asarray([state == Proposal.State.APPROVED for _, state in rows])
    few = min(int(right.sum()), len(rows) - int(right.sum()))
    if len(rows) < LEAST_DECISIONS or few < _LEAST_OF_EITHER:
        return Trust(0)
    # A second to import, which a process without so many decisions never pays.
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    fitted = LogisticRegression(C=1.0, max_iter=1_000)
    fitted.fit(np.asarray([features for features, _ in rows]), right)
    weights = (float(fitted.intercept_[0]), *map(float, fitted.coef_[0]))
    return Trust(len(rows), weights)


def _features(signals: Signals) -> tuple[float, float, float, float]:
    """Return the signals; a model that tells no likelihood has its own constant."""
    told = signals.likelihood is not None
    return (
        signals.stated,
        signals.agreement,
        signals.likelihood or 0.0,
        1.0 if told else 0.0,
    )
