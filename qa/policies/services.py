"""Versions of a policy: created, activated, rolled back, never changed."""

from copy import copy
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max

from accounts.exceptions import NescioError
from kb.documents.models import KnowledgeBase
from probes.cards import ProbeKind
from probes.models import Probe
from qa.exceptions import PolicyError
from qa.pipeline.policy import (
    ALPHA_WITH_VERIFIER,
    DECLARED,
    RetrievalTiming,
    Scope,
    default,
)
from qa.policies.models import Policy, PolicyActivation

from .ask_prefetch import prefetched

# The fingerprint of the bundled embedder, which the default thresholds were chosen for.
DEFAULTS_SET_FOR = "01b8e73530d9716e4fe49653e90b46837f86e9622026994e5c30f2ace2498e80"
# Those of the bundled language model with its adapter, in float32 and in bfloat16.
DEFAULTS_SET_FOR_LANGUAGE_MODEL = (
    "8fa8a545b5815c404d6ed16fae20b8c7394cc646a5a324e652b897829833d1d2"
    " 4e21df71b35fff4a551b93df550b73e8b5206d33f527b26ecec333520b82555b"
)
DEFAULTS_SET_FOR_RETRIEVAL = "euclidean/parts-place-0.7/z-sum-0.5/idf/1"
DEFAULT_NAME = "default"
SCOPE_REMEDY = (
    "knowledge_base always retrieves; adaptive needs boundary, history, log_probability "
    "or monitored."
)


# The command that chooses a timing's thresholds.
_COMPARED = "python -m studies cbdr_timing, from a checkout"
_CHOSEN_BY = {
    RetrievalTiming.BOUNDARY: "manage.py calibrate min_known",
    RetrievalTiming.MONITORED: "manage.py calibrate monitor",
    RetrievalTiming.HISTORY: _COMPARED,
    RetrievalTiming.LOG_PROBABILITY: _COMPARED,
}
CHANGEABLE = frozenset(DECLARED) | {"name"}
# `is_calibrated` is not copied: it is about these very thresholds.
_COPIED = CHANGEABLE - {"is_calibrated"}


def active_policy(knowledge_base: KnowledgeBase) -> Policy:
    """Return the policy that decides this knowledge base's questions now.

    One query, or none if it was prefetched with the knowledge base.
    """
    read = prefetched(knowledge_base)
    if read and read.policy:
        return read.policy
    found = Policy.objects.filter(knowledge_base=knowledge_base, is_active=True).first()
    return found or ensure_default_policy(knowledge_base)


def ensure_default_policy(knowledge_base: KnowledgeBase) -> Policy:
    """Create and activate the default thresholds if no policy is active yet.

    Two processes may both find none: the second one's insert then violates the
    constraint that allows one active policy, and it uses the first one's.
    """
    rows = Policy.objects.filter(knowledge_base=knowledge_base)
    found = rows.filter(is_active=True).first()
    if found:
        return found
    try:
        with transaction.atomic():
            return Policy.objects.create(
                knowledge_base=knowledge_base,
                name=DEFAULT_NAME,
                version=_next_version(knowledge_base, DEFAULT_NAME),
                is_active=True,
                alpha=ALPHA_WITH_VERIFIER
                if has_verifier(knowledge_base)
                else default("alpha"),
                calibrated_embedder=DEFAULTS_SET_FOR,
                calibrated_language_model=DEFAULTS_SET_FOR_LANGUAGE_MODEL,
                calibrated_retrieval=DEFAULTS_SET_FOR_RETRIEVAL,
            )
    except IntegrityError:
        return rows.get(is_active=True)


def has_verifier(knowledge_base: KnowledgeBase) -> bool:
    """Return whether there is a verifier for the language of this knowledge base."""
    speaks = knowledge_base.language in settings.VERIFIER_LANGUAGES
    return settings.VERIFIER != "none" and speaks


