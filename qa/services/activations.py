"""Which version decided when, and back to the one before."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from kb.models import KnowledgeBase
from qa.exceptions import PolicyError
from qa.models import Policy, PolicyActivation

from .policies import activate


def version_before(policy: Policy) -> Policy | None:
    """Return the version that `policy` took the place of when it was last promoted.

    Rolling back is no promotion, so that rolling back twice goes two versions back and
    never forth to the mistake.
    """
    promoted = PolicyActivation.objects.filter(policy=policy, is_rollback=False)
    last = promoted.select_related("replaced").first()
    return last.replaced if last else None


def roll_back(policy: Policy, *, by: AbstractBaseUser | None) -> Policy:
    """Let the version before `policy`, which is active, decide again; return it.

    Raises:
        PolicyError: `policy` is not active any more, or nothing decided before it.
    """
    with transaction.atomic():
        KnowledgeBase.objects.select_for_update().get(pk=policy.knowledge_base_id)
        if not Policy.objects.filter(pk=policy.pk, is_active=True).exists():
            raise PolicyError(
                f"{policy} does not decide any more; look at which version does."
            )
        before = version_before(policy)
        if before is None:
            raise PolicyError(
                f"No version decided before {policy}; activate the one that you want."
            )
        return activate(before, by=by, rolls_back=True)
