"""Deciding as of a past moment, with the knowledge, policy and wordings of then."""

from collections.abc import Mapping
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import prefetch_related_objects
from django.utils import timezone

from accounts.acting import acting_for, unrestricted
from accounts.people import AnyUser
from accounts.roles import Role, has_role_in
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.search.models import FormerRow
from kb.search.past import first_moment, make_past_vectors, one_of_few
from kb.types import Evidence, Past, Scope
from qa import pipeline
from qa.answers.models import Answer
from qa.exceptions import MomentError, PastForbiddenError
from qa.pipeline.policy import Policy as PolicyValue
from qa.pipeline.policy import Scope as AnswerScope
from qa.pipeline.values import Outcome
from qa.policies.ask_prefetch import Prefetched, keep
from qa.policies.models import Policy, PolicyActivation, RefusalWording
from qa.policies.services import active_policy

from .asking import look, sources_for
from .questions import find_knowledge_base, new_question
from .recording import evidence_rows, fill_in
from .sources import before_the_model, evidence_scope

# The most entries that one request embeds before it searches.
MAX_EMBEDDED = 500


def ask_as_of(
    text: str,
    *,
    asker: AnyUser,
    channel: str,
    at: datetime,
    knowledge_base: KnowledgeBase | None = None,
    language: str | None = None,
    max_embedded: int | None = MAX_EMBEDDED,
) -> Answer:
    """Return the answer that would have been given at `at`, with evidence; unstored.

    Nothing is shown that the asker may not see today. Models and probes are today's.
    """
    base = knowledge_base or find_knowledge_base()
    answer = new_question(
        text, asker=asker, channel=channel, knowledge_base=base, language=language
    )
    with one_of_few(), acting_for(asker):
        policy, value, scope = prepare(
            base, asker=asker, at=at, max_embedded=max_embedded
        )
        outcome = decide_then(answer, policy, scope=scope, value=value)
        fill_in(answer, outcome, policy)
        answer.created_at, answer.as_of = timezone.now(), at
        answer.pieces = list(evidence_rows(answer, outcome))
        prefetch_related_objects(answer.pieces, "revision")
    found: dict[int | None, Evidence] = {
        each.entry_id: each for each in (*outcome.evidence, *outcome.near_misses)
    }
    for piece in answer.pieces:  # all found with the asker's permissions
        piece.is_withheld = False
        piece.then = found[piece.entry_id]
    answer.is_withheld = False
    answer.readable_reason = answer.shown_reason
    return answer


def prepare(
    knowledge_base: KnowledgeBase,
    *,
    asker: AnyUser,
    at: datetime,
    policy: Policy | None = None,
    max_embedded: int | None = MAX_EMBEDDED,
) -> tuple[Policy, PolicyValue, Scope]:
    """Return policy, its values and scope to decide as of `at`; embed missing vectors.

    Args:
        policy: The version to decide by; the one active at `at` if None.

    Raises:
        PastForbiddenError: The asker is not a curator.
        MomentError: `at` is before the first entry, or in the future.
        PastNotReadyError: More than `max_embedded` entries have to be embedded first.
    """
    if not has_role_in(asker, Role.CURATOR, knowledge_base.pk):
        raise PastForbiddenError(
            "Asking as of a moment needs the role curator, as it reads entries retired "
            "since; leave as_of out."
        )
    if at > timezone.now():
        raise MomentError(
            f"{at.isoformat()} is in the future; name a past moment, or none for now."
        )
    first = first_moment(knowledge_base.pk)
    if first is None or at < first:
        began = f"its first entry is of {first.isoformat()}" if first else "it is empty"
        raise MomentError(
            f"At {at.isoformat()} the knowledge base {knowledge_base.slug!r} had no entry "
            f"that you may see: {began}; name a later moment."
        )
    make_past_vectors(knowledge_base.pk, at, limit=max_embedded)
    policy = policy or policy_at(knowledge_base, at)
    scope = _scope_at(asker, knowledge_base, policy, at)
    return policy, _as_allowed_today(policy), scope


def policy_at(knowledge_base: KnowledgeBase, at: datetime) -> Policy:
    """Return the version active at `at`; before any activation, the first version."""
    history = PolicyActivation.objects.of(knowledge_base)
    if last := history.filter(at__lte=at).first():
        return last.policy
    following = history.filter(at__gt=at).last()
    if following is None:
        return active_policy(knowledge_base)
    return following.replaced or following.policy


def _scope_at(
    asker: AnyUser, knowledge_base: KnowledgeBase, policy: Policy, at: datetime
) -> Scope:
    """Return the scope of evidence at `at`, limited to what `asker` may see today."""
    today = evidence_scope(asker, knowledge_base, policy.as_value())
    audiences = Audience.objects.ids_visible_to(asker)
    return replace(today, at=at, audience_ids=audiences, past=Past.ALLOWED_NOW)


def decide_then(
    answer: Answer, policy: Policy, *, scope: Scope, value: PolicyValue | None = None
) -> Outcome:
    """Decide a question in `scope`, as of its moment if that is past; store nothing.

    In a past scope, refusals use the wordings of then, and the vectors of then must
    exist.
    """
    frozen = value or policy.as_value()
    if scope.past:
        answer.knowledge_base = with_wordings(answer.knowledge_base, policy, scope)
    sources = sources_for(answer, frozen, scope=scope)
    with ExitStack() as place:
        waits = frozen.scope is AnswerScope.ADAPTIVE
        if waits:
            place.enter_context(before_the_model.take())
        trace = pipeline.finish(look(answer, sources, frozen))
        if not (trace.is_decided or waits):
            place.enter_context(before_the_model.take())
        trace = pipeline.finish(pipeline.write(trace, sources))
    return pipeline.conclude(trace)


def _as_allowed_today(policy: Policy) -> PolicyValue:
    """Reveal hidden knowledge only if the active version does, too."""
    value = policy.as_value()
    today = active_policy(policy.knowledge_base).reveal_not_entitled
    return replace(value, reveal_not_entitled=value.reveal_not_entitled and today)


def with_wordings(
    knowledge_base: KnowledgeBase, policy: Policy, scope: Scope
) -> KnowledgeBase:
    """Return a copy of the knowledge base with its wordings at the scope's moment."""
    rows: dict[int, Mapping[str, Any] | None] = {
        row["id"]: row for row in RefusalWording.objects.values()
    }
    with unrestricted("wordings as they were"):
        rows |= FormerRow.objects.at(scope.at, "qa_refusalwording")
    own = [
        row
        for row in rows.values()
        if row and row["knowledge_base_id"] == knowledge_base.pk
    ]
    then = copy(knowledge_base)
    wordings = {(row["language"], row["reason"]): row["text"] for row in own}
    read = Prefetched(policy, AnonymousUser(), scope.audience_ids, wordings, {})
    keep(then, read)  # no synonyms, as the question is reworded already
    return then
