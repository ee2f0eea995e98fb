"""Prefetching everything that deciding a question begins with, in one query.

The knowledge base, its synonyms, active policy and own wordings, and the audiences of
the asker are read by one statement instead of one each. They are kept with the instance
of the knowledge base, which lives as long as its request.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, FilteredRelation, OuterRef, Q
from django.db.models.functions import JSONObject

from accounts.people import AnyUser
from accounts.prepared import WrittenQuery, field_names, instance
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.synonyms.models import Synonym
from qa.policies.models import Policy, RefusalWording, self_calibrated

_KEPT = "_prefetched"
_KNOWLEDGE_BASE = field_names(KnowledgeBase)
_POLICY = field_names(Policy)


@dataclass(frozen=True, slots=True)
class Prefetched:
    """What was prefetched with a knowledge base.

    `wordings` are by (language, reason), `synonyms` as `kb.text.synonyms.reworded`
    takes them.
    """

    policy: Policy | None
    asker: AnyUser
    audience_ids: tuple[int, ...]
    wordings: Mapping[tuple[str, str], str]
    synonyms: Mapping[str, str]


def prefetch(slug: str, asker: AnyUser) -> KnowledgeBase | None:
    """Return the knowledge base `slug`, or for "" the default, with prefetched data.

    One query; None if there is no such knowledge base.
    """
    user = asker if isinstance(asker, User) else User(is_active=False)
    row = _query(slug, user.pk, user.is_active, user.is_superuser).first()
    if row is None:
        return None
    found = instance(KnowledgeBase, row[: len(_KNOWLEDGE_BASE)])
    *policy, is_own, audience_ids, wordings, words, means = row[len(_KNOWLEDGE_BASE) :]
    active = instance(Policy, policy) if policy[0] is not None else None
    if active is not None:
        active.knowledge_base, active.is_self_calibrated = found, is_own
    texts = (json.loads(wording) for wording in wordings)
    read = Prefetched(
        policy=active,
        asker=asker,
        audience_ids=tuple(audience_ids or ()),  # NULL for an asker in none
        wordings={(own["language"], own["reason"]): own["text"] for own in texts},
        synonyms=dict(zip(words, means, strict=True)),
    )
    keep(found, read)
    return found


def keep(knowledge_base: KnowledgeBase, read: Prefetched) -> None:
    """Attach prefetched data, which deciding with this instance uses from now on."""
    setattr(knowledge_base, _KEPT, read)


def prefetched(knowledge_base: KnowledgeBase) -> Prefetched | None:
    """Return the data prefetched with this instance, or None."""
    read: Prefetched | None = getattr(knowledge_base, _KEPT, None)
    return read


@lru_cache(maxsize=1024)
def _query(
    slug: str, user_id: int | None, is_active: bool, is_superuser: bool
) -> WrittenQuery:
    """Write the query for one asker; cached, as it depends only on these arguments."""
    asker = User(pk=user_id, is_active=is_active, is_superuser=is_superuser)
    audiences = Audience.objects.visible_to(asker).order_by()
    wordings = RefusalWording.objects.filter(knowledge_base=OuterRef("pk")).order_by()
    synonyms = Synonym.objects.filter(knowledge_base=OuterRef("pk")).order_by("pk")
    wording = JSONObject(language="language", reason="reason", text="text")
    bases = KnowledgeBase.objects
    rows = bases.filter(slug=slug) if slug else bases.asked_by_default()
    return WrittenQuery.of(
        rows.alias(
            active=FilteredRelation("policies", condition=Q(policies__is_active=True))
        )
        .order_by("pk")
        .values_list(
            *_KNOWLEDGE_BASE,
            *(F(f"active__{name}") for name in _POLICY),
            self_calibrated("active__pk"),
            ArraySubquery(audiences.values("pk")),
            ArraySubquery(wordings.annotate(json=wording).values("json")),
            ArraySubquery(synonyms.values("word")),
            ArraySubquery(synonyms.values("means")),
        )[:1]
    )
