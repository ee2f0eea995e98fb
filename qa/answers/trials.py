"""Trying a question under any version of a policy, as the caller or another user.

Nothing is stored: the code that answers runs on a row that is never written.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import QuerySet
from scipy.special import expit

from accounts.acting import acting_for
from accounts.roles import Role, holders
from kb.audiences.models import Audience
from kb.search.past import one_of_few
from kb.types import Evidence
from qa import pipeline
from qa.answers.models import Answer
from qa.pipeline.hard_gate import bound
from qa.pipeline.policy import Policy as PolicyValue
from qa.pipeline.policy import Scope
from qa.pipeline.values import Outcome, Retrieval, Trace
from qa.policies.models import Policy

from .asking import look, sources_for
from .past import prepare, with_wordings
from .questions import new_question
from .recording import fill_in
from .sources import before_the_model


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that the search found, and what became of it.

    Attributes:
        limit: It covers the question if its distance / confidence is below this.
        answers: The verifier's probability in [0, 1] that it answers; None if it was
            not asked.
        fate: "cited", "read", "near" (of a refusal), "kept" or "left out".
    """

    evidence: Evidence
    limit: float
    answers: float | None
    fate: str

    @property
    def is_covering(self) -> bool:
        return self.evidence.ratio < self.limit


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial; `answer` is pending if it ended before the model."""

    answer: Answer
    candidates: tuple[Candidate, ...]
    reads: tuple[int, ...]  # entries that were cited or near, best first


def askers_seen_by(caller: User) -> QuerySet[User]:
    """Return the users as whom a caller may try questions: those who see no more.

    Excludes members of any audience to which the caller does not belong; superusers are
    included for superusers only.
    """
    if caller.is_superuser:
        return holders(Role.AGENT)
    hidden = Audience.objects.hidden_from(caller)
    members = User.groups.through.objects.filter(group__audiences__in=hidden)
    rows = holders(Role.AGENT).exclude(is_superuser=True)
    return rows.exclude(pk__in=members.values("user_id"))


def try_question(
    text: str,
    *,
    asker: User,
    policy: Policy,
    asks_model: bool = True,
    at: datetime | None = None,
) -> Trial:
    """Decide a question as `asker`, by a version that need not be active or saved.

    Args:
        asks_model: Whether a language model may be asked; if not, the trial ends there.
        at: A past moment whose knowledge is used; only curators may give one.
    """
    answer = new_question(
        text,
        asker=asker,
        channel=Answer.Channel.PAGE,
        knowledge_base=policy.knowledge_base,
    )
    frozen, scope = policy.as_value(), None
    found: list[Evidence] = []
    with acting_for(asker), ExitStack() as place:
        if at:
            place.enter_context(one_of_few())
            base = answer.knowledge_base
            _, frozen, scope = prepare(base, asker=asker, at=at, policy=policy)
            answer.knowledge_base = with_wordings(base, policy, scope)
        sources = sources_for(answer, frozen, scope=scope)
        if not asks_model:
            sources = replace(sources, closed_book=None)
        is_waiting = asks_model and frozen.scope is Scope.ADAPTIVE
        if is_waiting:
            place.enter_context(before_the_model.take())
        trace = _noting(look(answer, sources, frozen), found)
        is_ended = not (trace.is_decided or asks_model)
        if not (trace.is_decided or is_ended):
            if not is_waiting:
                place.enter_context(before_the_model.take())
            trace = _noting(pipeline.write(trace, sources), found)
        outcome = pipeline.conclude(trace)
        fill_in(answer, outcome, policy)
    if is_ended:
        answer.outcome, answer.gate, answer.text = Answer.Outcome.PENDING, "", ""
    named = [c.entry_id for c in outcome.citations if not is_ended]
    return Trial(
        answer=answer,
        candidates=tuple(_candidates(trace, outcome, found, frozen)),
        reads=tuple(named or [piece.entry_id for piece in outcome.near_misses]),
    )


def _noting(steps: pipeline.Steps, found: list[Evidence]) -> Trace:
    """Run every step and append the evidence retrieved by each to `found`."""
    while True:
        try:
            value = next(steps)
        except StopIteration as end:
            trace: Trace = end.value
            return trace
        if isinstance(value, Retrieval):
            found += value.evidence


def _candidates(
    trace: Trace, outcome: Outcome, found: Iterable[Evidence], policy: PolicyValue
) -> Iterable[Candidate]:
    cited = {citation.entry_id for citation in outcome.citations}
    read = {piece.entry_id for piece in outcome.evidence}
    near = {piece.entry_id for piece in outcome.near_misses}
    kept = {piece.entry_id for piece in trace.retrieval.evidence}
    fates = (("cited", cited), ("near", near), ("read", read), ("kept", kept))
    pieces = {piece.entry_id: piece for piece in (*found, *outcome.evidence)}
    first = [*pieces][: policy.weighed]
    shown = {*(trace.odds or first), *cited, *near, *read, *kept}
    for entry in [entry for entry in pieces if entry in shown]:
        piece, odds = pieces[entry], trace.odds.get(entry)
        yield Candidate(
            evidence=piece,
            limit=bound(piece, policy),
            answers=None if odds is None else float(expit(odds)),
            fate=next((name for name, of in fates if entry in of), "left out"),
        )
