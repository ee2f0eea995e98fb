"""What OpenAI calls a model: a knowledge base, optionally pinned to its policy."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from accounts.exceptions import NotFoundError
from kb.documents.models import KnowledgeBase
from kb.exceptions import KnowledgeBaseNotFoundError
from qa.answers import questions
from qa.policies.models import Policy
from qa.policies.services import active_policy

_PIN = "@"  # never part of a slug


class ModelNotFoundError(NotFoundError):
    code = "model_not_found"


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A knowledge base, named by its slug or by its slug and its active policy.

    The second name disappears when another policy is activated, so that no other policy
    answers unnoticed.
    """

    name: str
    knowledge_base: KnowledgeBase
    policy: Policy | None


def chat_models() -> list[ChatModel]:
    """Return all models, at most two per knowledge base, with two queries."""
    active = {
        row.knowledge_base_id: row for row in Policy.objects.filter(is_active=True)
    }
    models = []
    for base in KnowledgeBase.objects.in_use().order_by("pk"):
        policy = active.get(base.pk)  # None before the first question
        models.append(ChatModel(base.slug, base, policy))
        if policy:
            policy.knowledge_base = base
            models.append(ChatModel(pinned_name(policy), base, policy))
    return models


def pinned_name(policy: Policy) -> str:
    return f"{policy.knowledge_base.slug}{_PIN}{policy.name}-v{policy.version}"


def is_pinned(model: str) -> bool:
    return _PIN in model


def find_knowledge_base(model: str, *, asker: User) -> KnowledgeBase:
    """Return the knowledge base that a model name refers to.

    Raises:
        ModelNotFoundError: It does not exist, or another policy is active.
    """
    slug, _, pin = model.partition(_PIN)
    try:
        found = questions.find_knowledge_base(slug, asker=asker)
    except KnowledgeBaseNotFoundError as error:
        raise ModelNotFoundError(str(error)) from error
    if pin and model != (active := pinned_name(active_policy(found))):
        raise ModelNotFoundError(
            f"The policy of {model[:160]!r} is not active; take {active!r}, or {slug!r} "
            "for whichever policy is."
        )
    return found
