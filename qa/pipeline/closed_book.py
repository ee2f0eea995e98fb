"""What the adaptive scope puts before looking: the model, asked by itself."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from .monitored import SegmentWriter, answer_monitored
from .monitored_outcome import conclude_monitored, holds_for
from .policy import Policy, RetrievalTiming
from .self_knowledge import SelfKnowledge, conclude_unsourced, consider, recall
from .values import Boundary, Clock, Outcome, Question, Retriever, StageValue


@dataclass(frozen=True, slots=True)
class ClosedBookModels:
    """What loads the model that is asked by itself; nothing is loaded before it is asked.

    Attributes:
        knowledge: Whoever tells whether it knows.
        writer: Whoever writes and watches, for a policy that retrieves meanwhile.
    """

    knowledge: Callable[[], SelfKnowledge]
    writer: Callable[[], SegmentWriter]


def answer_closed_book(
    question: Question,
    *,
    mind: ClosedBookModels,
    retriever: Retriever,
    policy: Policy,
    clock: Clock,
) -> Generator[StageValue, None, Boundary | Outcome]:
    """Yield whether the model answers by itself, and return what it came to.

    Returns:
        The outcome, or where evidence is to be looked for, why.
    """
    if policy.retrieval_timing is RetrievalTiming.MONITORED:
        writer = clock.time("boundary_load", mind.writer)
        # What another writer was watched by says nothing of this one's words.
        watched = (
            policy
            if holds_for(writer.fingerprint, policy)
            else replace(policy, min_token_confidence=math.inf)
        )
        monitored = clock.time(
            "monitored",
            answer_monitored,
            question,
            writer=writer,
            retriever=retriever,
            policy=watched,
        )
        outcome = conclude_monitored(
            question, monitored, retriever=retriever, policy=policy, clock=clock
        )
        if outcome.boundary:
            yield outcome.boundary
        return outcome
    own = clock.time("boundary_load", mind.knowledge)
    considered, boundary = clock.time(
        "boundary", consider, question, own=own, policy=policy
    )
    draft, boundary = clock.time("recall", recall, considered, boundary)
    yield boundary
    if draft is None:
        return boundary
    return conclude_unsourced(question, boundary, draft, policy=policy, clock=clock)
