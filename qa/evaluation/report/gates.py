"""What each gate is worth: the gates played again on signals that were stored.

A gate that was enforced hides what is behind it. Where that happened, it is said, and no
figure is made up: run the suite with every gate in shadow to be able to tell.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import table_of
from qa.evaluation.metrics.abstention import two_by_two
from qa.pipeline.replay import Thresholds

from .counts import Columns, Flags, Part, rate

SWITCHES = ("hard_refusal", "soft_refusal", "support_check", "abstention")
# Name: which of the switches are on.
ABLATIONS = {
    "no gate": (False, False, False, False),
    "hard refusal alone": (True, False, False, False),
    "soft refusal alone": (False, True, False, False),
    "abstention alone": (False, False, False, True),
    "hard and soft refusal": (True, True, False, False),
    "hard, soft and abstention": (True, True, False, True),
    "all gates": (True, True, True, True),
}
ALPHAS = tuple(round(0.1 * step, 1) for step in range(1, 21))


class FrozenThresholds(Thresholds, Protocol):
    """Thresholds that are a dataclass, of which copies with other switches are made."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


def ablations(columns: Columns, policy: FrozenThresholds | None) -> Part:
    """Return what each choice of gates would have come to, at this policy's thresholds."""
    why = _why_not(columns.rows, policy)
    if why or policy is None:
        return {"why_not": why, "gates": {}}
    table = table_of(columns.rows)
    own = table.decide(policy)
    differing = int((own.answered != columns.answered)[~own.unknown].sum())
    parts = {}
    for name, switches in ABLATIONS.items():
        chosen = replace(policy, **dict(zip(SWITCHES, switches, strict=True)))
        decided = table.decide(chosen)
        parts[name] = _ablation(columns, decided.answered, decided.unknown)
    return {"why_not": "", "replayed_otherwise": differing, "gates": parts}


def alpha_sweep(
    rows: Sequence[LabelledAnswer], policy: FrozenThresholds | None
) -> list[Part]:
    """Return refused count and accuracy for growing alpha: hard refusal alone, all gates.

    Empty where it can't be told; `ablations` says why.

    References:
        Learn to Refuse (Cao, 2023), figure 5.
    """
    if policy is None or _why_not(rows, policy):
        return []
    table = table_of(rows)
    swept = []
    for alpha in sorted({*ALPHAS, policy.alpha}):
        part: Part = {"alpha": alpha, "is_own": alpha == policy.alpha}
        for name in ("hard refusal alone", "all gates"):
            switches = dict(zip(SWITCHES, ABLATIONS[name], strict=True))
            decided = table.decide(replace(policy, alpha=alpha, **switches))
            shown = int(decided.answered.sum())
            wrong = int((decided.answered & table.wrong).sum())
            unknown = int(decided.unknown.sum())
            part[name] = {
                "refused": len(rows) - shown - unknown,
                "answered": shown,
                "unknown": unknown,
                "accuracy": 1 - wrong / shown if shown and not unknown else None,
            }
        swept.append(part)
    return swept


def _why_not(rows: Sequence[LabelledAnswer], policy: FrozenThresholds | None) -> str:
    if policy is None:
        return "No policy decided this run, so there are no gates to leave out."
    if not any(row.signals for row in rows):
        return "No signals are stored with these results, so no gate can be replayed."
    return ""


def _ablation(columns: Columns, answered: Flags, unknown: Flags) -> dict[str, Any]:
    undrafted = answered & ~columns.has_draft & ~columns.undue
    hidden = int((unknown | undrafted).sum())
    if hidden:
        return {
            "unknown": hidden,
            "why_not": f"Of {hidden:,} questions it is not known what would have been "
            "answered: an enforced gate refused them first. Run the suite in shadow.",
        }
    table = two_by_two(columns.should_answer, answered.tolist())
    return {
        "unknown": 0,
        "why_not": "",
        "answered": rate(answered, columns.all),
        "accuracy": rate(~columns.wrong, answered),
        "wrong_answers": rate(columns.wrong, answered),
        "false_answers": rate(answered, columns.undue),
        "false_refusals": rate(~answered, columns.due),
        "abstention": {
            "precision": table.precision,
            "recall": table.recall,
            "f1": table.f1,
        }
        if np.any(columns.undue)
        else None,
    }
