"""Deciding a stored answer again, with the knowledge of then and with today's."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from accounts.acting import acting_for, unrestricted
from kb.embedding.vector_index import EXACT_LIMIT
from kb.entries.models import Entry, Revision
from kb.search.past import exact_since, make_past_vectors
from kb.types import Past, Scope
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.exceptions import AnswerNotFoundError, NotReplayableError
from qa.pipeline.policy import Scope as AnswerScope
from qa.pipeline.replay import flat
from qa.policies.models import Policy
from qa.policies.services import active_policy

from .past import decide_then
from .recording import evidence_rows, fill_in
from .sources import evidence_scope

_DECIDED = (Answer.Outcome.ANSWERED, Answer.Outcome.REFUSED)
_MODELS = {"embedder": "embedding model", "language_model": "language model"}


@dataclass(frozen=True, slots=True)
class Used:
    """A piece of evidence: which revision of which entry, and its role."""

    entry: int | None
    revision: int | None
    role: str
    quote: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision on a question; `evidence` has the best first."""

    outcome: str
    gate: str
    reason: str
    shown_reason: str
    text: str
    evidence: tuple[Used, ...]

    @classmethod
    def of(cls, answer: Answer, pieces: Sequence[AnswerEvidence]) -> Self:
        used = (Used(p.entry_id, p.revision_id, p.role, p.quote) for p in pieces)
        return cls(
            answer.outcome,
            answer.gate,
            answer.reason,
            answer.shown_reason,
            answer.text,
            tuple(used),
        )

    def differing(self, other: "Decided") -> tuple[str, ...]:
        """Return the names of the fields that differ."""
        names = (each.name for each in fields(self))
        return tuple(n for n in names if getattr(self, n) != getattr(other, n))


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between then and now; `what` is "entry", "policy", "model", etc."""

    what: str
    name: str
    then: str
    now: str


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer as stored, decided again as of its moment, and decided today.

    Attributes:
        limits: What could not be reproduced as it was then.
        changed: Differences between what decided then and what would decide today.
        entries: Today's words of each entry that is named, by id.
    """

    answer: Answer
    at: datetime
    stored: Decided
    then: Decided
    now: Decided
    limits: tuple[str, ...]
    changed: tuple[Difference, ...]
    entries: Mapping[int, str]

    @property
    def is_equal(self) -> bool:
        return self.stored == self.then


def find_answer(answer_id: UUID) -> Answer:
    """Return a decided answer that still has its words.

    Raises:
        AnswerNotFoundError: It does not exist.
        NotReplayableError: It was not decided, or its words were erased.
    """
    rows = Answer.objects.select_related("knowledge_base", "policy", "asker")
    answer = rows.filter(pk=answer_id).first()
    if answer is None:
        raise AnswerNotFoundError(f"There is no answer {answer_id}.")
    if answer.outcome not in _DECIDED:
        raise NotReplayableError(
            f"Answer {answer_id} is {answer.outcome}: it has no decision that could be "
            "replayed."
        )
    if answer.erased_at:
        raise NotReplayableError(
            f"The words of answer {answer_id} were erased on {answer.erased_at:%Y-%m-%d}; "
            "without its question it can't be decided again."
        )
    return answer


def replay(answer: Answer) -> Replay:
    """Decide a stored answer twice more, as of then and as of now; store nothing.

    For users who may see everything: each entry's audience is taken as it was then.
    """
    if answer.policy is None:
        raise NotReplayableError(f"Answer {answer.pk} names no policy.")
    with unrestricted("an answer decided again"):
        scope, limits = _scope_then(answer, answer.policy)
        make_past_vectors(scope.knowledge_base_id, scope.at)
        pieces = list(answer.evidence.order_by("rank"))
        stored = Decided.of(answer, pieces)
        row_then, then = _again(answer, answer.policy, scope)
        policy = active_policy(answer.knowledge_base)
        today = _scope_today(answer, policy, scope)
        with acting_for(answer.asker) if answer.asker else nullcontext():
            row_now, now = _again(answer, policy, today)
        limits += tuple(_limits(answer, row_then, scope))
        changed = (
            *_entries(stored, now, scope, today),
            *_others(answer, scope),
            *_audiences(scope, today),
            *_policies(answer.policy, policy),
            *_models(answer, row_now),
            *_wordings(then, now),
        )
        entries = _said([*stored.evidence, *then.evidence, *now.evidence])
    return Replay(answer, scope.at, stored, then, now, limits, changed, entries)


def _said(used: Sequence[Used]) -> Mapping[int, str]:
    ids = {piece.entry for piece in used if piece.entry is not None}
    found = Entry.objects.defer("search_vector").in_bulk(ids)
    return {key: entry.said for key, entry in sorted(found.items())}


def _again(answer: Answer, policy: Policy, scope: Scope) -> tuple[Answer, Decided]:
    row = Answer(
        knowledge_base=copy(answer.knowledge_base),
        asker=answer.asker,
        channel=answer.channel,
        question=answer.question,
        language=answer.language,
    )
    outcome = decide_then(row, policy, scope=scope)
    fill_in(row, outcome, policy)
    return row, Decided.of(row, list(evidence_rows(row, outcome)))


def _scope_then(answer: Answer, policy: Policy) -> tuple[Scope, tuple[str, ...]]:
    scope = evidence_scope(
        answer.asker or AnonymousUser(), answer.knowledge_base, policy.as_value()
    )
    if kept := answer.scope:
        at, audiences = datetime.fromisoformat(kept["at"]), tuple(kept["audiences"])
        return replace(scope, at=at, audience_ids=audiences, past=Past.AS_THEN), ()
    spent = sum(ms for stage, ms in answer.milliseconds.items() if "." not in stage)
    at = (answer.decided_at or answer.created_at) - timedelta(milliseconds=spent)
    note = (
        "It was decided before moment and audiences were stored with an answer: the "
        "moment is computed from its times, and its asker's audiences are today's."
    )
    return replace(scope, at=at, past=Past.AS_THEN), (note,)


