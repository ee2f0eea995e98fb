"""Following, changing and unfollowing sources, and requesting a check."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.exceptions import ConflictError
from jobs.models import Job
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase, check_writable
from kb.exceptions import (
    AudienceNotFoundError,
    InvalidKnowledgeError,
    SourceNotFoundError,
)
from kb.sources.kinds import find_kind
from kb.sources.models import MAX_HOURS, FollowedSource, FollowRule
from kb.text.cleaning import clean_line

KIND = "kb.follow"
NAME_LIMIT = 100
ADDRESS_LIMIT = 500
GROUP_LIMIT = 300
MAX_RULES = 200
CREDENTIAL_PREFIX: str = settings.SOURCE_CREDENTIAL_PREFIX
_CREDENTIAL = re.compile(rf"{CREDENTIAL_PREFIX}[A-Z0-9_]{{1,60}}")


@dataclass(frozen=True, slots=True)
class Rule:
    """Which audience sees the documents of a group; empty or `*` is everything."""

    group: str
    audience: Audience


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A curator's settings for a source."""

    name: str
    kind: str
    address: str
    knowledge_base: KnowledgeBase
    rules: Sequence[Rule]  # the first match decides; documents without one stay out
    every_hours: int = 24
    credential: str = ""  # the name of an environment variable
    is_active: bool = True


def check_following(
    said: Following, *, by: User, source_id: int | None = None
) -> Following:
    """Return the settings cleaned; reads nothing of the source, new or existing.

    Raises:
        InvalidKnowledgeError: A setting is invalid; `field` names it.
        RoleElsewhereError: The roles of `by` are in other knowledge bases.
    """
    check_writable(by, said.knowledge_base.pk)
    address = clean_line(said.address, field="address", limit=ADDRESS_LIMIT)
    # A source can be switched off even if its address may no longer be followed.
    same = FollowedSource.objects.filter(kind=said.kind, address=address)
    if source_id is None or not same.filter(pk=source_id).exists():
        find_kind(said.kind).check_address(address)
    if not 1 <= said.every_hours <= MAX_HOURS:
        raise InvalidKnowledgeError(
            "every_hours",
            f"every_hours is {said.every_hours}; it must be from 1 to {MAX_HOURS}.",
        )
    if said.credential and not _CREDENTIAL.fullmatch(said.credential):
        raise InvalidKnowledgeError(
            "credential",
            f"{said.credential[:100]!r} is not the name of a credential: an operator "
            f"sets an environment variable {CREDENTIAL_PREFIX}..., in capitals, and its "
            "name is given here, never the credential itself.",
        )
    name = clean_line(said.name, field="name", limit=NAME_LIMIT)
    # Its documents are named after it. A source that `by` may not see is not mentioned.
    others = FollowedSource.objects.visible_to(by).exclude(pk=source_id or 0)
    if others.filter(knowledge_base=said.knowledge_base, name=name).exists():
        raise InvalidKnowledgeError(
            "name",
            f"{said.knowledge_base} already follows a source {name!r}; choose another name.",
        )
    return Following(
        name=name,
        kind=said.kind,
        address=address,
        knowledge_base=said.knowledge_base,
        rules=_rules(said.rules, by),
        every_hours=said.every_hours,
        credential=said.credential,
        is_active=said.is_active,
    )


def _rules(rules: Sequence[Rule], by: User) -> tuple[Rule, ...]:
    if not 1 <= len(rules) <= MAX_RULES:
        raise InvalidKnowledgeError(
            "rules",
            f"There are {len(rules)} rules; give 1 to {MAX_RULES} that say who may see "
            "its documents.",
        )
    mine = set(Audience.objects.ids_visible_to(by))
    for rule in rules:
        if rule.audience.pk not in mine:
            raise AudienceNotFoundError(f"There is no audience {rule.audience.slug!r}.")
    return tuple(Rule(_group(each.group), each.audience) for each in rules)


def _group(said: str) -> str:
    name = clean_line(said, field="rules", limit=GROUP_LIMIT, required=False)
    return name.strip("*").strip()  # "prices/*" is the folder "prices"


@transaction.atomic
def follow_source(said: Following, *, by: User) -> FollowedSource:
    """Follow a source from now on; it is read at once if it is read on schedule."""
    said = check_following(said, by=by)
    source = FollowedSource(kind=said.kind, knowledge_base=said.knowledge_base)
    source = _write(source, said, by)
    if source.is_active:
        _enqueue(source, by, accept_loss=False)
    return source