def basis(knowledge_base: KnowledgeBase, source: Policy | None = None) -> Policy:
    """Return the version to start from: `source`, or else the active one.

    A source's thresholds are copied with the models that they are for. A source of
    another knowledge base is ignored.
    """
    if source is not None and source.knowledge_base_id == knowledge_base.pk:
        return source
    return active_policy(knowledge_base)


def new_version(
    policy: Policy, *, by: AbstractBaseUser | None, **changes: object
) -> Policy:
    """Create an inactive version for a person, unless archived; see `make_version`."""
    policy.knowledge_base.check_in_use()
    return make_version(policy, by=by, **changes)


def make_version(
    policy: Policy, *, by: AbstractBaseUser | None, **changes: object
) -> Policy:
    """Create an inactive version from `policy` with some values changed.

    It is not calibrated unless `changes` say so, and a certificate stays with the
    version that earned it. Also allowed in an archived knowledge base, whose policy has
    to fit replaced probes when it is in use again.
    """
    fields: dict[str, Any] = {name: getattr(policy, name) for name in _COPIED} | changes
    name = str(fields["name"])
    author = by if isinstance(by, User) else None
    with transaction.atomic():
        # Locked, so that concurrent callers do not take the same version number.
        KnowledgeBase.objects.select_for_update().get(pk=policy.knowledge_base_id)
        made = Policy(
            knowledge_base_id=policy.knowledge_base_id,
            version=_next_version(policy.knowledge_base, name),
            created_by=author,
            **fields,
        )
        _check(made)
        made.save(force_insert=True)
    return made


def tried_version(policy: Policy, **changes: object) -> Policy:
    """Return a copy with some values changed, to try questions with; never to be saved.

    Only the unchanged active version may reveal that there is knowledge the asker may
    not see: with other thresholds, anybody could measure how near it is.
    """
    active = active_policy(policy.knowledge_base)
    tried = copy(policy)
    tried.pk, tried.is_active = None, False
    changed = {k: v for k, v in changes.items() if v != getattr(policy, k)}
    tried.reveal_not_entitled &= policy == active and not changed
    if changed:
        tried.name, tried.is_calibrated = f"changed {policy.name}"[:100], False
        for name, value in changed.items():
            setattr(tried, name, value)
        _check(tried)
    return tried


def activate(
    policy: Policy,
    *,
    by: AbstractBaseUser | None = None,
    rolls_back: bool = False,
    reason: str = "",
    failed_cases: int | None = None,
) -> Policy:
    """Activate this version in place of the previous one, and record the activation.

    If a person activates it, `qa.evaluation.activation` asks the test cases first.

    Raises:
        PolicyError: It would answer from a language model's own knowledge, and is not
            calibrated for the configured model.
    """
    if uncalibrated := own_knowledge_uncalibrated(policy):
        raise PolicyError(uncalibrated)
    with transaction.atomic():
        KnowledgeBase.objects.select_for_update().get(pk=policy.knowledge_base_id)
        siblings = Policy.objects.filter(knowledge_base_id=policy.knowledge_base_id)
        before = siblings.filter(is_active=True).first()
        if before != policy:
            siblings.filter(is_active=True).update(is_active=False)
            siblings.filter(pk=policy.pk).update(is_active=True)
            PolicyActivation.objects.create(
                knowledge_base_id=policy.knowledge_base_id,
                policy=policy,
                replaced=before,
                is_rollback=rolls_back,
                reason=reason,
                failed_cases=failed_cases,
                by=by if isinstance(by, User) else None,
            )
    policy.is_active = True
    return policy


