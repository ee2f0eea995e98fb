"""What the adaptive scope puts before looking: the model, asked by itself."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from .monitored import SegmentWriter, answer_monitored
from .monitored_outcome import judge_monitored
from .policy import RetrievalTiming
from .self_knowledge import SelfKnowledge, consider, recall
from .staleness import holds_for
from .values import Retriever, StageValue, Trace


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
    trace: Trace, models: ClosedBookModels, retriever: Retriever
) -> Generator[StageValue, None, Trace]:
    """Yield whether the model answers by itself, and return the trace with it."""
    question, policy, clock = trace.question, trace.policy, trace.clock
    if policy.retrieval_timing is RetrievalTiming.MONITORED:
        writer = clock.time("boundary_load", models.writer)
        # What another writer was watched by says nothing of this one's words.
        watched = (
            policy
            if holds_for(writer.fingerprint, policy)
            else replace(policy, min_token_confidence=math.inf)
        )
        monitored = clock.time(
            "monitored", answer_monitored, question,
            writer=writer, retriever=retriever, policy=watched,
        )  # fmt: skip
        trace = judge_monitored(trace, monitored, retriever=retriever)
        if trace.boundary:
            yield trace.boundary
        return trace
    own = clock.time("boundary_load", models.knowledge)
    estimate, boundary = clock.time(
        "boundary", consider, question, own=own, policy=policy
    )
    draft, boundary = clock.time("recall", recall, estimate, boundary, policy=policy)
    yield boundary
    return replace(trace, boundary=boundary, generation=draft)