@transaction.atomic
def change_source(source_id: int, said: Following, *, by: User) -> FollowedSource:
    """Change how a source is followed; `by` becomes its owner.

    Its kind and knowledge base cannot change. Documents that get another audience
    take their entries along at the next check.
    """
    return _change(_locked(source_id, by), said, by)


def _change(source: FollowedSource, said: Following, by: User) -> FollowedSource:
    said = check_following(said, by=by, source_id=source.pk)
    if (said.kind, said.knowledge_base) != (source.kind, source.knowledge_base):
        raise InvalidKnowledgeError(
            "kind", "The kind and knowledge base cannot change; follow another source."
        )
    return _write(source, said, by)


@transaction.atomic
def amend_source(source_id: int, *, by: User, **changes: object) -> FollowedSource:
    """Change only the given settings of a followed source."""
    source = _locked(source_id, by)
    as_it_is = Following(
        name=source.name,
        kind=source.kind,
        address=source.address,
        knowledge_base=source.knowledge_base,
        rules=[
            Rule(rule.group, rule.audience)
            for rule in source.rules.select_related("audience")
        ],
        every_hours=source.every_hours,
        credential=source.credential,
        is_active=source.is_active,
    )
    return _change(source, replace(as_it_is, **changes), by)  # type: ignore[arg-type]  # fields of Following


def _write(source: FollowedSource, said: Following, by: User) -> FollowedSource:
    source.name, source.address = said.name, said.address
    source.credential, source.every_hours = said.credential, said.every_hours
    source.is_active, source.owner = said.is_active, by
    source.next_check_at = None  # read at the next round
    source.save()
    before = list(source.rules.values_list("group", "audience"))
    if before != [(rule.group, rule.audience.pk) for rule in said.rules]:
        source.rules.all().delete()
        for position, rule in enumerate(said.rules):
            FollowRule.objects.create(
                source=source,
                position=position,
                group=rule.group,
                audience=rule.audience,
            )
    return source


def _locked(source_id: int, by: User) -> FollowedSource:
    rows = FollowedSource.objects.visible_to(by).select_for_update(no_key=True)
    source = rows.filter(pk=source_id).first()
    if source is None:
        raise SourceNotFoundError(f"There is no source {source_id} that you may see.")
    check_writable(by, source.knowledge_base_id)
    return source


@transaction.atomic
def check_now(source_id: int, *, by: User, accept_loss: bool = False) -> Job:
    """Queue a check of a source, or return the job that exists.

    Args:
        accept_loss: Whether to propose retirement even if most is gone.

    Raises:
        ConflictError: A check that does not accept a loss is running.
    """
    job = _enqueue(_locked(source_id, by), by, accept_loss=accept_loss)
    if accept_loss and job.parameters["accept_loss"] is not True:
        job.parameters["accept_loss"] = True
        queued = Job.objects.filter(pk=job.pk, state=Job.State.QUEUED)
        if not queued.update(parameters=job.parameters):
            raise ConflictError(
                "A check of this source is running, which proposes nothing if most is "
                "gone; ask again when it is done."
            )
    return job


def _enqueue(source: FollowedSource, by: User | None, *, accept_loss: bool) -> Job:
    job = enqueue(
        KIND,
        {"source": source.pk, "accept_loss": accept_loss},
        owner=by,
        idempotency_key=f"{KIND} {source.pk}",
    )
    source.job_id = job.pk
    source.next_check_at = timezone.now() + timedelta(hours=source.every_hours)
    source.save(update_fields=["job_id", "next_check_at"])
    return job


@transaction.atomic
def check_due() -> int:
    """Queue checks of all sources that are due, and return their number."""
    rows = FollowedSource.objects.due(timezone.now()).select_related("owner")
    due = list(rows.select_for_update(of=("self",), skip_locked=True, no_key=True))
    for source in due:
        _enqueue(source, source.owner, accept_loss=False)
    return len(due)


def unfollow_source(source_id: int, *, by: User) -> None:
    """Stop following a source; its documents and entries stay."""
    with transaction.atomic():
        source = _locked(source_id, by)
        for left in source.imports.all():
            left.file.delete(save=False)
        source.delete()


def credential_of(source: FollowedSource) -> str:
    """Return the source's credential from the environment.

    Raises:
        InvalidKnowledgeError: The variable is not set where the worker runs.
    """
    if not source.credential:
        return ""
    value: str = settings.SOURCE_SECRETS.get(source.credential, "")
    if not value:
        raise InvalidKnowledgeError(
            "credential",
            f"The environment variable {source.credential} is not set where the worker "
            "runs; an operator sets it and starts the worker again.",
        )
    return value
