"""What the adaptive scope puts before looking: the model, asked by itself."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from .boundary import conclude_unsourced, consider, recall
from .clock import Clock
from .conclude_monitored import conclude_monitored
from .evidence import Retriever
from .monitored import SegmentWriter, answer_monitored
from .outcome import Boundary, Outcome, Question, StageValue
from .own_knowledge import OwnKnowledge
from .policy import Policy, RetrievalTiming


@dataclass(frozen=True, slots=True)
class OwnMind:
    """What loads the model that is asked by itself; nothing is loaded before it is asked.

    Attributes:
        knowledge: Whoever tells whether it knows.
        writer: Whoever writes and watches, for a policy that retrieves meanwhile.
    """

    knowledge: Callable[[], OwnKnowledge]
    writer: Callable[[], SegmentWriter]


def answer_by_itself(
    question: Question,
    *,
    mind: OwnMind,
    retriever: Retriever,
    policy: Policy,
    clock: Clock,
) -> Generator[StageValue, None, Boundary | Outcome]:
    """Yield whether the model answers by itself, and return what it came to.

    Returns:
        The outcome, or where evidence is to be looked for, why.

    Raises:
        LanguageModelUnavailableError: The model is down.
    """
    if policy.retrieval_timing is RetrievalTiming.MONITORED:
        writer = clock.time("boundary_load", mind.writer)
        monitored = clock.time(
            "monitored",
            answer_monitored,
            question,
            writer=writer,
            retriever=retriever,
            policy=policy,
        )
        outcome = conclude_monitored(question, monitored, policy=policy, clock=clock)
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
