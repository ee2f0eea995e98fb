"""Decided answers written straight into the table: for pages that only show them."""

from typing import Any

from django.contrib.auth.models import User

from kb.models import Entry
from qa.models import Answer, AnswerEvidence, Policy, SelfCalibration
from qa.policies.services import ensure_default_policy
from tests.factories import make_knowledge_base


def make_answer(
    asker: User,
    *,
    question: str = "What does a new card cost?",
    cited: tuple[Entry, ...] = (),
    unused: tuple[Entry, ...] = (),
    near_misses: tuple[Entry, ...] = (),
    distance: float = 0.5,
    **fields: Any,
) -> Answer:
    """Make an answer resting on `cited`, or a refusal where it is empty."""
    knowledge_base = make_knowledge_base()
    defaults: dict[str, Any] = {
        "channel": Answer.Channel.PAGE,
        "policy": ensure_default_policy(knowledge_base),
        "calibration": "hand_set",
        "milliseconds": {"question": 0.1, "retrieve": 9.0, "hard_refusal": 0.2},
    }
    if cited:
        defaults |= {"outcome": "answered", "text": "It costs 12 euros."}
    else:
        defaults |= {
            "outcome": "refused",
            "gate": "hard_refusal",
            "reason": "too_far",
            "shown_reason": "too_far",
            "text": "I do not know.",
        }
    answer = Answer.objects.create(
        knowledge_base=knowledge_base,
        asker=asker,
        question=question,
        **{**defaults, **fields},
    )
    answer.is_withheld = False  # as its asker sees it
    role = AnswerEvidence.Role
    pieces = [
        *[(entry, role.CITED) for entry in cited],
        *[(entry, role.UNUSED) for entry in unused],
        *[(entry, role.NEAR_MISS) for entry in near_misses],
    ]
    for rank, (entry, what) in enumerate(pieces, start=1):
        AnswerEvidence.objects.create(
            answer=answer,
            entry=entry,
            revision=entry.revisions.latest("number"),
            rank=rank,
            role=what,
            distance=distance,
            confidence=entry.confidence,
        )
    return answer


def make_asked_back(asker: User, *near: Entry, count: int = 2, **fields: Any) -> Answer:
    """Make a refusal that asks which of the first `count` verified entries is meant."""
    signal = {"gate": "entry", "name": "competing_entries", "value": float(count)}
    reason = {"gate": "entry", "reason": "not_answered", "shown_reason": "not_answered"}
    return make_answer(
        asker,
        near_misses=near,
        signals=[{**signal, "threshold": None, "passed": None}],
        **reason | fields,
    )


def make_self_calibration(policy: Policy) -> SelfCalibration:
    """Write that own questions chose the thresholds of a policy."""
    counts = ("target", "unanswerable", "answered_share", "entries", "own", "foreign")
    return SelfCalibration.objects.create(
        knowledge_base=policy.knowledge_base,
        policy=policy,
        min_entry_answer=policy.min_entry_answer,
        shown=0,
        wrong=0,
        **dict.fromkeys(counts, 0),
    )