def own_knowledge_uncalibrated(policy: Policy) -> str:
    """Say why a policy may not answer from the model's own knowledge; "" if it may.

    Loads the configured model to find out what its thresholds have to be set for.
    """
    if policy.scope != Scope.ADAPTIVE:
        return ""
    timing = RetrievalTiming(policy.retrieval_timing)
    remedy = (
        f"Choose them on labelled questions of your own ({_CHOSEN_BY[timing]}) and name in "
        "calibrated_own_knowledge of a new version what they were chosen for, or activate "
        "a version of the scope knowledge_base."
    )
    # Pulls in torch, which no other policy needs here.
    from qa.inference.policy_models import own_knowledge_fingerprint  # noqa: PLC0415

    set_for, missing = policy.calibrated_own_knowledge.split(), ""
    try:
        runs = own_knowledge_fingerprint(timing)
    except NescioError as error:
        runs, missing = "", str(error)
    if not set_for:
        return (
            f"{policy} can't be activated: it answers by what the language model knows, and "
            f"its thresholds for {timing} were never calibrated; {runs or 'nothing'} is "
            f"configured. {missing} {remedy}".replace("  ", " ")
        )
    if missing:
        return f"{policy} can't be activated: {missing}"
    if runs in set_for:
        return ""
    return (
        f"{policy} can't be activated: its thresholds for {timing} were calibrated for "
        f"{policy.calibrated_own_knowledge}, and {runs} is configured. {remedy}"
    )


def _next_version(knowledge_base: KnowledgeBase, name: str) -> int:
    rows = Policy.objects.filter(knowledge_base=knowledge_base, name=name)
    return (rows.aggregate(last=Max("version"))["last"] or 0) + 1


def _check(policy: Policy) -> None:
    try:
        policy.full_clean(
            exclude=["knowledge_base", "created_by"],
            validate_unique=False,
            validate_constraints=False,
        )
    except ValidationError as error:
        wrong = "; ".join(
            f"{field} {getattr(policy, field, '')!r}: {' '.join(messages)}"
            for field, messages in error.message_dict.items()
        )
        raise PolicyError(wrong) from error
    is_adaptive = policy.scope == Scope.ADAPTIVE
    if is_adaptive is (policy.retrieval_timing == RetrievalTiming.ALWAYS):
        raise PolicyError(
            f"The scope {policy.scope} does not go with the retrieval timing "
            f"{policy.retrieval_timing}: {SCOPE_REMEDY}"
        )
    rerankers = Probe.objects.filter(kind=ProbeKind.RERANKER, state=Probe.State.ACTIVE)
    if policy.rerank and not settings.RERANKER and not rerankers.exists():
        raise PolicyError(
            "rerank is on and there is no reranker: train and activate one on the probes' "
            "page, or fit one (manage.py train reranker) and set NESCIO_RERANKER to its "
            "directory."
        )
    if policy.horizon < policy.alpha:
        raise PolicyError(
            f"horizon {policy.horizon} is below alpha {policy.alpha}: what is near "
            "enough to answer would count as unrelated. Raise horizon."
        )


def version_before(policy: Policy) -> Policy | None:
    """Return the version that `policy` replaced when it was last promoted.

    Rolling back is not a promotion, so rolling back twice goes two versions back and
    never forward to the mistake.
    """
    promoted = PolicyActivation.objects.filter(policy=policy, is_rollback=False)
    last = promoted.select_related("replaced").first()
    return last.replaced if last else None


def roll_back(policy: Policy, *, by: AbstractBaseUser | None) -> Policy:
    """Reactivate the version before `policy`, the active one; return it.

    Raises:
        PolicyError: `policy` is not active any more, or none was active before it.
    """
    with transaction.atomic():
        base = KnowledgeBase.objects.select_for_update().get(
            pk=policy.knowledge_base_id
        )
        base.check_in_use()
        if not Policy.objects.filter(pk=policy.pk, is_active=True).exists():
            raise PolicyError(
                f"{policy} is not active any more; look at which version is."
            )
        before = version_before(policy)
        if before is None:
            raise PolicyError(
                f"No version was active before {policy}; activate the one you want."
            )
        return activate(before, by=by, rolls_back=True)
