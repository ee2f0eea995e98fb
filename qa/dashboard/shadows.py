"""Which of the answers shown the shadow gates would have refused."""

import json
from dataclasses import dataclass
from typing import Final

from django.db.models import Sum

from qa.dashboard.models import DailyShadow
from qa.dashboard.traffic import Scope, in_scope
from qa.pipeline.gates import SIGNALS, Gate
from qa.pipeline.replay import RATIO
from qa.pipeline.rules import Missing

# The signals that refuse if their switch is on, for daily_shadows.sql. Hard refusal
# compares each entry with its own limit and stores only the nearest with its limit.
JUDGING: Final = json.dumps(
    [
        {
            "name": name,
            "switch": row.switch,
            "comparison": row.comparison.value,
            "missing": row.missing.value,
            "unless": row.unless,
            # A confidence without a minimum is not compared.
            "above": row.threshold if row.missing is Missing.NO_PROBE else None,
        }
        for name, row in SIGNALS.items()
        if row.switch and row.comparison and (row.reason or name == RATIO)
    ]
)


@dataclass(frozen=True, slots=True)
class ShadowGate:
    """A shadow gate: how many answers it judged, and how many it would have refused.

    `right` and `wrong` are reviews of the latter, `up` and `down` votes on them.
    """

    gate: Gate
    answers: int
    refused: int
    right: int
    wrong: int
    up: int
    down: int

    @property
    def share(self) -> float:
        return self.refused / self.answers


def read_shadows(scope: Scope) -> tuple[ShadowGate, ...]:
    """Add up the period's days, in the order of the gates (one query)."""
    rows = in_scope(DailyShadow.objects.all(), scope).values_list("gate")
    sums = [
        Sum(name) for name in ("answers", "refused", "right", "wrong", "up", "down")
    ]
    gates = [ShadowGate(Gate(gate), *found) for gate, *found in rows.annotate(*sums)]
    order = list(Gate)
    return tuple(sorted(gates, key=lambda each: order.index(each.gate)))