def _scope_today(answer: Answer, policy: Policy, then: Scope) -> Scope:
    asker = answer.asker or AnonymousUser()
    scope = evidence_scope(asker, answer.knowledge_base, policy.as_value())
    # A deleted asker keeps the audiences of then.
    if answer.asker is None:
        scope = replace(scope, audience_ids=then.audience_ids)
    return scope


def _limits(answer: Answer, then: Answer, scope: Scope) -> Iterator[str]:
    since = exact_since()
    if since and scope.at < since:
        yield (
            "Changes of titles, headings, conflicts and wordings are recorded since "
            f"{since:%Y-%m-%d %H:%M}; what changed before is taken as it is now."
        )
    for name, words in _MODELS.items():
        was, runs = getattr(answer, name), getattr(then, name)
        if was and was != runs:
            yield f"Another {words} runs now: {runs or 'none'} in place of {was}."
    if answer.probes != then.probes:
        yield (
            f"Other probes or another verifier run now: {then.probes or 'none'} in place "
            f"of {answer.probes or 'none'}."
        )
    if (flat(answer.signals).get("visible_entries") or 0) >= EXACT_LIMIT:
        yield (
            f"More than {EXACT_LIMIT:,} entries were visible, and an index may have been "
            "searched; all of them were compared now."
        )
    policy = answer.policy
    if policy and (policy.debias_verdict or policy.scope == AnswerScope.ADAPTIVE):
        yield "Past questions that served as examples are those of today."


def _entries(
    stored: Decided, now: Decided, then: Scope, today: Scope
) -> Iterator[Difference]:
    """Yield how each entry used then or now changed in between."""
    used = (*stored.evidence, *now.evidence)
    ids = {piece.entry for piece in used if piece.entry is not None}
    for entry in Entry.objects.filter(pk__in=ids).order_by("pk"):
        rows = list(
            Revision.objects.filter(entry=entry)
            .select_related("author", "audience")
            .order_by("number")
        )
        before = [row for row in rows if row.created_at <= then.at]
        since = [row for row in rows if row.created_at > then.at]
        was = before[-1] if before else None
        name = str(entry.pk)
        if since:
            yield Difference(
                "entry",
                name,
                f"revision {was.number}, {_state(was)}" if was else "not there yet",
                f"revision {since[-1].number}, {_state(since[-1])}: "
                + "; ".join(_change(row) for row in since),
            )
        elif was and was.valid_until and then.at < was.valid_until <= today.at:
            yield Difference(
                "entry", name, "valid", f"expired on {was.valid_until:%Y-%m-%d %H:%M}"
            )


def _others(answer: Answer, then: Scope) -> Iterator[Difference]:
    """Yield how many entries changed since, including those used as evidence."""
    rows = Revision.objects.filter(
        entry__knowledge_base=answer.knowledge_base_id, created_at__gt=then.at
    )
    if count := rows.values("entry").distinct().count():
        yield Difference("entries", "all", "", f"{count:,} written or changed since")


def _state(revision: Revision) -> str:
    return (
        f"{revision.get_state_display()}, confidence {revision.confidence:g}, for "
        + (revision.audience.slug if revision.audience else "a deleted audience")
    )


def _change(revision: Revision) -> str:
    by = revision.author or revision.database_user or "unknown author"
    return (
        f"{revision.reason or 'Written.'} ({by}, {revision.created_at:%Y-%m-%d %H:%M})"
    )


def _audiences(then: Scope, today: Scope) -> Iterator[Difference]:
    was, now = set(then.audience_ids), set(today.audience_ids)
    if was != now:
        yield Difference("asker", "audiences", str(sorted(was)), str(sorted(now)))


def _policies(was: Policy, now: Policy) -> Iterator[Difference]:
    if was == now:
        return
    yield Difference("policy", "version", str(was), str(now))
    old, new = was.as_value(), now.as_value()
    for each in fields(old):
        before, after = getattr(old, each.name), getattr(new, each.name)
        if before != after:
            yield Difference("policy", each.name, str(before), str(after))


def _models(stored: Answer, now: Answer) -> Iterator[Difference]:
    for name, words in {**_MODELS, "probes": "probes and verifier"}.items():
        was, runs = getattr(stored, name), getattr(now, name)
        # A model that was not asked has no fingerprint in the answer.
        if was and runs and was != runs:
            yield Difference("model", words, was, runs)


def _wordings(then: Decided, now: Decided) -> Iterator[Difference]:
    is_refused = then.outcome == now.outcome == Answer.Outcome.REFUSED
    if is_refused and then.shown_reason == now.shown_reason and then.text != now.text:
        yield Difference("wording", then.shown_reason, then.text, now.text)


def as_dict(found: Replay) -> dict[str, Any]:
    """Return a replay as plain values, for JSON."""
    return {
        "answer": str(found.answer.pk),
        "question": found.answer.question,
        "at": found.at.isoformat(),
        "replayed_at": timezone.now().isoformat(),
        "equal": found.is_equal,
        "differs_from_stored": list(found.stored.differing(found.then)),
        "differs_today": list(found.stored.differing(found.now)),
        **{name: asdict(getattr(found, name)) for name in ("stored", "then", "now")},
        "entries": {str(key): said for key, said in found.entries.items()},
        "limits": list(found.limits),
        "changed": [asdict(each) for each in found.changed],
    }
